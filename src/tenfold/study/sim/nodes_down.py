"""How many nodes of a fleet are down at once, today and at multiples of its size.

`sim failures` and `grow` read this one sample, so they cannot disagree about a fleet. Today's
fleet is drawn node by node, many times. Each draw runs for two years before it is looked at:
repairs have a long tail, and a fleet that starts whole flatters its first months. A larger fleet
adds outages to the same draws.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from math import ceil, log2

import numpy as np
from msgspec import Struct

from tenfold.compose.failures import FailureSource, faults_of
from tenfold.model.fault import Fault, FaultTrace
from tenfold.model.fleet.node import Node
from tenfold.model.units import DAY, HOUR, SECOND, Millis
from tenfold.physics.arrays import Floats, Ints
from tenfold.physics.operations.faults import spares_for
from tenfold.sim.faults.outages import (
    Outages,
    drawn_outages,
    generator_of,
    joined,
    outages_of,
    shifted_outages,
)
from tenfold.sim.measure.down_time import mean_count, quantile, sum_tables, time_by_count

WARM_UP_DAYS = 730
DAYS = 365.0
STEP_MS = HOUR
"""How often nodes down are counted in a larger fleet; today's fleet is measured exactly."""
TRACE_PARTS = 12
"""Parts of a trace that are drawn again to see how much rests on few of them."""
RESAMPLES = 200
INTERVAL = (0.1, 0.9)
LEVELS_PER_DOUBLING = 32
ANCHORS_PER_DOUBLING = 2
NEARLY_NONE = 0.05
"""Part of a step in size that is not rounded up: a thousandth more nodes."""


class SparesRequest(Struct, frozen=True, kw_only=True):
    """What is asked: how long, how often drawn, from which seed, and GPUs to hold up."""

    days: float | None = None
    seeds: int = 20
    seed: int = 0
    keep_gpus: int | None = None


class Draw(Struct, frozen=True, kw_only=True):
    """The faults of one draw; what is measured lies between two moments."""

    faults: Sequence[Fault]
    from_ms: Millis
    to_ms: Millis
    notes: Sequence[str] = ()


def draws_of(
    nodes: Sequence[Node], source: FailureSource, request: SparesRequest
) -> Iterator[Draw]:
    """Yield one draw per seed; a trace is replayed once."""
    from_ms, to_ms = _window(source, request)
    for number in range(1 if isinstance(source, FaultTrace) else request.seeds):
        faults, notes = faults_of(source, nodes, to_ms, request.seed + number)
        yield Draw(faults=list(faults), from_ms=from_ms, to_ms=to_ms, notes=notes)


def _window(source: FailureSource, request: SparesRequest) -> tuple[Millis, Millis]:
    if isinstance(source, FaultTrace):
        days = request.days or max(source.span_s * SECOND / DAY, 1 / 24)
        return Millis(0), Millis(round(days * DAY))
    warm_ms = WARM_UP_DAYS * DAY
    return Millis(warm_ms), Millis(warm_ms + round((request.days or DAYS) * DAY))


class SparesRange(Struct, frozen=True):
    """Spares needed, and the fewest and most that other draws would say."""

    needed: int
    low: int
    high: int
    down: int
    """Nodes down that are not exceeded for the share of time required."""
    down_mean: float


