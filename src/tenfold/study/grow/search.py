"""Find where constraints break, and which breaks first."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tenfold.physics.growth.breaking import Break
from tenfold.study.grow.layer import Constraint, break_of
from tenfold.study.grow.state import State

ConstraintsOf = Callable[[State], list[Constraint]]
"""Returns the constraints of a state that may be ranked."""


class Evaluated(NamedTuple):
    """A constraint and where it breaks."""

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
    """Return a constraint with its breaking factor up to `most`."""
    return Evaluated(constraint, break_of(constraint, most))


def rank(constraints: Sequence[Constraint], most: float) -> list[Evaluated]:
    """Return constraints with their breaking factors, lowest first, then free and unknown ones."""
    return sorted((evaluate(constraint, most) for constraint in constraints), key=_place)


def _place(one: Evaluated) -> tuple[int, float, int, str]:
    order = ("breaks", "free", "constant", "unknown").index(one.broken.status)
    return order, one.broken.k or 0.0, one.constraint.cause_rank, one.constraint.key


def rankable(constraints: Sequence[Constraint], count_assumed: bool) -> list[Constraint]:
    """Return the constraints that may be ranked: those with inputs that are not just assumed.

    A layer that rests on an assumption is shown but not ranked, unless `--count-assumed` is given.
    """
    return [
        constraint
        for constraint in constraints
        if not constraint.needs and (count_assumed or constraint.grade != "assumed")
    ]


def find_bottleneck(constraints: Sequence[Constraint], most: float) -> Bottleneck:
    """Return the factor at which the first constraint breaks, and those that overlap it."""
    evaluated = rank(constraints, most)
    breaking = [one for one in evaluated if one.broken.status == "breaks"]
    if not breaking:
        return Bottleneck(None, None, ())
    least = breaking[0]
    reach = least.broken.high
    overlapping = tuple(one.constraint for one in evaluated if _meets(one.broken, reach))
    return Bottleneck(least.broken.k, least.constraint, overlapping)


def _meets(broken: Break, reach: float | None) -> bool:
    """Return whether a break may come before the bottleneck's latest one."""
    if broken.status == "unknown" or broken.low is None:
        return False
    return reach is None or broken.low <= reach
