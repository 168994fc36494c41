"""The size of a relief: the fewest units that are enough, found by trying.

How far nodes shorten waits is known only after new runs. The search starts at an estimate, steps
away from it, and ends between two sizes that differ by one unit: the larger is enough and the
smaller is not, on the seeds of the question.
"""

from collections.abc import Callable
from typing import NamedTuple

from tenfold.study.grow.relief import Relief

UNITS_TIMES_MOST = 16
"""An estimate that is further off than this is not corrected by trying."""


class Sized(NamedTuple):
    """A relief of the size found, and whether the search came to its end."""

    relief: Relief
    minimal: bool


def fewest_units(
    relief: Relief, enough: Callable[[Relief], bool], spent: Callable[[], bool]
) -> Sized:
    """Return a relief with the fewest units that are enough.

    If none is, it has its estimated size. `spent` says whether to stop early.
    """
    resize = relief.resize
    if resize is None:
        return Sized(relief, True)

    def fits(units: int) -> bool:
        return units > 0 and enough(resize(units))

    low, high = _bracket(relief.units, fits, spent)
    if high is None:
        return Sized(relief, not spent())
    while high - low > 1 and not spent():
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return Sized(resize(high), high - low == 1)


def _bracket(
    guess: int, fits: Callable[[int], bool], spent: Callable[[], bool]
) -> tuple[int, int | None]:
    """Return a number that is too few and one that is enough; None if none was found."""
    step = 1
    if fits(guess):
        high = guess
        while high - step > 0 and not spent():
            if not fits(high - step):
                return high - step, high
            high, step = high - step, 2 * step
        return 0, high
    low, most = guess, guess * UNITS_TIMES_MOST
    while low < most and not spent():
        tried = min(low + step, most)
        if fits(tried):
            return low, tried
        low, step = tried, 2 * step
    return low, None
