"""How long one decision takes on a large fleet with a long queue, and hundreds that run.

10,000 nodes of 8 GPUs, full, and 10,000 jobs that wait. Every cycle a job ends or is
submitted, or the policy wakes by itself; what is timed is `decide` alone, on the wall, with
the collector on. All jobs of the first moment start at once, which no fleet sees, and the
default then sorts them out by the thousand: those cycles are warm-up and stand apart.
"""

from collections.abc import Sequence
from math import ceil
from random import Random

from benchmarks.published_runs import nodes
from benchmarks.verdict import Verdict
from tenfold.clock import Stopwatch
from tenfold.compose.policies import placing_decider
from tenfold.engine.loop import Decider
from tenfold.engine.loop import run as run_loop
from tenfold.fleet.fleet import Fleet, FleetView
from tenfold.model.actions import Action
from tenfold.model.decision import Decision
from tenfold.model.events import Event, NodeJoined
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import Job, shape_of
from tenfold.model.policy.policy import Policy, PolicyName
from tenfold.model.units import HOUR, Millis
from tenfold.sim.world import SimWorld

NODES = 10_000
GPUS = NODES * 8
QUEUED = 10_000
WARM_UP = 2_000
CYCLES = 1_000
POLICIES: tuple[PolicyName, ...] = ("tenfold", "fifo")
# Sizes in GPUs and their weights, made up: gangs of whole nodes keep those that run to
# hundreds; with small jobs among them it is thousands.
MIXES = {
    "gangs": ((64, 4), (128, 4), (256, 3), (512, 2), (1_024, 1)),
    "mixed": ((8, 8), (16, 6), (64, 4), (256, 2), (1_024, 1)),
}
FIRST = {"gangs": 14_000, "mixed": 21_000}
"""Jobs of the first moment: so many that under the default, too, the queue stays long."""
DURATION_H_MEDIAN = 3.0
DURATION_SIGMA = 1.2


class _Timed:
    """A decider that notes how long each of its decisions took."""

    def __init__(self, inner: Decider) -> None:
        self.name = inner.name
        self.took_ms: list[float] = []
        self.orders: list[int] = []
        self._inner = inner

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        watch = Stopwatch()
        decision = self._inner.decide(view, now_ms, news)
        self.took_ms.append(watch.wall_s() * 1_000)
        self.orders.append(len(decision.actions))
        return decision


class _Cut:
    """A world that ends after so many moments."""

    def __init__(self, inner: SimWorld, moments: int) -> None:
        self._inner = inner
        self._left = moments

    def wait(self, until_ms: Millis | None) -> tuple[Millis, Sequence[Event]] | None:
        self._left -= 1
        return self._inner.wait(until_ms) if self._left >= 0 else None

    def carry_out(self, actions: Sequence[Action], now_ms: Millis) -> Sequence[Event]:
        return self._inner.carry_out(actions, now_ms)


def run(thresholds: dict[str, float]) -> list[Verdict]:
    print(f"{NODES:,} nodes x 8 GPUs, {CYCLES:,} cycles after {WARM_UP:,}; decisions in ms")
    print(
        f"{'jobs':6} {'policy':8} {'running':>8} {'queued':>7} {'orders':>7} {'P50':>7} {'P99':>7}"
        f" {'most':>7} {'warm-up P99':>12} {'most':>7}"
    )
    verdicts: list[Verdict] = []
    for mix in MIXES:
        for policy in POLICIES:
            timed, fleet = _timed(policy, mix)
            early, took = timed.took_ms[:-CYCLES], timed.took_ms[-CYCLES:]
            p99_ms = _nearest(took, 0.99)
            print(
                f"{mix:6} {policy:8} {len(fleet.running):>8,} {len(fleet.pending):>7,}"
                f" {sum(timed.orders[-CYCLES:]):>7,} {_nearest(took, 0.5):>7.2f} {p99_ms:>7.2f}"
                f" {max(took):>7.2f} {_nearest(early, 0.99):>12.2f} {max(early):>7.2f}"
            )
            limit = thresholds[f"{policy}_{mix}_ms_p99"]
            name = f"{policy}, {mix}"
            verdicts += [
                Verdict(f"{name}: P99 of a decision", p99_ms, limit, " ms"),
                Verdict(f"{name}: jobs queued at the end", len(fleet.pending), at_least=QUEUED),
            ]
    return verdicts


def _timed(policy: PolicyName, mix: str) -> tuple[_Timed, Fleet]:
    """Run a full fleet through its warm-up and the cycles that count."""
    jobs = _jobs(mix)
    joined = [NodeJoined(Millis(0), node) for node in nodes(NODES)]
    shapes = {job.shape.key: job.shape for job in jobs}.values()
    timed = _Timed(placing_decider(Policy(name=policy), shapes=shapes))
    fleet = Fleet()
    run_loop(_Cut(SimWorld(jobs, initial_events=joined), WARM_UP + CYCLES), fleet, [timed])
    return timed, fleet


def _jobs(mix: str) -> list[Job]:
    """Return jobs for the fleet and the queue at once, then one by one, about as many as end."""
    dice = Random(0)
    sizes, weights = zip(*MIXES[mix], strict=True)
    shapes = [shape_of(size) for size in sizes]
    mean_gpus = sum(size * weight for size, weight in MIXES[mix]) / sum(weights)
    every_ms = DURATION_H_MEDIAN * HOUR * mean_gpus / GPUS
    jobs: list[Job] = []
    for number in range(FIRST[mix] + WARM_UP + CYCLES):
        later = max(0, number - FIRST[mix] + 1)
        duration_h = DURATION_H_MEDIAN * dice.lognormvariate(0, DURATION_SIGMA)
        jobs.append(
            Job(
                id=JobId(f"job-{number}"),
                shape=dice.choices(shapes, weights)[0],
                submitted_ms=Millis(ceil(later * every_ms)),
                seq=number,
                team=TeamId(f"team-{number % 15}"),
                user=f"user-{number % 97}",
                duration_ms=Millis(ceil(duration_h * HOUR)),
            )
        )
    return jobs


def _nearest(values: Sequence[float], share: float) -> float:
    return sorted(values)[max(0, ceil(share * len(values)) - 1)]
