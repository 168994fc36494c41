"""How far a breaking factor may be off because its history is a sample: the block bootstrap.

A few histories are drawn from the days of the real one, and each is simulated near the factor
found, until its own breaking factor is known. Most of the difference between two histories is
their load, which needs no run: its deviation is computed from all days, and runs only show what is
left once the load is accounted for. So few of them are enough.

A short history also breaks later than its demand would. The rare long queues that make up the tail
of waits are missing from most samples of a few weeks. And where more work comes than can run, waits
grow for as long as that lasts: they pass the limit before a short history ends only if far more
comes. A history several times as long, drawn from the same days, shows both.
"""

from collections.abc import Sequence
from math import exp, hypot, log, log2, sqrt

from tenfold.model.growth.growth import grows_along
from tenfold.study.grow.runs.curve import Read
from tenfold.study.grow.runs.resample import deviations_80
from tenfold.study.grow.runs.runs import PER_DOUBLING, Runs
from tenfold.study.grow.state import State

DRAWS, DRAWS_LEAST = 6, 3
RUNS_PER_DRAW = 3
JOBS_MOST = 400_000
"""Jobs of all runs after which no more histories are drawn; those of large runs differ little."""
STEPS_MOST = 8
"""Grid points tried per drawn history; one that is further off counts with the last."""
LONGER = 6
"""How many times as long the history is that shows how far a short one is off ..."""
LONGER_LEAST = 2
LONGER_JOBS = 150_000
"""... and the jobs of its runs, at most; a history of many jobs is off by little."""
LENGTH_BIAS_LEAST, LENGTH_BIAS_MOST = 0.8, 1.5
"""A factor is more often too high than too low: by a half if the limit of waits is a third of the
history, which far more work than can run passes only at its end."""
LONGER_STEPS_MOST = 10
"""Grid points tried of the longer history: as far as the largest bias."""


def factor_spread(runs: Runs, state: State, read: Read, k: float, *, simulated: bool) -> float:
    """Return how far a factor may be off in either direction, at 80%, as a share of it.

    Where drawn histories are not simulated, chance in the queue is taken to add as much as chance
    in the load.
    """
    blocks = runs.blocks(state)
    load = blocks.load_deviation
    draws = _affordable(runs, state, k) if simulated else 0
    # Where nodes grow with their jobs, a fuller history is not further along the axis.
    follows_load = grows_along(runs.axis, "jobs") and not grows_along(runs.axis, "nodes")
    if draws:
        rest = _deviation(_residuals(runs, state, read, k, draws, follows_load))
        whole = hypot(load, rest) if follows_load else rest
    else:
        whole = sqrt(2) * load
    return exp(deviations_80(blocks.freedom) * whole) - 1


def length_bias(runs: Runs, state: State, read: Read, k: float) -> float:
    """Return how many times too high a factor is because the history is short."""
    cost = runs.jobs_at(state, k) * RUNS_PER_DRAW
    times = min(LONGER, int(min(LONGER_JOBS, JOBS_MOST - runs.jobs) / max(1.0, cost)))
    if runs.history_window is not None or times < LONGER_LEAST:
        return 1.0
    expected = log2(k) * PER_DOUBLING
    search = _Search(round(expected))
    for _ in range(LONGER_STEPS_MOST):
        if search.found:
            break
        [one] = runs.at_drawn(state, [(search.place, 0, -times)])
        search.saw(read(one))
    found = 2.0 ** ((expected - search.crossing) / PER_DOUBLING)
    return min(LENGTH_BIAS_MOST, max(LENGTH_BIAS_LEAST, found))


def _affordable(runs: Runs, state: State, k: float) -> int:
    """Return how many histories to draw; none if there are too few for a deviation."""
    cost = runs.jobs_at(state, k) * RUNS_PER_DRAW
    draws = min(DRAWS, int((JOBS_MOST - runs.jobs) / max(1.0, cost)))
    return draws if draws >= DRAWS_LEAST else 0


def _residuals(
    runs: Runs, state: State, read: Read, k: float, draws: int, follows_load: bool
) -> list[float]:
    """Return how far drawn histories break from where their load alone would have them break."""
    blocks = runs.blocks(state)
    loads = [blocks.load(draw) if follows_load else 1.0 for draw in range(1, draws + 1)]
    expected = [log2(k / load) * PER_DOUBLING for load in loads]
    searches = [_Search(round(place)) for place in expected]
    for _ in range(STEPS_MOST):
        wanted = [
            (search.place, draw, draw)
            for draw, search in enumerate(searches, 1)
            if not search.found
        ]
        if not wanted:
            break
        figures = runs.at_drawn(state, wanted)
        for (_, _, draw), one in zip(wanted, figures, strict=True):
            searches[draw - 1].saw(read(one))
    return [
        (search.crossing - place) / PER_DOUBLING * log(2)
        for search, place in zip(searches, expected, strict=True)
    ]


class _Search:
    """Goes up or down the grid, one step at a time, until utilisation passes 1."""

    def __init__(self, place: int) -> None:
        self.place = place
        self.below: tuple[int, float] | None = None
        self.above: tuple[int, float] | None = None

    @property
    def found(self) -> bool:
        return self.below is not None and self.above is not None

    @property
    def crossing(self) -> float:
        if self.below is None or self.above is None:
            return float(self.place)
        (low, before), (high, after) = self.below, self.above
        return low + (1 - before) / (after - before) * (high - low)

    def saw(self, utilisation: float) -> None:
        if utilisation > 1:
            self.above = (self.place, utilisation)
            self.place -= 1
        else:
            self.below = (self.place, utilisation)
            self.place += 1


def _deviation(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return sqrt(sum((one - mean) ** 2 for one in values) / (len(values) - 1))
