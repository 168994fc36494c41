"""KAI's scale tests in the simulator; only the decisions are timed."""

from collections.abc import Callable, Sequence

from tenfold.clock import Stopwatch
from tenfold.compose.simulation import SimRequest, SimResult, simulate
from tenfold.decide.place.explain.settled import Settled
from tenfold.decide.place.explain.why import Reasons
from tenfold.engine.loop import Decider
from tenfold.fleet.fleet import Fleet
from tenfold.model.decision import Decision
from tenfold.model.fleet.node import Node
from tenfold.model.job.job import Job
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.policy.policy import Policy
from tenfold.model.units import Millis
from tenfold.report.reasons.render import render
from tenfold.study.bench.figures import Bench, Figure
from tenfold.study.bench.kai_loads import (
    GANG_PODS,
    GPUS_PER_NODE,
    LATER_MS,
    NODES,
    OWNER,
    RECLAIM_GANGS,
    RECLAIM_GPUS,
    SPREAD_PODS,
    blocked_filler,
    fillers,
    flat_nodes,
    governance_of,
    late_gangs,
    placed_nodes,
    spread_gang,
)
from tenfold.study.bench.timed import Cycle, LivelockGuard, TimedDecider

OURS = "CPU time of the scheduling decisions in this process; nothing is launched"
THEIRS = "wall-clock time of API server, pod creation, scheduler and binding on simulated nodes"
SOURCE = "kai-scheduler/KAI-Scheduler, docs/scale-tests/example-results.json"
CORE = (
    "published figures for the core alone: KAI takes 2.2 s per snapshot and 0.18 to 0.29 s for the "
    "actions of a cycle at 4,000 nodes (KAI issue 315); kube-scheduler places 1,147 pods/s, "
    "YuniKorn 410"
)
MS = 1_000


def kai_fill() -> Bench:
    """Fill 500 nodes with 4,000 single-GPU jobs that are all pending."""
    gpus = NODES * GPUS_PER_NODE
    jobs = fillers(gpus, OWNER)
    cycles, result, cpu_s = _timed(flat_nodes(NODES), jobs, governance_of(0, gpus))
    deciding_s = sum(each.cpu_s for each in cycles if each.at_ms == 0)
    return _bench(
        "kai-fill",
        f"{gpus:,} single-GPU jobs on {NODES} nodes with {GPUS_PER_NODE} GPUs",
        (
            Figure(name="time to decide all", ours=deciding_s * MS, unit="ms", theirs=(398_000.0,)),
            Figure(name="placed per second", ours=_started(cycles) / deciding_s, unit="/s"),
            Figure(name="jobs started", ours=len(result.meters.ends), unit=""),
            Figure(name="CPU time to simulate", ours=cpu_s, unit="s"),
        ),
    )


def kai_gang() -> Bench:
    """Place one gang of 512 pods on 512 nodes with racks, blocks and zones."""
    cycles, result, _ = _timed(placed_nodes(), [spread_gang()], governance_of(0, SPREAD_PODS * 8))
    deciding_s = sum(each.cpu_s for each in cycles if each.at_ms == 0)
    return _bench(
        "kai-gang",
        f"one gang of {SPREAD_PODS} pods on {SPREAD_PODS} nodes with three topology levels",
        (
            Figure(name="time to decide", ours=deciding_s * MS, unit="ms", theirs=(48_700.0,)),
            Figure(name="jobs started", ours=len(result.meters.ends), unit=""),
        ),
        "each pod gets its own node here; in the published test pods may share one",
    )


def kai_unschedulable() -> Bench:
    """Report a ten-pod job as unschedulable: one GPU too few can be reclaimed for it."""
    gpus, wanted = NODES * GPUS_PER_NODE, GANG_PODS * GPUS_PER_NODE
    jobs = [*fillers(gpus), blocked_filler(gpus), *late_gangs(1, GPUS_PER_NODE, gpus + 1)]
    govern = governance_of(gpus - wanted + 1, wanted)
    reason_timer = _ReasonTimer(govern, jobs[-1])
    cycles, _, _ = _timed(flat_nodes(NODES), jobs, govern, reason_timer)
    deciding_s = sum(each.cpu_s for each in cycles if each.at_ms == LATER_MS)
    no_s = deciding_s + reason_timer.reason_s
    return _bench(
        "kai-unschedulable",
        f"a job with {GANG_PODS} pods and {wanted} GPUs; only {wanted - 1} can be reclaimed",
        (
            Figure(
                name="time to unschedulable, with reason",
                ours=no_s * MS,
                unit="ms",
                theirs=(249_500.0,),
            ),
            Figure(name="  decision", ours=deciding_s * MS, unit="ms"),
            Figure(name="  reason", ours=reason_timer.reason_s * MS, unit="ms"),
            Figure(name="reason from a saved state", ours=reason_timer.cold_s * MS, unit="ms"),
        ),
        f"reason: {reason_timer.sentence} [{reason_timer.code}]",
    )


