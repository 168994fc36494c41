"""The result of a comparison with a baseline, and the rule behind it."""

from typing import Literal

from msgspec import Struct

Outcome = Literal["slower", "same", "faster", "unclear"]
Unit = Literal["s", "us", "GB/s"]


class AlarmRule(Struct, frozen=True, kw_only=True):
    """When slower is too slow: by how much, and how certain. Both are choices, not facts."""

    slower_by: float = 0.05
    """Share by which the time must have grown; smaller changes are ignored."""
    chance: float = 0.01
    """The highest probability of chance at which something counts as a change."""


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
    """Probability of the change, in its direction, without a cause."""
    outcome: Outcome


class Judgement(Struct, frozen=True, kw_only=True):
    """The result: an alarm or none, a sentence that explains it, and the parts."""

    alarm: bool
    outcome: Outcome
    slower_part: str | None
    sentence: str
    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...] = ()


def outcome_of(change: float, noise: float, chance: float, rule: AlarmRule) -> Outcome:
    """Return what a change is: large enough, above the noise, and not by chance.

    Improvements must pass the same thresholds, so noise is not reported as good news either.
    """
    # Halving the time reverses a doubling: 50% faster is 100% slower in the other direction.
    bound = rule.slower_by if change >= 0 else rule.slower_by / (1.0 + rule.slower_by)
    if abs(change) < bound:
        return "same"
    if abs(change) <= noise or chance > rule.chance:
        return "unclear"
    return "slower" if change > 0 else "faster"


def percent(change: float) -> str:
    """Return a change as text: `12% slower`, `3.1% faster`."""
    size = abs(change)
    figure = f"{size:.0%}" if size >= 0.1 else f"{size:.1%}"
    return f"{figure} {'slower' if change > 0 else 'faster'}"
