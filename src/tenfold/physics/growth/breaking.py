"""The arithmetic of growth: strain as a function of the factor, and where it passes 1.

Strain is demand over capacity. It never falls with the factor; that is what lets a breaking
factor be found by bisection.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

from tenfold.model.growth.growth import GRADES, Grade

Utilisation = Callable[[float], float]
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
DEFAULTED = Evidence("published", 0.3)
"""Filled in from a sourced fact about what is usual."""
ASSUMED = Evidence("assumed", 1.0)
"""Nobody gave it for this fleet; its interval is of no use, and says so."""


def weakest(*evidence: Evidence) -> Evidence:
    """Return the grade and spread of the worst figure: a law is known no better than that."""
    return max(evidence, key=lambda one: (GRADES.index(one.grade), one.spread))


class Break(NamedTuple):
    """Where a law breaks. `low` and `high` are None beyond the largest factor looked at."""

    k: float | None
    low: float | None
    high: float | None
    status: BreakStatus


def breaking_factor(utilisation: Utilisation, most: float) -> float | None:
    """Return the factor at which strain reaches 1, or None where it does not up to `most`.

    A layer that binds already gives a factor of 1 or less, down to 1/64.
    """
    low, high = _bracket(utilisation, most)
    if high is None:
        return None
    if low is None:
        return high
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if utilisation(middle) > 1:
            high = middle
        else:
            low = middle
    return low


def _bracket(utilisation: Utilisation, most: float) -> tuple[float | None, float | None]:
    """Return a factor that holds and one that does not; None where there is no such."""
    if utilisation(1.0) > 1:
        high = 1.0
        while high > FACTOR_LEAST:
            low = high / 2
            if utilisation(low) <= 1:
                return low, high
            high = low
        return None, FACTOR_LEAST
    low = 1.0
    while low < most:
        high = min(2 * low, most)
        if utilisation(high) > 1:
            return low, high
        low = high
    return low, None


def is_constant(utilisation: Utilisation, most: float) -> bool:
    """Return whether a strain does not change with the factor at all."""
    return utilisation(most) <= utilisation(FACTOR_LEAST) * (1 + 1e-12)


def break_of(utilisation: Utilisation, spread: float, most: float) -> Break:
    """Return where a strain passes 1, with the interval that its spread leaves.

    A layer that holds and does not grow is free, however little is known of it.
    """
    if utilisation(most) <= 1 and is_constant(utilisation, most):
        return Break(None, None, None, "free")
    wide = 1 + spread
    k = breaking_factor(utilisation, most)
    low = breaking_factor(lambda factor: utilisation(factor) * wide, most)
    high = breaking_factor(lambda factor: utilisation(factor) / wide, most)
    return Break(k, low, high, "free" if k is None else "breaks")
