"""Policies on the traces they were published on: average completion and makespan.

Muri's slices of the Philly trace on 8 nodes of 8 GPUs. Their own code deducts a few seconds
at every event, so that slightly better than published is what a faithful replay gives.
"""

import csv
import os
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.verdict import Verdict
from tenfold.compose.simulation import SimRequest, simulate
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, PoolId, SiteId
from tenfold.model.job.job import Job, Shape, shape_of
from tenfold.model.policy.policy import Policy, PolicyName
from tenfold.model.units import SECOND, Millis
from tenfold.sim.measure.meters import Summary
from tenfold.sim.world import SimSettings

DATA = Path(os.environ.get("TENFOLD_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))
SLICES = DATA / "jobs" / "muri_philly_slices.parquet"
ANCHORS = DATA / "anchors" / "published_results.csv"
TRACES = ("muri-trace1", "muri-trace3")
OURS: tuple[PolicyName, ...] = ("fifo", "srtf", "srsf", "las", "tenfold")
PUBLISHED = {"srtf": "SRTF", "srsf": "SRSF", "las": "Tiresias_L"}
RESTART_COSTS_S = (0, 600)

Figures = dict[tuple[str, str, int], Summary]


def nodes(count: int, gpus: int = 8) -> list[Node]:
    """Return nodes alike in one pool."""
    return [
        Node(id=NodeId(f"n{place:05}"), pool=PoolId("p"), site=SiteId("s"), gpus=gpus)
        for place in range(count)
    ]


def slice_jobs(trace: str) -> list[Job]:
    """Return the jobs of one slice, in order of submission."""
    table = pq.read_table(SLICES)
    table = table.filter(pc.equal(table["trace"], trace)).sort_by("submit_s")
    rows = table.select(["submit_s", "duration_s", "gpus"]).to_pylist()
    shapes: dict[float, Shape] = {}
    return [
        Job(
            id=JobId(f"job-{place}"),
            shape=shapes.setdefault(row["gpus"], shape_of(row["gpus"])),
            submitted_ms=Millis(round(row["submit_s"] * SECOND)),
            seq=place,
            duration_ms=Millis(round(row["duration_s"] * SECOND)),
        )
        for place, row in enumerate(rows)
    ]


def published(trace: str, policy: str, metric: str) -> float:
    """Return a published figure in seconds."""
    with ANCHORS.open() as lines:
        for row in csv.DictReader(lines):
            if (row["trace"], row["policy"], row["metric"]) == (trace, policy, metric):
                return float(row["value"])
    raise LookupError(f"{policy} {metric} on {trace} is not among the anchors")


def replay() -> Figures:
    """Return the figures of every policy, trace and restart cost."""
    figures: Figures = {}
    for trace in TRACES:
        jobs = slice_jobs(trace)
        for cost_s in RESTART_COSTS_S:
            for name in OURS:
                settings = SimSettings(restart_cost_ms=Millis(cost_s * SECOND))
                policy = Policy(name=name)
                request = SimRequest(nodes=nodes(8), jobs=jobs, policy=policy, settings=settings)
                figures[trace, name, cost_s] = simulate(request).summary
    return figures


def run(thresholds: dict[str, float]) -> list[Verdict]:
    if not SLICES.exists():
        print(f"skipped: {SLICES} is not here")
        return []
    figures = replay()
    print("completion (avg JCT) and makespan in seconds; 8 nodes x 8 GPUs")
    print(
        f"{'trace':12} {'policy':8} {'restart':>7} {'avg JCT':>10} {'published':>10} {'apart':>7}"
        f" {'makespan':>11} {'apart':>7} {'to SRSF':>8} {'preempted':>9}"
    )
    verdicts: list[Verdict] = []
    for (trace, name, cost_s), summary in figures.items():
        anchor = PUBLISHED.get(name)
        jct = published(trace, anchor, "avg_jct") if anchor else None
        makespan = published(trace, anchor, "makespan") if anchor else None
        apart = None if jct is None else summary.avg_jct_s / jct - 1
        later = None if makespan is None else summary.makespan_s / makespan - 1
        srsf = figures[trace, "srsf", cost_s].avg_jct_s
        print(
            f"{trace:12} {name:8} {cost_s:>7} {summary.avg_jct_s:>10,.0f} {_figure(jct):>10}"
            f" {_percent(apart):>7} {summary.makespan_s:>11,.0f} {_percent(later):>7}"
            f" {summary.avg_jct_s / srsf:>8.2f} {summary.preemptions:>9,}"
        )
        if cost_s == 0 and apart is not None and later is not None:
            verdicts += _replayed(trace, name, apart, later, thresholds)
    return verdicts + _ours(figures, thresholds)


def _replayed(
    trace: str, name: str, jct: float, makespan: float, thresholds: dict[str, float]
) -> list[Verdict]:
    if name == "las":
        return [Verdict(f"{trace} las, avg JCT apart", abs(jct), thresholds["las_apart"])]
    low, high = thresholds["oracle_low"], thresholds["oracle_high"]
    return [
        Verdict(f"{trace} {name}, avg JCT apart", jct, high, at_least=low),
        Verdict(f"{trace} {name}, makespan apart", makespan, high, at_least=low),
    ]


def _ours(figures: Figures, thresholds: dict[str, float]) -> list[Verdict]:
    verdicts: list[Verdict] = []
    for trace, themis in zip(TRACES, ("themis_trace1", "themis_trace3"), strict=True):
        ours = figures[trace, "tenfold", 0].avg_jct_s
        over_las = ours / published(trace, "Tiresias_L", "avg_jct")
        over_themis = ours / published(trace, "themis", "avg_jct")
        verdicts += [
            Verdict(f"{trace} tenfold over Tiresias-L", over_las, thresholds["over_tiresias"]),
            Verdict(f"{trace} tenfold over Themis", over_themis, thresholds[themis]),
        ]
    return verdicts


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:+.1%}"
