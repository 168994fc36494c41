"""A layer is a law: demand over capacity as a function of the factor, broken above 1.

Search, attribution, reliefs and the ladder see laws only. Strain never falls with the factor;
that is what lets a breaking factor be found by bisection. It need not be defined by more
than its figures: a law whose figures are missing says which one in `needs`, and is unknown.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Literal, NamedTuple

from tenfold.model.growth import GRADES, Grade

Strain = Callable[[float], float]
BreakStatus = Literal["breaks", "free", "unknown"]

FACTOR_LEAST = 1 / 64
"""A layer that binds already is followed down to here, to tell by how much."""
BISECTIONS = 60


class Evidence(NamedTuple):
    """How well a figure is known: its grade, and how far strain may be off by it.

    A spread of 1 is a factor of two either way.
    """

    grade: Grade
    spread: float


STATED = Evidence("published", 0.05)
"""Stands in a file of the user; not checked against what happened."""
SUPPOSED = Evidence("published", 0.3)
"""Filled in from a sourced fact about what is usual."""
ASSUMED = Evidence("assumed", 1.0)
"""Nobody gave it for this fleet; its interval is of no use, and says so."""


def weakest(*evidence: Evidence) -> Evidence:
    """Return the grade and spread of the worst figure: a law is known no better than that."""
    return max(evidence, key=lambda one: (GRADES.index(one.grade), one.spread))


def _silent(_: float) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Law:
    """One layer of a fleet and how its strain rises with the factor."""

    layer: str
    resource: str
    strain: Strain
    spread: float
    grade: Grade
    cause_rank: int
    """Of laws that break at one factor the lowest is named: causes before their effects."""
    needs: str = ""
    """The figure that is missing; empty where the law can be judged."""
    symptom: Callable[[float], str] = _silent
    """What is seen at a factor, in one sentence."""

    @property
    def key(self) -> str:
        """The layer and its resource as one name."""
        return f"{self.layer}:{self.resource}"


class Break(NamedTuple):
    """Where a law breaks. `low` and `high` are None beyond the largest factor looked at."""

    k: float | None
    low: float | None
    high: float | None
    status: BreakStatus


class Named(NamedTuple):
    """The name of a law, before its figures are known."""

    layer: str
    resource: str
    cause_rank: int

    @property
    def key(self) -> str:
        """The layer and its resource as one name."""
        return f"{self.layer}:{self.resource}"

    def law(
        self,
        demand: Callable[[float], float],
        capacity: float,
        evidence: Evidence,
        symptom: Callable[[float], str],
    ) -> Law:
        """Return the law of a demand against a capacity that stands still."""
        grade, spread = evidence

        def strain(factor: float) -> float:
            return demand(factor) / capacity if capacity > 0 else inf

        return Law(
            self.layer,
            self.resource,
            strain,
            spread,
            grade,
            self.cause_rank,
            symptom=symptom,
        )

    def unknown(self, needs: str) -> Law:
        """Return a law that cannot be judged, with the figure that would answer it."""
        return Law(self.layer, self.resource, lambda _: 0.0, 0.0, "assumed", self.cause_rank, needs)


def breaking_factor(strain: Strain, most: float) -> float | None:
    """Return the factor at which strain reaches 1, or None where it does not up to `most`.

    A layer that binds already gives a factor of 1 or less, down to 1/64.
    """
    low, high = _bracket(strain, most)
    if high is None:
        return None
    if low is None:
        return high
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if strain(middle) > 1:
            high = middle
        else:
            low = middle
    return low


def _bracket(strain: Strain, most: float) -> tuple[float | None, float | None]:
    """Return a factor that holds and one that does not; None where there is no such."""
    if strain(1.0) > 1:
        high = 1.0
        while high > FACTOR_LEAST:
            low = high / 2
            if strain(low) <= 1:
                return low, high
            high = low
        return None, FACTOR_LEAST
    low = 1.0
    while low < most:
        high = min(2 * low, most)
        if strain(high) > 1:
            return low, high
        low = high
    return low, None


def stands_still(law: Law, most: float) -> bool:
    """Return whether a law does not feel the factor at all: its layer does not grow."""
    return law.strain(most) <= law.strain(FACTOR_LEAST) * (1 + 1e-12)


def break_of(law: Law, most: float) -> Break:
    """Return where a law breaks, with the interval that its evidence leaves.

    A layer that holds and does not grow is free, however little is known of it.
    """
    if law.needs:
        return Break(None, None, None, "unknown")
    if law.strain(most) <= 1 and stands_still(law, most):
        return Break(None, None, None, "free")
    wide = 1 + law.spread
    k = breaking_factor(law.strain, most)
    low = breaking_factor(lambda factor: law.strain(factor) * wide, most)
    high = breaking_factor(lambda factor: law.strain(factor) / wide, most)
    return Break(k, low, high, "free" if k is None else "breaks")
