"""How many nodes are down at once, and how many spares keep a fleet whole.

`nodes_down.py` draws the faults; here they are counted by pool and by size of job.
"""

from collections.abc import Sequence
from math import ceil, exp, sqrt

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tenfold.compose.failures import FailureSource
from tenfold.model.errors import InputError
from tenfold.model.fault import Fault, FaultTrace
from tenfold.model.fleet.node import Node
from tenfold.model.units import DAY, Millis
from tenfold.physics.arrays import Floats
from tenfold.physics.operations.faults import poisson_quantile, poisson_spares, spares_for
from tenfold.sim.measure.down_time import mean_count, quantile, sum_tables, time_by_count
from tenfold.study.sim.nodes_down import DownCounts, Draw, SparesRequest, draws_of

SHARES = (0.5, 0.9, 0.99)


class DownStats(Struct, frozen=True, kw_only=True):
    """Nodes down at once: on average, and what is not exceeded for a share of the time."""

    mean: float
    p50: int
    p90: int
    p99: int
    max: int | None = None


class PoolDownStats(Struct, frozen=True, kw_only=True):
    """What one pool loses, and the spares of its kind that hold it whole."""

    pool: str
    nodes: int
    gpus: int
    down: DownStats
    poisson: DownStats
    spares: DownStats
    spares_poisson: DownStats


class JobSize(Struct, frozen=True, kw_only=True):
    """How long a job of a size runs until a fault stops it, over all places for it."""

    gpus: int
    nodes: int
    mttf_h: float
    day_undisturbed: float
    """Chance of a day without an interruption, where faults are plain chance."""


class SparesReport(Struct, frozen=True, kw_only=True):
    """Everything that `sim failures` says about a fleet."""

    fleet: str
    failures: str
    nodes: int
    gpus: int
    gpus_kept: int
    days: float
    seeds: int
    faults_per_day: float
    faults_per_1000_node_days: float
    interruptions: float
    interruptions_low: float
    interruptions_high: float
    down: DownStats
    poisson: DownStats
    spares: DownStats
    spares_p99_low: int
    spares_p99_high: int
    """The fewest and the most that other draws, or other parts of the trace, would say, at 80%."""
    spares_poisson: DownStats
    pools: tuple[PoolDownStats, ...]
    jobs: tuple[JobSize, ...]
    time_share_by_down: tuple[float, ...]
    assumed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class _Tally:
    """What all draws add up to."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.pool_of = {node.id: str(node.pool) for node in nodes}
        self.times = np.zeros(1)
        self.pool_times = dict.fromkeys(self.pool_of.values(), np.zeros(1))
        with_gpus = [node for node in nodes if node.gpus]
        self.place_of = {node.id: place for place, node in enumerate(with_gpus)}
        self.sizes = _sizes(with_gpus) if with_gpus else {}
        self.stops = dict.fromkeys(self.sizes.values(), 0)
        self.faults = self.moments = self.draws = 0
        self.notes: list[str] = []

    def add(self, faults: Sequence[Fault], from_ms: Millis, to_ms: Millis) -> None:
        self.draws += 1
        seen = [fault for fault in faults if from_ms <= fault.at_ms < to_ms]
        self.faults += len(seen)
        self.moments += len({fault.at_ms for fault in seen})
        self._add_stops(seen)
        self.times = sum_tables(self.times, time_by_count(faults, from_ms, to_ms))
        parts: dict[str, list[Fault]] = {pool: [] for pool in self.pool_times}
        for fault in faults:
            parts[self.pool_of[fault.node_id]].append(fault)
        for pool, own in parts.items():
            times = time_by_count(own, from_ms, to_ms)
            self.pool_times[pool] = sum_tables(self.pool_times[pool], times)

    def _add_stops(self, seen: Sequence[Fault]) -> None:
        """Count what would stop jobs side by side: a burst stops a job once."""
        struck = [
            (fault.at_ms, self.place_of[fault.node_id])
            for fault in seen
            if fault.node_id in self.place_of
        ]
        for count in self.stops:
            whole = len(self.place_of) // count * count
            jobs = {(at_ms, place // count) for at_ms, place in struck if place < whole}
            self.stops[count] += len(jobs)


def size_spares(
    fleet: str, nodes: Sequence[Node], source: FailureSource, question: SparesRequest
) -> SparesReport:
    """Return how often a fleet's nodes fail, how many at once, and what holds it whole."""
    assert nodes, "a fleet file has at least one node"
    there = sum(node.gpus for node in nodes)
    if question.keep_gpus is not None and question.keep_gpus > there:
        raise InputError(
            "wrong-value",
            f"`--keep-gpus` is {question.keep_gpus:,}, but the fleet has {there:,} GPUs",
            f"use `--keep-gpus {there}` or less, or add nodes to the fleet file",
            field="--keep-gpus",
        )
    draws = draws_of(nodes, source, question)
    tally, days = _tally(nodes, draws)
    counts = DownCounts(draws, source, len(nodes))
    gpus = sum(node.gpus for node in nodes)
    keep = question.keep_gpus or gpus
    kept_nodes = ceil(len(nodes) * keep / gpus) if gpus else len(nodes)
    faults, moments = tally.faults / tally.draws, tally.moments / tally.draws
    rate = faults / (len(nodes) * days)
    down = _down(tally.times)
    p99 = counts.spares(kept_nodes / len(nodes), 1 - SHARES[-1])
    return SparesReport(
        fleet=fleet,
        failures=source.file if isinstance(source, FaultTrace) else source.name,
        nodes=len(nodes),
        gpus=gpus,
        gpus_kept=keep,
        days=days,
        seeds=tally.draws,
        faults_per_day=faults / days,
        faults_per_1000_node_days=rate * 1_000,
        interruptions=moments,
        interruptions_low=max(0.0, moments - 3 * sqrt(moments)),
        interruptions_high=moments + 3 * sqrt(moments),
        down=down,
        poisson=_poisson(down.mean),
        spares=_spares(counts, down.mean, kept_nodes),
        spares_p99_low=p99.low,
        spares_p99_high=p99.high,
        spares_poisson=_spares_poisson(down.mean, len(nodes), kept_nodes),
        pools=tuple(
            _pool(pool, nodes, times, _of_pool(draws, tally, pool), source)
            for pool, times in tally.pool_times.items()
        ),
        jobs=_jobs(tally, days),
        time_share_by_down=tuple((tally.times / tally.times.sum()).tolist()),
        assumed=() if isinstance(source, FaultTrace) else source.assumed,
        notes=tuple(tally.notes),
    )


