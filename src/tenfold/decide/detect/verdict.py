"""What a comparison with a baseline says, and the rule it follows."""

from typing import Literal

from msgspec import Struct

Outcome = Literal["slower", "same", "faster", "unclear"]
Unit = Literal["s", "us", "GB/s"]


class AlarmRule(Struct, frozen=True, kw_only=True):
    """When slower is too slow: by how much, and how sure. Both are choices, not facts."""

    slower_by: float = 0.05
    """Share by which the time must have grown; smaller changes are not worth a call."""
    chance: float = 0.01
    """How likely chance alone may explain what is called a change."""


class Comparison(Struct, frozen=True, kw_only=True):
    """One part of a workload, before and now; `change` is the growth of its time."""

    part: str
    unit: Unit
    before: float
    now: float
    change: float
    noise: float
    """Spread of the baseline as a share of it."""
    chance: float
    """How likely the change, in its direction, is without a cause."""
    outcome: Outcome


class Judgement(Struct, frozen=True, kw_only=True):
    """The answer: an alarm or none, the sentence that says why, and the parts."""

    alarm: bool
    outcome: Outcome
    slower_part: str | None
    sentence: str
    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...] = ()


def outcome_of(change: float, noise: float, chance: float, rule: AlarmRule) -> Outcome:
    """Return what a change is: large enough, above the noise, and not by chance.

    Faster is judged by the same bounds, so that noise is no better news than bad news.
    """
    # What was halved had been twice as slow: 50% faster is 100% slower, seen from there.
    bound = rule.slower_by if change >= 0 else rule.slower_by / (1.0 + rule.slower_by)
    if abs(change) < bound:
        return "same"
    if abs(change) <= noise or chance > rule.chance:
        return "unclear"
    return "slower" if change > 0 else "faster"


def percent(change: float) -> str:
    """Return a change as people say it: `12% slower`, `3.1% faster`."""
    size = abs(change)
    figure = f"{size:.0%}" if size >= 0.1 else f"{size:.1%}"
    return f"{figure} {'slower' if change > 0 else 'faster'}"
