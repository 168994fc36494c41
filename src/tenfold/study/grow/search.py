"""Find where laws break, and which of them breaks first."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tenfold.physics.growth.law import Break
from tenfold.study.grow.layer import Law, break_of
from tenfold.study.grow.state import State

LawsOf = Callable[[State], list[Law]]
"""The laws of a state, along the axis that is asked about, that may be named."""


class Judged(NamedTuple):
    """A law and where it breaks."""

    law: Law
    broken: Break


class Joint(NamedTuple):
    """Where the fleet as a whole breaks: at its weakest law.

    `k` and `law` are None where nothing breaks up to the largest factor looked at. `rivals`
    are the laws, the weakest among them, whose intervals meet its own: any of them may be
    the one that breaks first.
    """

    k: float | None
    law: Law | None
    rivals: tuple[Law, ...]


def search_law(law: Law, most: float) -> Judged:
    """Return a law with its breaking factor up to `most`."""
    return Judged(law, break_of(law, most))


def judge(laws: Sequence[Law], most: float) -> list[Judged]:
    """Return laws with their breaking factors: the lowest first, then the free and unknown."""
    return sorted((search_law(law, most) for law in laws), key=_place)


def _place(one: Judged) -> tuple[int, float, int, str]:
    order = ("breaks", "free", "unknown").index(one.broken.status)
    return order, one.broken.k or 0.0, one.law.cause_rank, one.law.key


def counted(laws: Sequence[Law], count_assumed: bool) -> list[Law]:
    """Return the laws that may be first: those with figures, and with more than a guess.

    A layer that rests on an assumption is shown, but raises no alarm unless it is told to.
    """
    return [law for law in laws if not law.needs and (count_assumed or law.grade != "assumed")]


def joint(laws: Sequence[Law], most: float) -> Joint:
    """Return the factor at which the first of some laws breaks, and what rivals it."""
    judged = judge(laws, most)
    breaking = [one for one in judged if one.broken.status == "breaks"]
    if not breaking:
        return Joint(None, None, ())
    least = breaking[0]
    reach = least.broken.high
    rivals = tuple(one.law for one in judged if _meets(one.broken, reach))
    return Joint(least.broken.k, least.law, rivals)


def _meets(broken: Break, reach: float | None) -> bool:
    """Return whether a break may come before the weakest law's own at its latest."""
    if broken.status == "unknown" or broken.low is None:
        return False
    return reach is None or broken.low <= reach