def _tally(nodes: Sequence[Node], draws: Sequence[Draw]) -> tuple[_Tally, float]:
    tally, days = _Tally(nodes), 0.0
    for draw in draws:
        tally.add(draw.faults, draw.from_ms, draw.to_ms)
        tally.notes = list(draw.notes)
        days = (draw.to_ms - draw.from_ms) / DAY
    return tally, days


def _of_pool(draws: Sequence[Draw], tally: _Tally, pool: str) -> list[Draw]:
    return [
        replace(
            draw,
            faults=[fault for fault in draw.faults if tally.pool_of[fault.node_id] == pool],
        )
        for draw in draws
    ]


def _down(times: Floats) -> DownStats:
    p50, p90, p99 = (quantile(times, share) for share in SHARES)
    most = int(np.flatnonzero(times)[-1]) if times.any() else 0
    return DownStats(mean=mean_count(times), p50=p50, p90=p90, p99=p99, max=most)


def _poisson(mean: float) -> DownStats:
    p50, p90, p99 = (poisson_quantile(mean, share) for share in SHARES)
    return DownStats(mean=mean, p50=p50, p90=p90, p99=p99)


def _spares(counts: DownCounts, down_mean: float, keep: int) -> DownStats:
    p50, p90, p99 = (counts.needed(keep / counts.nodes, 1 - share) for share in SHARES)
    mean = float(spares_for(down_mean, counts.nodes, keep))
    return DownStats(mean=mean, p50=p50, p90=p90, p99=p99)


def _spares_poisson(down_mean: float, nodes: int, keep: int) -> DownStats:
    p50, p90, p99 = (poisson_spares(down_mean / nodes, keep, share) for share in SHARES)
    mean = float(spares_for(down_mean, nodes, keep))
    return DownStats(mean=mean, p50=p50, p90=p90, p99=p99)


def _pool(
    pool: str, nodes: Sequence[Node], times: Floats, draws: Sequence[Draw], source: FailureSource
) -> PoolDownStats:
    own = [node for node in nodes if node.pool == pool]
    down = _down(times)
    return PoolDownStats(
        pool=pool,
        nodes=len(own),
        gpus=sum(node.gpus for node in own),
        down=down,
        poisson=_poisson(down.mean),
        spares=_spares(DownCounts(draws, source, len(own)), down.mean, len(own)),
        spares_poisson=_spares_poisson(down.mean, len(own), len(own)),
    )


def _sizes(nodes: Sequence[Node]) -> dict[int, int]:
    """Return nodes by job GPUs, doubling from one node; a node is what most GPUs stand in."""
    by_size: dict[int, int] = {}
    for node in nodes:
        by_size[node.gpus] = by_size.get(node.gpus, 0) + node.gpus
    a_node = max(by_size, key=lambda size: by_size[size])
    whole = sum(node.gpus for node in nodes)
    if not whole:
        return {}
    sizes: dict[int, int] = {}
    count = 1
    while count < len(nodes) and count * a_node < whole:
        sizes[count * a_node] = count
        count *= 2
    return {**sizes, whole: len(nodes)}


def _jobs(tally: _Tally, days: float) -> tuple[JobSize, ...]:
    made: list[JobSize] = []
    for gpus, count in tally.sizes.items():
        jobs = len(tally.place_of) // count
        stops_per_day = tally.stops[count] / (jobs * days * tally.draws)
        if stops_per_day:
            made.append(
                JobSize(
                    gpus=gpus,
                    nodes=count,
                    mttf_h=24 / stops_per_day,
                    day_undisturbed=exp(-stops_per_day),
                )
            )
    return tuple(made)
