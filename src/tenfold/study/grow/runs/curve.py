"""How a simulated figure rises with the factor, from few runs, with its spread.

One seed finds the two grid points between which the limit is passed; the other seeds run only
there. More work rarely means lower utilisation, but runs are random, so values that fall are pooled
with their neighbours before the crossing is read off.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from math import log2
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from tenfold.study.grow.runs.run import RunFigures
from tenfold.study.grow.runs.runs import PER_DOUBLING, Runs, factor_at, index_above
from tenfold.study.grow.state import State

LOWEST = -2 * PER_DOUBLING
"""A layer that is over its limit today is followed down to a quarter of the work."""
FIRST_STEP = PER_DOUBLING // 2
SPREAD_MOST = 1.0

Read = Callable[[RunFigures], float]
"""Returns the utilisation of a layer in one run."""


class RunCurve(Struct, frozen=True, kw_only=True):
    """Utilisation at some grid points, never falling, linear in between."""

    places: tuple[int, ...]
    utilisations: tuple[float, ...]
    spread: float
    """How far utilisation may be off where it passes 1, over the seeds."""
    seed: int = 0
    """The first seed, with which every grid point was run."""
    near: tuple[tuple[int, int], ...] = ()
    """Grid points and seeds of the runs around the limit."""

    @property
    def factor_most(self) -> float:
        """The largest factor that was run."""
        return max(1.0, factor_at(self.places[-1]))

    def utilisation(self, factor: float) -> float:
        """Return the utilisation at a factor; constant beyond the grid points that were run."""
        return _between(self.places, self.utilisations, log2(factor) * PER_DOUBLING)

    def samples_from(self, factor: float) -> list[tuple[int, int]]:
        """Return the runs at or above a factor, nearest first, or else the last run."""
        at = log2(factor) * PER_DOUBLING - 1e-6
        ran = [*((place, self.seed) for place in self.places), *self.near]
        above = [sample for sample in dict.fromkeys(ran) if sample[0] >= at]
        return sorted(above, key=lambda one: one[0]) or [(self.places[-1], self.seed)]


def run_curve(runs: Runs, state: State, read: Read, most: float, seeds: Sequence[int]) -> RunCurve:
    """Return the curve of a layer up to a factor, exact where it passes its limit."""
    first = seeds[0]
    sampled: dict[int, float] = {}

    def at(place: int) -> float:
        if place not in sampled:
            sampled[place] = read(runs.at(state, [(place, first)])[0])
        return sampled[place]

    found = _bracket(at, index_above(most))
    if found is None:
        return _curve({place: [one] for place, one in sampled.items()}, [], first)

    def of_seeds(places: Sequence[int]) -> dict[int, list[float]]:
        samples = [(place, seed) for place in places for seed in seeds]
        reads = [read(figures) for figures in runs.at(state, samples)]
        count = len(seeds)
        return {place: reads[at * count : (at + 1) * count] for at, place in enumerate(places)}

    near = around_limit(of_seeds, found, index_above(most))
    places = sorted(near)
    crossings = [
        _crossing(places, pooled([near[place][at] for place in places])) for at in range(len(seeds))
    ]
    curve = _curve({place: [one] for place, one in sampled.items()} | near, crossings, first)
    return replace(curve, near=tuple((place, seed) for seed in seeds for place in places))


def pooled(values: Sequence[float]) -> list[float]:
    """Return the nearest values that never fall: neighbours out of order share their mean."""
    blocks: list[tuple[float, int]] = []
    for value in values:
        blocks.append((value, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (one, count), (other, more) = blocks[-2:]
            blocks[-2:] = [((one * count + other * more) / (count + more), count + more)]
    return [mean for mean, count in blocks for _ in range(count)]


def _bracket(at: Callable[[int], float], top: int) -> int | None:
    """Return the grid point before the limit is passed, or None if it never or always is."""
    if at(0) > 1:
        low, high = LOWEST, 0
        if at(low) > 1:
            return None
    else:
        low, high = 0, min(FIRST_STEP, top)
        while at(high) <= 1:
            if high >= top:
                return None
            low, high = high, min(2 * high, top)
    while high - low > 1:
        middle = (low + high) // 2
        if at(middle) > 1:
            high = middle
        else:
            low = middle
    return low


def around_limit(
    of_seeds: Callable[[Sequence[int]], dict[int, list[float]]], found: int, top: int
) -> dict[int, list[float]]:
    """Return all seeds at grid points on both sides of the limit.

    The first seed found the limit; half of the seeds may pass it further on, or before.
    """
    near = of_seeds([found - 1, found, found + 1, found + 2])
    low, high = found - 1, found + 2
    while high < top and median(near[high]) <= 1:
        high += 1
        near |= of_seeds([high])
    while low > LOWEST and median(near[low]) > 1:
        low -= 1
        near |= of_seeds([low])
    return near


def _curve(by_place: dict[int, list[float]], crossings: Sequence[float], seed: int) -> RunCurve:
    places = sorted(by_place)
    utilisations = pooled([median(by_place[place]) for place in places])
    spread = 0.0
    if crossings:
        early = _between(places, utilisations, min(crossings))
        late = _between(places, utilisations, max(crossings))
        spread = max(1 / early - 1 if early > 0 else SPREAD_MOST, late - 1, 0.0)
    return RunCurve(
        places=tuple(places),
        utilisations=tuple(utilisations),
        spread=min(SPREAD_MOST, spread),
        seed=seed,
    )


def _crossing(places: Sequence[int], utilisations: Sequence[float]) -> float:
    """Return where utilisation passes 1, between grid points; an end if it does not."""
    right = bisect_right(utilisations, 1.0)
    if right == 0:
        return float(places[0])
    if right == len(places):
        return float(places[-1])
    before, after = utilisations[right - 1], utilisations[right]
    return places[right - 1] + (1 - before) / (after - before) * (places[right] - places[right - 1])


def _between(places: Sequence[int], values: Sequence[float], at: float) -> float:
    right = bisect_right(places, at)
    if right == 0:
        return values[0]
    if right == len(places):
        return values[-1]
    part = (at - places[right - 1]) / (places[right] - places[right - 1])
    return values[right - 1] + part * (values[right] - values[right - 1])
