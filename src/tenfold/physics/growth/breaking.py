"""Utilisation as a function of the growth factor, and where it passes 1.

Utilisation is demand over capacity. It never falls as the factor grows, so a breaking factor can be
found by bisection.
"""

from collections.abc import Callable
from math import exp, hypot, log, log1p
from typing import Literal, NamedTuple

from tenfold.model.growth.growth import GRADES, Grade

Utilisation = Callable[[float], float]
BreakStatus = Literal["breaks", "free", "constant", "unknown"]
"""breaks: at a factor. free: not up to the largest. constant: the axis does not change it."""

FACTOR_LEAST = 1 / 64
"""A layer over its limit today is followed down to here, to show by how much."""
BISECTIONS = 60
OVER = 1 + 2e-10
"""Utilisation above this is over its limit: a capacity that just fits is not, after rounding."""


class Evidence(NamedTuple):
    """How well a figure is known: its grade, and how far utilisation may be off.

    A spread of 1 is a factor of two either way.
    """

    grade: Grade
    spread: float


STATED = Evidence("published", 0.05)
"""Stated in a user's file; not checked against measurements."""
DEFAULTED = Evidence("published", 0.3)
"""Filled in from a sourced fact about typical hardware."""
ASSUMED = Evidence("assumed", 1.0)
"""Not given for this fleet; its range is wide on purpose."""


def weakest(*evidence: Evidence) -> Evidence:
    """Return the weakest evidence: a constraint is known no better than its worst figure."""
    return max(evidence, key=lambda one: (GRADES.index(one.grade), one.spread))


class Break(NamedTuple):
    """Where a constraint breaks. `low` and `high` are None beyond the largest factor searched."""

    k: float | None
    low: float | None
    high: float | None
    status: BreakStatus


def breaking_factor(utilisation: Utilisation, most: float) -> float | None:
    """Return the factor at which utilisation reaches 1, or None if it does not up to `most`.

    A layer over its limit today gives a factor of 1 or less, down to 1/64.
    """
    low, high = _bracket(utilisation, most)
    if high is None:
        return None
    if low is None:
        return high
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if utilisation(middle) > OVER:
            high = middle
        else:
            low = middle
    return low


def _bracket(utilisation: Utilisation, most: float) -> tuple[float | None, float | None]:
    """Return a factor that holds and one that does not; None if there is none."""
    if utilisation(1.0) > OVER:
        high = 1.0
        while high > FACTOR_LEAST:
            low = high / 2
            if utilisation(low) <= OVER:
                return low, high
            high = low
        return None, FACTOR_LEAST
    low = 1.0
    while low < most:
        high = min(2 * low, most)
        if utilisation(high) > OVER:
            return low, high
        low = high
    return low, None


def is_constant(utilisation: Utilisation, most: float) -> bool:
    """Return whether utilisation does not change with the factor."""
    return utilisation(most) <= utilisation(FACTOR_LEAST) * (1 + 1e-12)


def break_of(
    utilisation: Utilisation,
    spread: float,
    most: float,
    bounds: tuple[Utilisation, Utilisation] | None = None,
) -> Break:
    """Return where utilisation passes 1, with the range that its spread or its bounds leave.

    `bounds` are the highest and the lowest plausible utilisation. A layer that holds and does not
    grow is constant, however little is known about it.
    """
    if utilisation(most) <= OVER and is_constant(utilisation, most):
        return Break(None, None, None, "constant")
    wide = 1 + spread
    highest, lowest = bounds or (
        lambda factor: utilisation(factor) * wide,
        lambda factor: utilisation(factor) / wide,
    )
    k = breaking_factor(utilisation, most)
    low, high = breaking_factor(highest, most), breaking_factor(lowest, most)
    return Break(k, low, high, "free" if k is None else "breaks")


def widened(broken: Break, spread: float, most: float) -> Break:
    """Return a break whose factor may also be off by itself, independent of its utilisation.

    Simulations end soon after a break. If they do not show its upper end, that is as far from the
    break as the lower one.
    """
    k, low, high, status = broken
    if k is None or low is None or not spread:
        return broken
    before = log(k / low)
    after = before if high is None else log(high / k)
    high = k * exp(hypot(after, log1p(spread)))
    return Break(k, k * exp(-hypot(before, log1p(spread))), high if high <= most else None, status)
