"""Triggers: when a fleet should be expanded, decided from what was seen each day.

A rule fires once its figure has been over its threshold for some days. It then waits: it cannot
fire again before the figure has fallen to the lower threshold (hysteresis) and the cool-down is
over. A firing is a proposal for people; nothing is bought.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from tenfold.model.growth.growth import GrowTable, Name

TriggerKind = Literal["utilisation", "queue", "pipeline", "forecast"]
FIGURES: dict[TriggerKind, str] = {
    "utilisation": "ratio of used to available GPUs",
    "queue": "P90 wait in hours",
    "pipeline": "ratio of GPUs committed within the lead time to free GPUs",
    "forecast": "ratio of forecast demand (P80) within the lead time to available GPUs",
}
"""What each kind of rule looks at."""


class TriggerRule(GrowTable, frozen=True, kw_only=True):
    """`[[trigger]]`: a figure, its thresholds, and how long they count."""

    name: Name
    kind: TriggerKind
    above: Annotated[float, Meta(gt=0, le=1e6)]
    clears_below: Annotated[float, Meta(gt=0, le=1e6)] | None = None
    """At or below this the rule can fire again; None: nine tenths of `above`."""
    for_days: Annotated[int, Meta(ge=1, le=365)] = 1
    cool_down_days: Annotated[int, Meta(ge=0, le=3_650)] = 30
    evidence: str = ""
    """Where the threshold comes from: a load test, a simulation or an incident."""

    @property
    def clear(self) -> float:
        """The threshold at which it can fire again."""
        return 0.9 * self.above if self.clears_below is None else self.clears_below


class DayFigures(Struct, frozen=True, kw_only=True):
    """What was known at the end of one day; None: not known."""

    day: int
    """Days since the history began."""
    utilisation: float | None = None
    queue: float | None = None
    pipeline: float | None = None
    forecast: float | None = None

    def of(self, kind: TriggerKind) -> float | None:
        """Return the figure that a kind of rule looks at."""
        return {
            "utilisation": self.utilisation,
            "queue": self.queue,
            "pipeline": self.pipeline,
            "forecast": self.forecast,
        }[kind]


class Firing(Struct, frozen=True, kw_only=True):
    """A rule that fired."""

    rule: str
    kind: TriggerKind
    day: int
    value: float
    above: float
    since: int
    """The first day of those that were over the threshold."""


def firings(rules: Sequence[TriggerRule], days: Sequence[DayFigures]) -> list[Firing]:
    """Return each time a rule fires, in order of days; the last day is now."""
    found = [one for rule in rules for one in _firings(rule, days)]
    return sorted(found, key=lambda one: (one.day, one.rule))


def _firings(rule: TriggerRule, days: Sequence[DayFigures]) -> list[Firing]:
    found: list[Firing] = []
    since: int | None = None
    is_armed = True
    for figures in days:
        value = figures.of(rule.kind)
        if value is None:
            continue
        if value <= rule.clear:
            is_armed = True
        if value <= rule.above:
            since = None
            continue
        since = figures.day if since is None else since
        long_enough = figures.day - since + 1 >= rule.for_days
        cooled = not found or figures.day - found[-1].day >= rule.cool_down_days
        if is_armed and long_enough and cooled:
            is_armed = False
            found.append(
                Firing(
                    rule=rule.name,
                    kind=rule.kind,
                    day=figures.day,
                    value=value,
                    above=rule.above,
                    since=since,
                )
            )
    return found


class RuleWarning(Struct, frozen=True, kw_only=True):
    """What is doubtful about a rule."""

    rule: str
    code: Literal["no-evidence", "no-hysteresis", "never-fires"]
    message: str


def lint_rules(rules: Sequence[TriggerRule]) -> list[RuleWarning]:
    """Return what is doubtful about rules before they are used."""
    found: list[RuleWarning] = []
    for rule in rules:
        if not rule.evidence:
            said = (
                f"threshold {rule.above:g} has no evidence; name the load test, simulation or "
                "incident it comes from"
            )
            found.append(RuleWarning(rule=rule.name, code="no-evidence", message=said))
        if rule.clear >= rule.above:
            said = "it clears at its own threshold, so it may fire again on noise"
            found.append(RuleWarning(rule=rule.name, code="no-hysteresis", message=said))
        if rule.kind == "utilisation" and rule.above >= 1:
            said = "utilisation is never above 1"
            found.append(RuleWarning(rule=rule.name, code="never-fires", message=said))
    return found
