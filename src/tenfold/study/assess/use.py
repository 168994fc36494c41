"""How full a fleet was and by whom, and which GPUs were held and not used.

All of it is sums over recorded runs: allocated GPUs times the hours of a run that lie in the
period. Nothing here is simulated.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tenfold.model.job.recorded import RecordedJob, RecordedNode
from tenfold.study.assess.evidence import GPUS_UNSEEN, Evidence

HOUR_S = 3_600.0
BUCKETS = 60
LOW_CPU = 0.01
"""A job that uses less than this share of one CPU does no work on its GPUs either."""
LOW_CPU_LEAST_S = 600.0
LOST_STATES = ("failed", "timeout", "node_fail", "out_of_memory", "preempted", "boot_fail")
ROWS_MOST = 12


class UseRow(Struct, frozen=True, kw_only=True):
    """GPU-hours of one account, user or partition."""

    name: str
    jobs: int
    gpu_hours: float
    share: float
    """Of what the fleet has in the period."""


class GpusNow(Struct, frozen=True, kw_only=True):
    """The GPUs of a live cluster at this moment."""

    nodes: int
    gpus: int
    allocated: int
    free: int
    stranded: int
    """Free, but on nodes without a free CPU."""
    unusable: int
    """Free, but on nodes that are down, drained or reserved for no job."""
    unusable_nodes: tuple[tuple[str, str], ...]
    running: int
    pending: int
    pending_gpus: float


class Held(Struct, frozen=True, kw_only=True):
    """GPU-hours that were held and did not serve a job, as far as a scheduler can tell."""

    unrequested: float
    """Allocated beyond what the job asked for, as whole nodes are."""
    low_cpu: float | None
    """Of runs that used almost no CPU time; None if CPU time is not recorded."""
    lost: float | None
    """Of runs that failed, timed out or lost their node; None if no run has its end state."""
    cancelled: float | None
    """Of runs that a user cancelled; None if no run has its end state."""
    overlong_limits: float | None
    """Median of the time limit over the run time of completed jobs: what backfill plans with."""


class Use(Struct, frozen=True, kw_only=True):
    """How full the fleet was."""

    gpus: int
    days: float
    jobs: int
    gpu_hours: float
    gpu_hours_available: float
    share: float
    by_account: tuple[UseRow, ...]
    by_user: tuple[UseRow, ...]
    by_partition: tuple[UseRow, ...]
    over_time: tuple[tuple[float, float], ...]
    """Seconds since the beginning, and the share of the GPUs allocated."""
    held: Held
    now: GpusNow | None
    has_history: bool
    """Whether the period is more than this moment."""
    counts_gpus: bool
    """Whether the record says how many GPUs jobs had."""


def use_of(evidence: Evidence) -> Use:
    """Return how full the fleet was in the period."""
    records, gpus = evidence.records, evidence.spec.gpus
    available = gpus * evidence.span_s / HOUR_S
    hours = [_gpu_hours(job, evidence) for job in records]
    if not evidence.has_starts:
        # Without start times a run is known by its length alone.
        hours = [job.gpus * _length_s(job) / HOUR_S for job in records]
    whole = sum(hours)

    def by(key: Callable[[RecordedJob], str]) -> tuple[UseRow, ...]:
        return _holders(zip(records, hours, strict=True), key, available)

    return Use(
        gpus=gpus,
        days=evidence.span_s / 86_400,
        jobs=len(records),
        gpu_hours=whole,
        gpu_hours_available=available,
        share=whole / max(1e-9, available),
        by_account=by(lambda job: job.account or "(none)"),
        by_user=by(lambda job: job.user or "(none)"),
        by_partition=by(lambda job: job.partition or "(none)"),
        over_time=_over_time(evidence) if evidence.has_starts else (),
        held=_held(records, hours),
        now=_now(evidence) if evidence.nodes else None,
        has_history=evidence.has_history,
        counts_gpus=all(what != GPUS_UNSEEN for what, _ in evidence.unseen),
    )


def _holders(
    rows: Iterable[tuple[RecordedJob, float]], key: Callable[[RecordedJob], str], available: float
) -> tuple[UseRow, ...]:
    sums: dict[str, list[float]] = {}
    for job, hours in rows:
        found = sums.setdefault(key(job), [0.0, 0.0])
        found[0] += 1
        found[1] += hours
    ordered = sorted(sums.items(), key=lambda item: (-item[1][1], item[0]))
    return tuple(
        UseRow(name=name, jobs=int(jobs), gpu_hours=hours, share=hours / max(1e-9, available))
        for name, (jobs, hours) in ordered
    )


def _gpu_hours(job: RecordedJob, evidence: Evidence) -> float:
    if job.started_s is None:
        return 0.0
    ended_s = evidence.until_s if job.ended_s is None else job.ended_s
    inside_s = min(ended_s, evidence.until_s) - max(job.started_s, evidence.from_s)
    return job.gpus * max(0.0, inside_s) / HOUR_S


def _length_s(job: RecordedJob) -> float:
    began_s = job.submitted_s if job.started_s is None else job.started_s
    return max(0.0, (job.ended_s or began_s) - began_s)


def _over_time(evidence: Evidence) -> tuple[tuple[float, float], ...]:
    """Return the mean share of the GPUs that was allocated in each of some even stretches."""
    width_s = evidence.span_s / BUCKETS
    held = [0.0] * BUCKETS
    for job in evidence.records:
        if job.started_s is None or not job.gpus:
            continue
        since_s = max(job.started_s, evidence.from_s) - evidence.from_s
        ended_s = evidence.until_s if job.ended_s is None else job.ended_s
        until_s = min(ended_s, evidence.until_s) - evidence.from_s
        place = int(since_s // width_s)
        while place < BUCKETS and place * width_s < until_s:
            inside_s = min(until_s, (place + 1) * width_s) - max(since_s, place * width_s)
            held[place] += job.gpus * max(0.0, inside_s)
            place += 1
    whole = max(1, evidence.spec.gpus) * width_s
    return tuple(((place + 0.5) * width_s, one / whole) for place, one in enumerate(held))


def _held(records: Sequence[RecordedJob], hours: Sequence[float]) -> Held:
    unrequested = lost = cancelled = low = 0.0
    known = False
    ratios: list[float] = []
    for job, one in zip(records, hours, strict=True):
        if job.gpus > job.gpus_asked and job.gpus:
            unrequested += one * (job.gpus - job.gpus_asked) / job.gpus
        state = job.state
        if state in LOST_STATES:
            lost += one
        elif state == "cancelled":
            cancelled += one
        length_s = _length_s(job)
        if job.cpu_s is not None and job.ended_s is not None and job.gpus:
            known = known or job.cpu_s > 0
            if length_s >= LOW_CPU_LEAST_S and job.cpu_s < LOW_CPU * length_s:
                low += one
        if state == "completed" and job.limit_s and length_s >= 60:
            ratios.append(job.limit_s / length_s)
    ratios.sort()
    has_states = any(job.state for job in records)
    return Held(
        unrequested=unrequested,
        low_cpu=low if known else None,
        lost=lost if has_states else None,
        cancelled=cancelled if has_states else None,
        overlong_limits=ratios[(len(ratios) - 1) // 2] if ratios else None,
    )


def _now(evidence: Evidence) -> GpusNow:
    nodes = _with_gpus_of_jobs(evidence)
    bad = [node for node in nodes if node.why_unusable]
    good = [node for node in nodes if not node.why_unusable]
    return GpusNow(
        nodes=len(nodes),
        gpus=sum(node.gpus for node in nodes),
        allocated=sum(node.gpus_used for node in nodes),
        free=sum(_free(node) for node in good),
        stranded=sum(_free(node) for node in good if node.cpus_used >= node.cpus),
        unusable=sum(_free(node) for node in bad),
        unusable_nodes=tuple((node.name, node.why_unusable) for node in bad[:ROWS_MOST]),
        running=sum(job.ended_s is None and job.state == "running" for job in evidence.records),
        pending=len(evidence.queue),
        pending_gpus=sum(job.gpus for job in evidence.queue),
    )


def _with_gpus_of_jobs(evidence: Evidence) -> list[RecordedNode]:
    """Return the nodes with the GPUs of running jobs, which Slurm may not add up for its nodes."""
    held: Counter[str] = Counter()
    for job in evidence.records:
        if job.state != "running" or job.ended_s is not None or not job.node_names:
            continue
        even = [round(job.gpus / len(job.node_names))] * len(job.node_names)
        held.update(dict(zip(job.node_names, job.node_gpus or even, strict=True)))
    return [
        replace(node, gpus_used=min(node.gpus, max(node.gpus_used, held[node.name])))
        for node in evidence.nodes
    ]


def _free(node: RecordedNode) -> int:
    return max(0, node.gpus - node.gpus_used)
