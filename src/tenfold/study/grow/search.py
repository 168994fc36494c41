"""Find where laws break, and which of them breaks first."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tenfold.physics.growth.breaking import Break
from tenfold.study.grow.layer import Constraint, break_of
from tenfold.study.grow.state import State

ConstraintsOf = Callable[[State], list[Constraint]]
"""The laws of a state, along the axis that is asked about, that may be named."""


class Evaluated(NamedTuple):
    """A law and where it breaks."""

    constraint: Constraint
    broken: Break


class Bottleneck(NamedTuple):
    """Where the fleet as a whole breaks: at its tightest constraint.

    `k` and `constraint` are None if nothing breaks up to the largest factor searched.
    `overlapping` holds every constraint, this one included, whose interval overlaps its own: any
    of them may be the one that breaks first.
    """

    k: float | None
    constraint: Constraint | None
    overlapping: tuple[Constraint, ...]


def evaluate(constraint: Constraint, most: float) -> Evaluated:
    """Return a law with its breaking factor up to `most`."""
    return Evaluated(constraint, break_of(constraint, most))


def rank(constraints: Sequence[Constraint], most: float) -> list[Evaluated]:
    """Return laws with their breaking factors: the lowest first, then the free and unknown."""
    return sorted((evaluate(constraint, most) for constraint in constraints), key=_place)


def _place(one: Evaluated) -> tuple[int, float, int, str]:
    order = ("breaks", "free", "unknown").index(one.broken.status)
    return order, one.broken.k or 0.0, one.constraint.cause_rank, one.constraint.key


def rankable(constraints: Sequence[Constraint], count_assumed: bool) -> list[Constraint]:
    """Return the laws that may be first: those with figures, and with more than a guess.

    A layer that rests on an assumption is shown, but raises no alarm unless it is told to.
    """
    return [
        constraint
        for constraint in constraints
        if not constraint.needs and (count_assumed or constraint.grade != "assumed")
    ]


def find_bottleneck(constraints: Sequence[Constraint], most: float) -> Bottleneck:
    """Return the factor at which the first of some laws breaks, and what rivals it."""
    judged = rank(constraints, most)
    breaking = [one for one in judged if one.broken.status == "breaks"]
    if not breaking:
        return Bottleneck(None, None, ())
    least = breaking[0]
    reach = least.broken.high
    overlapping = tuple(one.constraint for one in judged if _meets(one.broken, reach))
    return Bottleneck(least.broken.k, least.constraint, overlapping)


def _meets(broken: Break, reach: float | None) -> bool:
    """Return whether a break may come before the weakest law's own at its latest."""
    if broken.status == "unknown" or broken.low is None:
        return False
    return reach is None or broken.low <= reach
