"""How near generated jobs come to the trace that their mix was fitted to.

Jobs are drawn on a fleet and for a span that give the trace's own load, with several seeds;
sizes, durations by size and times between submissions are compared quantile by quantile.
"""

from collections.abc import Callable, Sequence
from statistics import fmean

import numpy as np
import polars as pl

from benchmarks.packing import DATA
from benchmarks.verdict import Verdict
from tenfold.compose.fleet import load_facts
from tenfold.model.fleet.node import Node
from tenfold.model.ids import NodeId, PoolId, SiteId
from tenfold.model.job.job import Job
from tenfold.model.units import SECOND, Millis
from tenfold.sim.workload.generate import Demand, generate_jobs

SEEDS = 5
QUANTILES = (0.10, 0.25, 0.50, 0.75, 0.90, 0.99)
WEEKS_FROM_S, WEEKS_TO_S = 21 * 86_400, 98 * 86_400
MURI = ("muri-trace1", "muri-trace3")
NODES = [
    Node(id=NodeId(f"n{one}"), pool=PoolId("p"), site=SiteId("s"), gpus=8) for one in range(64)
]


def philly() -> pl.DataFrame:
    """Return eleven whole weeks: the trace has hardly any job before day 20 and after 99."""
    whole = pl.read_parquet(DATA / "jobs" / "philly_2017.parquet").sort("submit_s")
    inside = pl.col("submit_s").is_between(WEEKS_FROM_S, WEEKS_TO_S, closed="left")
    return whole.filter(inside).with_columns(pl.col("submit_s") - WEEKS_FROM_S)


def muri() -> pl.DataFrame:
    """Return two heavily loaded slices; the others are kept aside."""
    slices = pl.read_parquet(DATA / "jobs" / "muri_philly_slices.parquet")
    named = slices.with_columns(team=pl.col("trace").cast(pl.String))
    return named.filter(pl.col("team").is_in(MURI)).sort("submit_s")


def goodness(thresholds: dict[str, float]) -> list[Verdict]:
    """Print generated beside recorded jobs; return how far they are apart."""
    verdicts: list[Verdict] = []
    for name, trace in (("philly", philly()), ("muri-heavy", muri())):
        verdicts += _compared(name, trace, thresholds)
    return verdicts


def _compared(name: str, trace: pl.DataFrame, thresholds: dict[str, float]) -> list[Verdict]:
    drawn = _drawn(name, trace)
    jobs = fmean(len(one) for one in drawn)
    print(f"{name}: {len(trace):,} jobs in the trace, {jobs:,.0f} drawn for the same GPU time")
    print(f"{'':34}{'trace':>14}{'generated':>14}")

    def row(what: str, figure: Callable[[pl.DataFrame], float]) -> tuple[float, float]:
        recorded, made = figure(trace), fmean(figure(one) for one in drawn)
        print(f"{what:34}{recorded:14,.2f}{made:14,.2f}")
        return recorded, made

    sizes = [
        row(f"jobs of {gpus:g} gpus, %", lambda one, gpus=gpus: _share(one, gpus))
        for gpus in sorted(trace["gpus"].unique())
    ]
    durations = [
        row(
            f"duration, {of or 'all'} gpus, P{at:.0%}, s",
            lambda one, of=of, at=at: _duration(one, of, at),
        )
        for of in (None, 1, 4, 8)
        for at in QUANTILES
    ]
    gaps = [
        row(f"between jobs, P{at:.0%}, s", lambda one, at=at: _gap(one, at)) for at in QUANTILES
    ]
    row("jobs an hour, variance / mean", _burst)
    limits = {key: thresholds.get(f"{name}_{key}", np.inf) for key in ("points", "factor", "gap")}
    apart = max(abs(recorded - made) for recorded, made in sizes)
    return [
        Verdict(f"{name}: shares of sizes, points apart", apart, limits["points"]),
        Verdict(f"{name}: durations, factor apart", _factor(durations), limits["factor"]),
        Verdict(f"{name}: time between jobs, factor apart", _factor(gaps), limits["gap"]),
    ]


def _drawn(name: str, trace: pl.DataFrame) -> list[pl.DataFrame]:
    mix = load_facts().workloads.get(name)
    span_s = float(np.ceil(float(trace["submit_s"].to_numpy().max()) / 86_400) * 86_400)
    gpus = sum(node.gpus for node in NODES)
    load = float((trace["gpus"] * trace["duration_s"]).sum()) / gpus / span_s
    demand = Demand(span_ms=Millis(round(span_s * SECOND)), load=load, max_gpus=gpus)
    return [_table(generate_jobs(mix, NODES, demand, seed)) for seed in range(SEEDS)]


def _table(jobs: Sequence[Job]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "submit_s": [job.submitted_ms / SECOND for job in jobs],
            "duration_s": [(job.duration_ms or 0) / SECOND for job in jobs],
            "gpus": [float(job.shape.gpus) for job in jobs],
        }
    )


def _factor(pairs: Sequence[tuple[float, float]]) -> float:
    return fmean(max(pair) / max(1.0, min(pair)) for pair in pairs)


def _share(trace: pl.DataFrame, gpus: float) -> float:
    return 100 * float((trace["gpus"].to_numpy() == gpus).mean())


def _duration(trace: pl.DataFrame, of: int | None, at: float) -> float:
    kept = trace if of is None else trace.filter(pl.col("gpus") == of)
    return float(np.quantile(kept["duration_s"].to_numpy(), at))


def _gap(trace: pl.DataFrame, at: float) -> float:
    return float(np.quantile(np.diff(np.sort(trace["submit_s"].to_numpy())), at))


def _burst(trace: pl.DataFrame) -> float:
    counts = np.bincount((trace["submit_s"].to_numpy() // 3_600).astype(int))
    return float(counts.var() / counts.mean())
