"""How many nodes of a fleet are down at once, today and at multiples of its size.

`sim failures` and `grow` read this one sample, so they cannot disagree about a fleet. Today's
fleet is drawn node by node, many times. Each draw runs for 20 years before it is looked at:
repairs have a long tail, and a fleet that starts whole flatters its first months. A larger fleet
is several of today's that fail at other times, and a part of one; spares fail like other nodes, so
they make the fleet larger too.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import count
from math import floor, log2
from typing import Literal

import numpy as np
from msgspec import Struct

from tenfold.compose.failures import FailureSource, faults_of
from tenfold.model.fault import Fault, FaultTrace
from tenfold.model.fleet.node import Node
from tenfold.model.units import DAY, SECOND, Millis
from tenfold.physics.arrays import Floats
from tenfold.physics.operations.down_counts import tails_of_sum
from tenfold.sim.faults.outages import (
    DownSample,
    burst_outages,
    generator_of,
    node_outages,
    other_node_outages,
)

WARM_UP_DAYS = 7_300
DAYS = 365.0
TRACE_PARTS = 20
"""Parts of a trace that are drawn again to see how much rests on few of them."""
TRACE_SAMPLES = 16
"""Samples of a trace's nodes that stand for a part of the fleet."""
RESAMPLES = 100
INTERVAL = (0.1, 0.9)
STEPS_PER_DOUBLING = 32
"""Sizes that are worked out; between two the share of time is interpolated."""
SEEDS_FIRST = 64
SEEDS_MOST = 512
FAULTS_MOST = 400_000
"""Faults after which no further seed is drawn, unless seeds are given."""
KNOWN_WITHIN = 0.05
"""Seeds are added until P99 is known this well, or to a quarter of a node, at 80%."""
NODE_PART = 0.25
P99_SHARE = 0.01
SPARES_MOST = 32
"""Spares for each node beyond which none are enough."""
ROUNDING = 1 + 1e-9
End = Literal["needed", "low", "high"]
"""The likeliest number of spares, or an end of its range."""
ENDS: tuple[End, ...] = ("needed", "low", "high")


class SparesRequest(Struct, frozen=True, kw_only=True):
    """What is asked: how long, how often drawn, from which seed, and GPUs to hold up."""

    days: float | None = None
    seeds: int | None = None
    """None: as many as P99 takes to be known well."""
    seed: int = 0
    keep_gpus: int | None = None


class Draw(Struct, frozen=True, kw_only=True):
    """The faults of one draw that last into the time between two moments."""

    faults: Sequence[Fault]
    from_ms: Millis
    to_ms: Millis
    notes: Sequence[str] = ()


def draws_of(nodes: Sequence[Node], source: FailureSource, request: SparesRequest) -> list[Draw]:
    """Return one draw per seed; a trace is replayed once."""
    if isinstance(source, FaultTrace):
        return [_draw(nodes, source, request, 0)]
    if request.seeds is not None:
        return [_draw(nodes, source, request, number) for number in range(request.seeds)]
    draws: list[Draw] = []
    for doubled in count():
        seeds = SEEDS_FIRST << doubled
        draws += [_draw(nodes, source, request, number) for number in range(len(draws), seeds)]
        faults = sum(len(draw.faults) for draw in draws)
        if seeds >= SEEDS_MOST or faults >= FAULTS_MOST or _known(draws):
            break
    return draws


def _draw(
    nodes: Sequence[Node], source: FailureSource, request: SparesRequest, number: int
) -> Draw:
    from_ms, to_ms = _window(source, request)
    faults, notes = faults_of(source, nodes, to_ms, request.seed + number, from_ms)
    lasting = [fault for fault in faults if fault.until_ms > from_ms]
    return Draw(faults=lasting, from_ms=from_ms, to_ms=to_ms, notes=notes)


def _window(source: FailureSource, request: SparesRequest) -> tuple[Millis, Millis]:
    if isinstance(source, FaultTrace):
        days = request.days or max(source.span_s * SECOND / DAY, 1 / 24)
        return Millis(0), Millis(round(days * DAY))
    warm_ms = WARM_UP_DAYS * DAY
    return Millis(warm_ms), Millis(warm_ms + round((request.days or DAYS) * DAY))


def _known(draws: Sequence[Draw]) -> bool:
    """Return whether other draws would say nearly the same P99."""
    shares = _law_sample(draws).shares(1.0)[:, 0]
    above = 1 - np.cumsum(weights_of(len(shares)) @ shares, axis=1)
    # Between two counts, so that a whole node more is not all or nothing.
    over = (above > P99_SHARE).sum(axis=1)
    rows = np.arange(len(over))
    before = np.where(over > 0, above[rows, np.maximum(over, 1) - 1], 1.0)
    after = above[rows, np.minimum(over, above.shape[1] - 1)]
    p99 = over + (before - P99_SHARE) / np.maximum(before - after, 1e-12)
    low, high = np.quantile(p99, INTERVAL)
    return bool(high - low <= 2 * max(KNOWN_WITHIN * float(p99.mean()), NODE_PART))


def weights_of(rows: int) -> Floats:
    """Return how much each row counts if as many are drawn again, one line for each time."""
    draw = generator_of("resampled", rows)
    return draw.multinomial(rows, np.full(rows, 1 / rows), RESAMPLES) / rows


def _law_sample(draws: Sequence[Draw]) -> DownSample:
    outages = [
        burst_outages(draw.faults, generator_of("today", number))
        for number, draw in enumerate(draws)
    ]
    return DownSample(outages, draws[0].from_ms, draws[0].to_ms)