def kai_reclaim(nodes: int = NODES, gangs: int = RECLAIM_GANGS) -> Bench:
    """Reclaim GPUs for gangs of ten pods on a fleet full of borrowed GPUs."""
    gpus = nodes * GPUS_PER_NODE
    jobs = [*fillers(gpus), blocked_filler(gpus), *late_gangs(gangs, RECLAIM_GPUS, gpus + 1)]
    cycles, result, _ = _timed(flat_nodes(nodes), jobs, governance_of(0, gpus))
    deciding = [each for each in cycles if each.at_ms == LATER_MS]
    deciding_s = sum(each.cpu_s for each in deciding)
    stops = sum(each.stops for each in deciding)
    theirs = (717_000.0,) if nodes == NODES else ()
    return _bench(
        "kai-reclaim",
        f"{gangs} gangs of {GANG_PODS} pods; {gpus:,} borrowed GPUs on {nodes:,} nodes",
        (
            Figure(name="time to decide all", ours=deciding_s * MS, unit="ms", theirs=theirs),
            Figure(name="longest cycle", ours=max(each.cpu_s for each in deciding) * MS, unit="ms"),
            Figure(name="cycles", ours=len(deciding), unit=""),
            Figure(name="gangs started", ours=_started(deciding), unit=""),
            Figure(name="jobs preempted", ours=stops, unit=""),
            Figure(name="minimum preemptions", ours=gangs * GANG_PODS * RECLAIM_GPUS, unit=""),
            Figure(name="jobs finished", ours=len(result.meters.ends), unit=""),
        ),
    )


KAI: dict[str, Callable[[], Bench]] = {
    "kai-fill": kai_fill,
    "kai-gang": kai_gang,
    "kai-unschedulable": kai_unschedulable,
    "kai-reclaim": kai_reclaim,
}


class _ReasonTimer:
    """Times how long it takes to explain why a job waits, when it arrives."""

    def __init__(self, govern: GovernanceRules, job: Job) -> None:
        self._govern = govern
        self._job = job
        self.reason_s = self.cold_s = 0.0
        self.code = self.sentence = ""

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        """Explain the job once and measure the time."""
        if self.code or self._job.id not in fleet.pending:
            return
        cold = Stopwatch()
        reasons = Reasons(Settled(fleet, self._govern, now_ms))
        warm = Stopwatch()
        reason = reasons.blocked(self._job).reason
        self.reason_s, self.cold_s = warm.cpu_s(), cold.cpu_s()
        self.code, self.sentence = reason.code, render(reason)


def _timed(
    nodes: Sequence[Node], jobs: Sequence[Job], govern: GovernanceRules, *witnesses: _ReasonTimer
) -> tuple[list[Cycle], SimResult, float]:
    """Return every decision of a run, its result and its CPU time."""
    made: list[TimedDecider] = []

    def around(decider: Decider) -> Decider:
        made.append(TimedDecider(decider))
        return made[0]

    watch = Stopwatch()
    request = SimRequest(nodes=nodes, jobs=jobs, policy=Policy(name="governed", govern=govern))
    result = simulate(request, witnesses=[LivelockGuard(), *witnesses], around=around)
    return made[0].cycles, result, watch.cpu_s()


def _started(cycles: Sequence[Cycle]) -> int:
    return sum(each.starts for each in cycles)


def _bench(name: str, title: str, figures: tuple[Figure, ...], *notes: str) -> Bench:
    return Bench(
        name=name,
        title=title,
        figures=figures,
        ours_include=OURS,
        theirs_include=THEIRS,
        theirs_from=SOURCE,
        notes=(*notes, CORE),
    )
