"""The two halves of a history, simulated: jobs that came in one, on a fleet that is not empty.

A change is chosen on the first half and tried on the second. Waits count to the end of a half, in
the record and in the simulation alike, so an overload is not hidden by the time it takes to drain.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from tenfold.compose.simulation import SimRequest, simulate
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId
from tenfold.model.job.job import WHOLE, Job, JobStatus
from tenfold.model.policy.policy import Policy
from tenfold.model.units import SECOND, Millis
from tenfold.sim.measure.meters import requested_milli
from tenfold.sim.measure.timeline import Span, spans
from tenfold.sim.measure.window import nearest, runs_until
from tenfold.sim.settings import SimSettings
from tenfold.study.assess.evidence import Evidence

JOBS_MOST = 2_000
"""Jobs of a half that are simulated: policies that plan ahead cost up to 5 ms a job."""
BUSY_WAITING = 60.0
"""With more jobs waiting on average, each job of a run costs several times as much ..."""
BUSY_PARTS = 2
"""... and a half has so many times fewer of them."""
RESTART_COST_MS = Millis(300 * SECOND)
"""What a preempted job loses: an assumption."""
ERROR_MOST = 0.15
SHORT_S = 60.0
HOUR_S = 3_600.0


class Half(Struct, frozen=True, kw_only=True):
    """Part of a history: jobs to simulate, and those of them that are measured."""

    name: str
    jobs: tuple[Job, ...]
    measured: frozenset[JobId]
    starts_ms: Mapping[JobId, Millis]
    """Recorded starts of measured jobs; empty if the record has none."""
    from_ms: int
    until_ms: int
    share: float
    """Share of the jobs of this half that are simulated."""


class HalfFigures(Struct, frozen=True, kw_only=True):
    """The waits of the measured jobs of a half, recorded or simulated."""

    jobs: int
    started: int
    mean_wait_s: float
    p90_wait_s: float
    waiting_hours: float
    gpu_hours_waiting: float
    gpu_hours_run: float
    preemptions: int = 0
    by_account: dict[str, float] = {}
    """Mean wait by account, in seconds."""


class HalfRun(NamedTuple):
    """A simulation of a half: its figures, and when each measured job started."""

    figures: HalfFigures
    starts_ms: dict[JobId, int]
    waits_ms: dict[JobId, int]
    """Of each measured job, to the end of the half at most."""
    runs: list[Span]


class Calibration(Struct, frozen=True, kw_only=True):
    """How far the unchanged policy, simulated, is from the record of a half."""

    half: str
    jobs: int
    recorded: HalfFigures | None
    simulated: HalfFigures
    error: float | None
    """Of the mean wait over jobs or over GPU-hours, the worse; None without recorded starts."""
    calibrated: bool
    sentence: str


def halves_of(
    evidence: Evidence, begun_ms: Mapping[JobId, Millis], *, busy: bool = False
) -> tuple[Half, Half]:
    """Return the halves of the jobs by order of arrival; fewer jobs where long queues are `busy`.

    `begun_ms` says which earlier jobs hold GPUs when a half begins.
    """
    work = evidence.work
    middle = len(work) // 2
    most = JOBS_MOST // BUSY_PARTS if busy else JOBS_MOST
    return (
        _half(evidence, begun_ms, "first half", work[max(0, middle - most) : middle], middle),
        _half(evidence, begun_ms, "second half", work[middle:][:most], len(work) - middle),
    )


def begun(evidence: Evidence) -> Mapping[JobId, Millis]:
    """Return when jobs started: as recorded, or else under a fair share of the fleet."""
    if evidence.has_starts:
        return evidence.starts_ms
    found: dict[JobId, Millis] = {}
    request = SimRequest(
        nodes=evidence.simulated_nodes(), jobs=evidence.work, policy=Policy(name="fair")
    )
    for job, _, start, _ in spans(simulate(request).meters):
        found[job.id] = Millis(min(found.get(job.id, Millis(start)), start))
    return found


def _half(
    evidence: Evidence,
    begun_ms: Mapping[JobId, Millis],
    name: str,
    measured: Sequence[Job],
    whole: int,
) -> Half:
    from_ms, until_ms = measured[0].submitted_ms, measured[-1].submitted_ms
    starts = evidence.starts_ms
    carried = [
        held
        for job in evidence.work[: measured[0].seq]
        if (held := _carried(job, begun_ms.get(job.id), from_ms)) is not None
    ]
    ids = frozenset(job.id for job in measured)
    return Half(
        name=name,
        jobs=tuple(replace(job, seq=seq) for seq, job in enumerate((*carried, *measured))),
        measured=ids,
        starts_ms={job.id: starts[job.id] for job in measured if job.id in starts},
        from_ms=from_ms,
        until_ms=max(until_ms, from_ms + 1),
        share=len(measured) / max(1, whole),
    )


def _carried(job: Job, start_ms: Millis | None, from_ms: int) -> Job | None:
    """Return what is left of an earlier job when a half begins; None if nothing is."""
    if start_ms is None or start_ms + (job.duration_ms or 0) <= from_ms:
        return None
    at = Millis(from_ms)
    if start_ms >= from_ms:
        return replace(job, submitted_ms=at)
    left = Millis(start_ms + (job.duration_ms or 0) - from_ms)
    limit = None if job.limit_ms is None else Millis(max(left, job.limit_ms - (from_ms - start_ms)))
    return replace(job, submitted_ms=at, duration_ms=left, limit_ms=limit)


def run_half(
    half: Half, nodes: Sequence[Node], policy: Policy, ends: Mapping[JobId, JobStatus]
) -> HalfRun:
    """Simulate a half under a policy."""
    result = simulate(
        SimRequest(
            nodes=nodes,
            jobs=half.jobs,
            policy=policy,
            settings=SimSettings(restart_cost_ms=RESTART_COST_MS),
            ends={job.id: ends[job.id] for job in half.jobs if job.id in ends},
            until_ms=Millis(half.until_ms),
        )
    )
    runs = list(runs_until(result.meters, result.fleet.running, half.until_ms))
    held: dict[JobId, int] = {}
    first: dict[JobId, int] = {}
    for job, _, start, end in runs:
        held[job.id] = held.get(job.id, 0) + max(0, end - start)
        first[job.id] = min(first.get(job.id, start), start)
    ended = {job.id: end for job, _, _, _, end in result.meters.ends}
    waits: dict[JobId, int] = {}
    for job in half.jobs:
        if job.id in half.measured:
            until = min(ended.get(job.id, half.until_ms), half.until_ms)
            waits[job.id] = max(0, until - job.submitted_ms - held.get(job.id, 0))
    figures = _figures(half, waits, first, runs)
    figures = replace(figures, preemptions=result.summary.preemptions)
    starts = {job: first[job] for job in half.measured if job in first}
    return HalfRun(figures, starts, waits, runs)


def recorded_half(half: Half) -> HalfFigures | None:
    """Return what the record says of a half; None without start times."""
    if not half.starts_ms:
        return None
    waits: dict[JobId, int] = {}
    runs: list[Span] = []
    for job in half.jobs:
        if job.id in half.starts_ms:
            start = half.starts_ms[job.id]
            waits[job.id] = max(0, min(start, half.until_ms) - job.submitted_ms)
    first = {job: int(start) for job, start in half.starts_ms.items()}
    figures = _figures(half, waits, first, runs)
    hours = 0.0
    for job in half.jobs:
        if job.id in half.starts_ms:
            start = half.starts_ms[job.id]
            inside = min(start + (job.duration_ms or 0), half.until_ms) - start
            hours += requested_milli(job) / WHOLE * max(0, inside) / SECOND / HOUR_S
    return replace(figures, gpu_hours_run=hours)


def calibration_of(half: Half, ran: HalfRun) -> Calibration:
    """Return how far a simulation of the unchanged policy is from the record."""
    real, simulated = recorded_half(half), ran.figures
    if real is None:
        return Calibration(
            half=half.name,
            jobs=simulated.jobs,
            recorded=None,
            simulated=simulated,
            error=None,
            calibrated=False,
            sentence="not calibrated: the record has no start times",
        )
    error = max(
        _error(real.mean_wait_s, simulated.mean_wait_s),
        _error(_by_gpu(real), _by_gpu(simulated)),
    )
    calibrated = error <= ERROR_MOST
    return Calibration(
        half=half.name,
        jobs=simulated.jobs,
        recorded=real,
        simulated=simulated,
        error=error,
        calibrated=calibrated,
        sentence=_sentence(half, real, simulated, error),
    )


def _sentence(half: Half, real: HalfFigures, simulated: HalfFigures, error: float) -> str:
    """Return how far off the waits are; of two short means, that is a matter of seconds."""
    over = f"over {real.jobs:,} jobs of the {half.name}"
    if real.mean_wait_s < SHORT_S and simulated.mean_wait_s < SHORT_S and error <= ERROR_MOST:
        return (
            f"calibrated: mean wait {real.mean_wait_s:.0f} s recorded, "
            f"{simulated.mean_wait_s:.0f} s simulated ({real.jobs:,} jobs, {half.name})"
        )
    word = "calibrated" if error <= ERROR_MOST else "not calibrated"
    return f"{word}: waits off by {error:.0%} {over} (limit {ERROR_MOST:.0%})"


def _error(real_s: float, simulated_s: float) -> float:
    """Return the relative error of a mean wait; two short waits are alike."""
    if real_s < SHORT_S and simulated_s < SHORT_S:
        return 0.0
    return abs(simulated_s - real_s) / max(real_s, SHORT_S)


def _by_gpu(figures: HalfFigures) -> float:
    """Return the mean wait of a GPU-hour that was asked for, scaled to seconds a job."""
    return figures.gpu_hours_waiting * HOUR_S / max(1, figures.jobs)


def _figures(
    half: Half, waits: Mapping[JobId, int], first: Mapping[JobId, int], runs: Sequence[Span]
) -> HalfFigures:
    jobs = [job for job in half.jobs if job.id in waits]
    times = sorted(waits.values())
    teams: dict[str, list[int]] = {}
    for job in jobs:
        teams.setdefault(str(job.team) or "(none)", []).append(waits[job.id])
    inside = sum(
        requested_milli(job) / WHOLE * max(0, min(end, half.until_ms) - start)
        for job, _, start, end in runs
        if job.id in half.measured
    )
    gpu_ms = sum(requested_milli(job) / WHOLE * waits[job.id] for job in jobs)
    return HalfFigures(
        jobs=len(jobs),
        started=sum(first.get(job.id, half.until_ms + 1) <= half.until_ms for job in jobs),
        mean_wait_s=sum(times) / max(1, len(times)) / SECOND,
        p90_wait_s=nearest(times, 0.9) / SECOND,
        waiting_hours=sum(times) / SECOND / HOUR_S,
        gpu_hours_waiting=gpu_ms / SECOND / HOUR_S,
        gpu_hours_run=inside / SECOND / HOUR_S,
        by_account={
            name: sum(found) / len(found) / SECOND for name, found in sorted(teams.items())
        },
    )
