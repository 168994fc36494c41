"""When will a waiting job start? How often P50 and P90 hold, and how far off the misses are.

Philly on 96 nodes of 8 GPUs and Muri's slices 1 and 3 on 8 nodes. Every wait counts that
outlasts its moment: of a job that was submitted, or that was displaced. The forecast is made
when the wait begins, from what had happened by then. First starts are shown beside, and are
judged as well where there are enough of them. On Muri's slice 1 the queue only grows and its
first hundred jobs last ten times as long as the others: under policies that keep the order
of arrival all waits share one fate, which nothing had told of when their forecasts were made.
"""

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow.parquet as pq
from msgspec.structs import replace

from benchmarks.published_runs import DATA, TRACES, nodes, slice_jobs
from benchmarks.sim_speed import PHILLY
from benchmarks.verdict import Verdict
from tenfold.clock import Stopwatch
from tenfold.compose.policies import placing_decider
from tenfold.compose.simulation import SimRequest, simulate
from tenfold.engine.loop import Decider
from tenfold.fleet.fleet import Fleet
from tenfold.model.decision import Decision
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import WHOLE, Job, Shape, shape_of
from tenfold.model.policy.governance import ANY, GovernanceRules, TeamRules
from tenfold.model.policy.policy import Policy, PolicyName
from tenfold.model.units import HOUR, SECOND, Millis
from tenfold.study.eta.eta import coverage, eta, eta_of
from tenfold.study.eta.wait_log import Outcome, WaitLog

POLICIES: tuple[PolicyName, ...] = ("tenfold", "governed", "fifo", "slurm")
EVERY = {("philly", "fifo"): 8, ("philly", "slurm"): 24}
"""Of tens of thousands of waits each so many-th is followed."""
MOST = 100_000
FEWEST = 100
"""First starts are judged by themselves where there are so many."""
ASK_EVERY = 5_000
"""Cycles between two questions that are timed."""


class _Case(NamedTuple):
    trace: str
    policy: Policy
    label: str
    jobs: list[Job]
    nodes: int


class _Asking:
    """A book of which the last job in the queue is asked now and then."""

    def __init__(self, policy: Policy, jobs: Sequence[Job]) -> None:
        self.wait_log = WaitLog()
        self.took_ms: list[float] = []
        self.ahead_ms: list[float] = []
        self._policy = policy
        self._shapes = list({job.shape.key: job.shape for job in jobs}.values())
        self._cycles = 0

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        self.wait_log.cycle(fleet, now_ms, decider, decision)
        self._cycles += 1
        if self._cycles >= ASK_EVERY and fleet.pending and decision.wake_at_ms != now_ms:
            self._cycles = 0
            job = next(reversed(fleet.pending.values()))
            watch = Stopwatch()
            eta(fleet, job, now_ms, self.wait_log)
            self.took_ms.append(watch.wall_s() * 1_000)
            watch = Stopwatch()
            eta_of(fleet, job.id, now_ms, self._decider)
            self.ahead_ms.append(watch.wall_s() * 1_000)

    def _decider(self) -> Decider:
        return placing_decider(self._policy, shapes=self._shapes)


def philly_jobs() -> list[Job]:
    """Return the jobs of the Philly trace, in order of submission."""
    table = pq.read_table(PHILLY).sort_by("submit_s")
    rows = table.select(["submit_s", "duration_s", "gpus", "team"]).to_pylist()
    shapes: dict[float, Shape] = {}
    return [
        Job(
            id=JobId(f"job-{place}"),
            shape=shapes.setdefault(row["gpus"], shape_of(row["gpus"])),
            submitted_ms=Millis(round(row["submit_s"] * SECOND)),
            seq=place,
            team=TeamId(row["team"] or ""),
            duration_ms=Millis(round(row["duration_s"] * SECOND)),
        )
        for place, row in enumerate(rows)
    ]


def run(thresholds: dict[str, float]) -> list[Verdict]:
    if not PHILLY.exists():
        print(f"skipped: {DATA} is not here")
        return []
    philly = philly_jobs()
    print(
        f"{'trace':12} {'policy':15} {'waits':>6} {'wait h':>8} {'by P50':>7}"
        f" {'by P90':>7} {'P90/P50':>8} | {'first':>6} {'by P50':>7} {'by P90':>7}"
        f" | {'early h':>8} {'P90':>8} {'x':>6} | {'late h':>8} {'P90':>8} {'x':>6} | {'CPU s':>6}"
    )
    verdicts: list[Verdict] = []
    for case in _cases(philly):
        wait_log = WaitLog(every=EVERY.get((case.trace, case.label), 1), outcomes=MOST)
        watch = Stopwatch()
        request = SimRequest(nodes=nodes(case.nodes), jobs=case.jobs, policy=case.policy)
        simulate(request, witnesses=[wait_log])
        outcomes = list(wait_log.outcomes)
        _print(case, outcomes, watch.cpu_s())
        verdicts += _verdicts(case, outcomes, thresholds)
    return verdicts + _asked(philly, thresholds)


