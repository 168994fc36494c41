"""How a figure of runs rises with the factor: found with few runs, told with its interval.

One seed looks for the two places of the grid between which the limit is passed; the other seeds
are run only there. More work seldom means less strain, but a run is one course of luck, so
what falls between two places is pooled with its neighbours before the crossing is read off.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from math import log2
from statistics import median

from msgspec import Struct

from tenfold.study.grow.runs.run import RunFigures
from tenfold.study.grow.runs.runs import PER_DOUBLING, Runs, index_above
from tenfold.study.grow.state import State

LOWEST = -2 * PER_DOUBLING
"""A layer that binds already is followed down to a quarter of the work."""
FIRST_STEP = PER_DOUBLING // 2
SPREAD_MOST = 1.0

Read = Callable[[RunFigures], float]
"""The strain of a layer in one run."""


class RunCurve(Struct, frozen=True, kw_only=True):
    """Strain at some places of the grid, never falling; between them it runs straight."""

    places: tuple[int, ...]
    utilisations: tuple[float, ...]
    spread: float
    """How far strain may be off where it passes 1, by what seeds say."""

    def utilisation(self, factor: float) -> float:
        """Return the strain at a factor; beyond what was looked at it stays as it is there."""
        return _between(self.places, self.utilisations, log2(factor) * PER_DOUBLING)

    def index_from(self, factor: float) -> int:
        """Return the first place looked at that is not below a factor, or else the last."""
        at = log2(factor) * PER_DOUBLING
        return next((place for place in self.places if place >= at - 1e-6), self.places[-1])


def run_curve(runs: Runs, state: State, read: Read, most: float, seeds: Sequence[int]) -> RunCurve:
    """Return the curve of a layer up to a factor, exact where it passes its limit."""
    first = seeds[0]
    looked: dict[int, float] = {}

    def at(place: int) -> float:
        if place not in looked:
            looked[place] = read(runs.at(state, [(place, first)])[0])
        return looked[place]

    found = _bracket(at, index_above(most))
    if found is None:
        return _curve({place: [one] for place, one in looked.items()}, [])
    near = [found - 1, found, found + 1, found + 2]
    asked = [(place, seed) for seed in seeds for place in near]
    told = dict(zip(asked, map(read, runs.at(state, asked)), strict=True))
    by_place = {place: [one] for place, one in looked.items()}
    by_place |= {place: [told[place, seed] for seed in seeds] for place in near}
    crossings = [_crossing(near, pooled([told[place, seed] for place in near])) for seed in seeds]
    return _curve(by_place, crossings)


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
    """Return the place before the limit is passed, or None where it never or always is."""
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


def _curve(by_place: dict[int, list[float]], crossings: Sequence[float]) -> RunCurve:
    places = sorted(by_place)
    utilisations = pooled([median(by_place[place]) for place in places])
    spread = 0.0
    if crossings:
        early = _between(places, utilisations, min(crossings))
        late = _between(places, utilisations, max(crossings))
        spread = max(1 / early - 1 if early > 0 else SPREAD_MOST, late - 1, 0.0)
    return RunCurve(
        places=tuple(places), utilisations=tuple(utilisations), spread=min(SPREAD_MOST, spread)
    )


def _crossing(places: Sequence[int], utilisations: Sequence[float]) -> float:
    """Return where strain passes 1, as a place between places; an end where it does not."""
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