class NodesDown:
    """The nodes of a fleet that are down at once, at any multiple of its size.

    Nothing is drawn until it is asked.
    """

    def __init__(
        self,
        nodes: Callable[[], Sequence[Node]],
        source: FailureSource,
        request: SparesRequest | None = None,
    ) -> None:
        self._make_nodes, self._source = nodes, source
        self._request = request or SparesRequest()
        self._window = _window(source, self._request)
        self._copies: list[list[Outages]] = []
        self._known: dict[tuple[float, float], SparesRange] = {}

    def spares(self, level: float, share: float) -> SparesRange:
        """Return the spares that cover nodes down for all but a share of the time.

        `level` is the size as a multiple of today's. It is rounded up a little, so that a search
        comes back to the same sizes.
        """
        place = ceil(log2(level) * LEVELS_PER_DOUBLING - NEARLY_NONE)
        near = 2.0 ** (place / LEVELS_PER_DOUBLING)
        if (near, share) not in self._known:
            self._known[near, share] = self._spares(near, share)
        return self._known[near, share]

    def _spares(self, level: float, share: float) -> SparesRange:
        # Of a smaller fleet, the share that is down is that of today's: few nodes say little.
        nodes = max(1, round(len(self._nodes) * max(1.0, level)))
        tables = self._today_by_part if level == 1 else self._counted(level)
        whole = self._today if level == 1 else tables.sum(axis=0)
        down = quantile(whole, 1 - share)
        if level > 1:
            # Counting once an hour must not say less of more nodes.
            down = max(down, quantile(self._today, 1 - share))
        low, high = _resampled(tables, share, down)
        # Of few nodes a larger share is down, so that a few more can need fewer spares; which is
        # no reason to say that growing helps.
        least = self.spares(self._anchor(level), share) if level > 1 else None
        needed = max(spares_for(down, nodes, nodes), least.needed if least else 0)
        return SparesRange(
            needed=needed,
            low=min(needed, spares_for(low, nodes, nodes)),
            high=max(needed, spares_for(high, nodes, nodes)),
            down=down,
            down_mean=mean_count(whole),
        )

    @staticmethod
    def _anchor(level: float) -> float:
        """Return the next smaller size of those that are always looked at."""
        place = ceil(log2(level) * ANCHORS_PER_DOUBLING - 1e-9) - 1
        return 2.0 ** (max(0, place) / ANCHORS_PER_DOUBLING)

    @cached_property
    def _nodes(self) -> Sequence[Node]:
        return self._make_nodes()

    @cached_property
    def _draws(self) -> list[Draw]:
        return list(draws_of(self._nodes, self._source, self._request))

    @cached_property
    def _today(self) -> Floats:
        times = np.zeros(1)
        for draw in self._draws:
            times = sum_tables(times, time_by_count(draw.faults, draw.from_ms, draw.to_ms))
        return times

    @cached_property
    def _today_by_part(self) -> Floats:
        return self._counted(1.0)

    @property
    def _seeds(self) -> range:
        return range(self._request.seed, self._request.seed + max(1, self._request.seeds))

    @cached_property
    def _base(self) -> list[Outages]:
        """Today's outages by seed; those of a trace are the same for all."""
        by_node = isinstance(self._source, FaultTrace)
        found = [
            outages_of(draw.faults, by_node=by_node, draw=generator_of(seed, "today"))
            for seed, draw in zip(self._seeds, self._draws, strict=False)
        ]
        return found * len(self._seeds) if by_node else found

    def _outages(self, at: int, level: float) -> Outages:
        """Return the outages of one seed that overlap the time measured."""
        for copy in range(len(self._copies) + 1, ceil(level)):
            self._copies.append([self._copy(place, copy) for place in range(len(self._seeds))])
        copies = self._copies[: max(0, ceil(level) - 1)]
        return joined([self._base[at], *(copy[at] for copy in copies)]).up_to(level)

    def _copy(self, at: int, copy: int) -> Outages:
        from_ms, to_ms = self._window
        draw = generator_of(self._seeds[at], copy)
        if isinstance(self._source, FaultTrace):
            return shifted_outages(self._base[at], to_ms, copy, draw)
        sites: dict[str, int] = {}
        for node in self._nodes:
            sites[node.site] = sites.get(node.site, 0) + 1
        return drawn_outages(self._source, sites, to_ms, copy, draw).lasting_after(from_ms)

    def _counted(self, level: float) -> Floats:
        """Return how often how many nodes were down: one row per seed, or per part of a trace."""
        from_ms, to_ms = self._window
        steps = max(1, (to_ms - from_ms) // STEP_MS)
        counts = np.stack(
            [
                _down_by_step(self._outages(at, level), from_ms, steps)
                for at in range(len(self._seeds))
            ]
        )
        if isinstance(self._source, FaultTrace):
            counts = counts.T
            rows = np.array_split(counts, min(TRACE_PARTS, len(counts)))
        else:
            rows = list(counts)
        wide = int(counts.max()) + 1
        return np.stack([np.bincount(row.ravel(), minlength=wide) for row in rows]).astype(float)


def _down_by_step(outages: Outages, from_ms: int, steps: int) -> Ints:
    """Return the nodes down at the middle of each step."""
    middle = from_ms + STEP_MS // 2

    def step_of(moments: Ints) -> Ints:
        # The first step whose middle is at or after the moment.
        return np.clip(-((middle - moments) // STEP_MS), 0, steps)

    changes = np.bincount(step_of(outages.starts_ms), outages.nodes, steps + 1)
    changes -= np.bincount(step_of(outages.ends_ms), outages.nodes, steps + 1)
    return np.rint(np.cumsum(changes)[:steps]).astype(np.int64)


def _resampled(tables: Floats, share: float, down: int) -> tuple[int, int]:
    """Return the range of nodes down if other draws of the same kind had been made."""
    rows = len(tables)
    if rows < 2:
        return down, down
    weights = generator_of("resampled", rows).multinomial(rows, np.full(rows, 1 / rows), RESAMPLES)
    reached = np.cumsum(weights @ tables, axis=1)
    within = reached < reached[:, -1:] * (1 - share) * (1 - 1e-9)
    low, high = np.quantile(within.sum(axis=1), INTERVAL, method="nearest")
    return min(down, int(low)), max(down, int(high))