class _LawShares:
    """Shares of time by nodes down, from draws of a law; each draw might have been another."""

    def __init__(self, draws: Sequence[Draw]) -> None:
        self._sample, self._weights = _law_sample(draws), weights_of(len(draws))

    def likeliest(self, level: float) -> Floats:
        return self._sample.shares(level).mean(axis=(0, 1))[None]

    def resampled(self, level: float) -> Floats:
        return self._weights @ self._sample.shares(level)[:, 0]

    def resampled_other(self, level: float) -> Floats:
        return self.resampled(level)


class _TraceShares:
    """Shares of time by nodes down, from one trace: of its nodes, or of others like them.

    Parts of its time might have been others, and nodes that are added are not those recorded.
    """

    def __init__(self, draw: Draw, nodes: int) -> None:
        from_ms, to_ms = draw.from_ms, draw.to_ms
        own = [node_outages(draw.faults, at / TRACE_SAMPLES) for at in range(TRACE_SAMPLES)]
        self._own = DownSample(own, from_ms, to_ms, TRACE_PARTS)
        others = [
            other_node_outages(draw.faults, nodes, to_ms, generator_of("others", at))
            for at in range(RESAMPLES)
        ]
        self._others = DownSample(others, from_ms, to_ms, TRACE_PARTS)
        self._weights = weights_of(TRACE_PARTS) * TRACE_PARTS

    def likeliest(self, level: float) -> Floats:
        return self._own.shares(level).sum(axis=1).mean(axis=0)[None]

    def resampled(self, level: float) -> Floats:
        return self._weights @ self._own.shares(level).mean(axis=0)

    def resampled_other(self, level: float) -> Floats:
        return np.einsum("bp,bpc->bc", self._weights, self._others.shares(level))


class SparesRange(Struct, frozen=True):
    """Spares needed, and the fewest and most that other draws would say."""

    needed: int
    low: int
    high: int
    down: int
    """Nodes down that are not exceeded for the share of time required."""
    down_mean: float


class DownCounts:
    """Nodes down at once by size of the fleet, from draws of today's."""

    def __init__(self, draws: Sequence[Draw], source: FailureSource, nodes: int) -> None:
        self.nodes = nodes
        self._shares = (
            _TraceShares(draws[0], nodes) if isinstance(source, FaultTrace) else _LawShares(draws)
        )
        self._tails: dict[tuple[float, End], Floats] = {}

    @cached_property
    def today(self) -> Floats:
        """The shares of time with 0, 1, 2 ... nodes down today."""
        return self._shares.likeliest(1.0)[0]

    @property
    def mean(self) -> float:
        """Nodes down on average today."""
        return float(self.today @ np.arange(len(self.today)))

    def spares(self, level: float, share: float) -> SparesRange:
        """Return the spares that keep a multiple of the nodes up for all but a share of time."""
        needed, low, high = (self.needed(level, share, end) for end in ENDS)
        return SparesRange(
            needed=needed,
            low=min(needed, low),
            high=max(needed, high),
            down=self._least(lambda down: self._short(level, down, "needed") <= share * ROUNDING),
            down_mean=self.mean * level,
        )

    def needed(self, level: float, share: float, end: End = "needed") -> int:
        """Return the likeliest number of spares, or an end of its range."""

        def covered(spares: int) -> bool:
            size = level + spares / self.nodes
            return self._short(size, spares, end) <= share * ROUNDING

        return self._least(covered)

    def _least(self, holds: Callable[[int], bool]) -> int:
        """Return the least number that holds, up to where none is enough."""
        if holds(0):
            return 0
        most = SPARES_MOST * self.nodes
        low, high = 0, 1
        while not holds(high):
            if high >= most:
                return most
            low, high = high, min(2 * high, most)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(middle) else (middle, high)
        return high

    def _short(self, level: float, spares: int, end: End) -> float:
        """Return the share of time with more nodes down than spares, at a size of the fleet."""
        step = 2.0 ** floor(log2(level)) / STEPS_PER_DOUBLING
        place = floor(level / step)
        after = level / step - place
        shares = [
            float(tails[spares]) if spares < len(tails) else 0.0
            for tails in (self._above(at * step, end) for at in (place, place + 1))
        ]
        return shares[0] * (1 - after) + shares[1] * after

    def _above(self, level: float, end: End) -> Floats:
        """Return the share of time with more than 0, 1, 2 ... nodes down."""
        if (level, end) not in self._tails:
            times, found = floor(level), self._shares
            part = level - times
            if end == "needed":
                counts = ((found.likeliest(1.0), times), (found.likeliest(part), 1))
                self._tails[level, end] = tails_of_sum(*counts)[0]
            else:
                own = (found.resampled(min(1.0, level)), 1)
                more = ((found.resampled_other(1.0), times - 1), (found.resampled_other(part), 1))
                tails = tails_of_sum(own, *more) if times else tails_of_sum(own)
                low, high = np.quantile(tails, INTERVAL, axis=0)
                self._tails[level, "low"], self._tails[level, "high"] = low, high
        return self._tails[level, end]


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
        self._known: dict[tuple[float, float], SparesRange] = {}

    @cached_property
    def counts(self) -> DownCounts:
        """Nodes down by size of the fleet."""
        nodes = self._make_nodes()
        draws = draws_of(nodes, self._source, self._request)
        return DownCounts(draws, self._source, len(nodes))

    def spares(self, level: float, share: float) -> SparesRange:
        """Return the spares for a multiple of today's nodes, for all but a share of the time."""
        if (level, share) not in self._known:
            self._known[level, share] = self.counts.spares(level, share)
        return self._known[level, share]