def _cases(philly: list[Job]) -> list[_Case]:
    """Return every trace under every policy, and Philly with its virtual clusters as teams."""
    flat = [replace(job, team=TeamId("")) for job in philly]
    traces = {"philly": (philly, 96)} | {name: (slice_jobs(name), 8) for name in TRACES}
    cases: list[_Case] = []
    for trace, (jobs, count) in traces.items():
        for name in POLICIES:
            mine = flat if (trace, name) == ("philly", "governed") else jobs
            cases.append(_Case(trace, Policy(name=name), name, mine, count))
            if mine is flat:
                cases.append(_Case(trace, _with_quotas(jobs, count), "with quotas", jobs, count))
    return cases


def _with_quotas(jobs: list[Job], count: int) -> Policy:
    """Return a governed policy under which every team has the same quota."""
    teams = sorted({job.team for job in jobs})
    quota = {ANY: count * 8 * WHOLE // len(teams)}
    terms = tuple(TeamRules(id=team, quota=quota) for team in teams)
    return Policy(name="governed", govern=GovernanceRules(teams=terms))


def _asked(jobs: list[Job], thresholds: dict[str, float]) -> list[Verdict]:
    """Time answers on demand, where there is a book and where there is none."""
    asking = _Asking(Policy(), jobs)
    simulate(SimRequest(nodes=nodes(96), jobs=jobs), witnesses=[asking])
    took_ms, ahead_ms = max(asking.took_ms), _at(asking.ahead_ms, 0.5)
    print(
        f"\nasked {len(asking.took_ms)} times on Philly under the default: {took_ms:.1f} ms from"
        f" a book at most, {ahead_ms:,.0f} ms from a state alone, median"
    )
    return [
        Verdict("one answer from a book, ms", took_ms, thresholds["ask_ms"]),
        Verdict("one answer from a state alone, ms", ahead_ms, thresholds["ahead_ms"]),
    ]


def _verdicts(case: _Case, outcomes: list[Outcome], thresholds: dict[str, float]) -> list[Verdict]:
    who = f"{case.trace} {case.label}"
    first = [each for each in outcomes if each.first]
    judged = [(who, outcomes)]
    if FEWEST <= len(first) < len(outcomes):
        judged.append((f"{who} first", first))
    p50, p90 = thresholds["p50_apart"], thresholds["p90_apart"]
    verdicts: list[Verdict] = []
    for name, some in judged:
        by_p50, by_p90 = coverage(some)
        verdicts += [
            Verdict(f"{name}, starts by P50", by_p50, 0.5 + p50, at_least=0.5 - p50),
            Verdict(f"{name}, starts by P90", by_p90, 0.9 + p90, at_least=0.9 - p90),
        ]
    return verdicts


def _print(case: _Case, outcomes: list[Outcome], cpu_s: float) -> None:
    """Print one row: misses are starts before P50 (how early) and after P90 (how late)."""
    by_p50, by_p90 = coverage(outcomes)
    first = [each for each in outcomes if each.first]
    first_p50, first_p90 = coverage(first)
    early = [
        ((each.p50_ms - each.started_ms) / HOUR, _times(each.p50_ms, each))
        for each in outcomes
        if each.started_ms <= each.p50_ms
    ]
    late = [
        ((each.started_ms - each.p90_ms) / HOUR, 1 / _times(each.p90_ms, each))
        for each in outcomes
        if each.started_ms > each.p90_ms
    ]
    waits = [(each.started_ms - each.began_ms) / HOUR for each in outcomes]
    wide = [_wait(each.p90_ms, each) / _wait(each.p50_ms, each) for each in outcomes]
    print(
        f"{case.trace:12} {case.label:15} {len(outcomes):>6,} {_at(waits, 0.5):>8,.2f}"
        f" {by_p50:>7.1%} {by_p90:>7.1%} {_at(wide, 0.5):>8.1f}"
        f" | {len(first):>6,} {first_p50:>7.1%} {first_p90:>7.1%}"
        f" | {_misses(early)} | {_misses(late)} | {cpu_s:>6.1f}",
        flush=True,
    )


def _misses(misses: list[tuple[float, float]]) -> str:
    """Return median and P90 in hours, and the median factor between forecast and wait."""
    hours, times = [each[0] for each in misses], [each[1] for each in misses]
    return f"{_at(hours, 0.5):>8,.2f} {_at(hours, 0.9):>8,.2f} {_at(times, 0.5):>6,.1f}"


def _wait(at_ms: int, each: Outcome) -> float:
    return max(SECOND, at_ms - each.began_ms)


def _times(at_ms: int, each: Outcome) -> float:
    return _wait(at_ms, each) / _wait(each.started_ms, each)


def _at(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else 0.0
