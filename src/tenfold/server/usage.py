"""GPU and CPU usage of jobs in API responses: the last sample, and since when a job is idle.

Samples are in memory and lost at a restart; that a job is idle is recorded in the journal.
"""

from msgspec.structs import replace

from tenfold.fleet.fleet import Fleet
from tenfold.journal.rows import JobRow
from tenfold.live.usage import Usage
from tenfold.model.api.fleet import Idle, IdleJob, IdleTeam
from tenfold.model.api.jobs import Job, Use
from tenfold.model.job.job import WHOLE, Run
from tenfold.model.job.terms import Terms
from tenfold.model.job.usage import JobUse, Measure
from tenfold.model.units import HOUR, Millis
from tenfold.server.schemas import iso

JOBS_MAX = 1_000
"""Jobs listed in the idle report; the sums count all of them."""
_PLAIN = Terms()


def with_use(shown: Job, row: JobRow, usage: Usage) -> Job:
    """Return a running job with its usage; any other job unchanged."""
    if row.state not in ("running", "stopping"):
        return shown
    use, since_ms = usage.of(row.id), usage.idle.get(row.id)
    if use is not None:
        shown = replace(shown, use=to_use(use))
    # An idle time before this attempt started belongs to an earlier attempt.
    is_old = row.state == "running" and since_ms is not None and since_ms < row.changed_ms
    return shown if since_ms is None or is_old else replace(shown, idle_since=iso(since_ms))


def to_use(use: JobUse) -> Use:
    """Return one usage sample."""
    measure: Measure = use.measure
    memory = use.memory_used_bytes if measure == "gpu" else None
    return Use(
        at=iso(use.at_ms), measure=measure, share=use.use_milli / 1_000, gpu_memory_bytes=memory
    )


def to_idle(fleet: Fleet, usage: Usage, at_ms: Millis, team: str | None) -> Idle:
    """Return the idle jobs of one team, or of all."""
    found = [
        _idle_job(fleet.running[job_id], since_ms, at_ms, usage)
        for job_id, since_ms in fleet.idle.items()
        if job_id in fleet.running and team in (None, fleet.running[job_id].job.team)
    ]
    found.sort(key=lambda one: -one.gpu_hours_lost)
    teams: dict[str, list[IdleJob]] = {}
    for one in found:
        teams.setdefault(one.team, []).append(one)
    summed = [
        IdleTeam(team=name, jobs=len(jobs), gpus=_gpus(jobs), gpu_hours_lost=_hours(jobs))
        for name, jobs in teams.items()
    ]
    return Idle(
        at=iso(at_ms),
        gpus=_gpus(found),
        gpu_hours_lost=_hours(found),
        teams=tuple(sorted(summed, key=lambda one: -one.gpu_hours_lost)),
        jobs=tuple(found[:JOBS_MAX]),
    )


def gpus_of(run: Run) -> float:
    """Return the GPUs that a run holds."""
    return sum(slot.gpus * WHOLE + slot.milli for slot in run.slots) / WHOLE


def _idle_job(run: Run, since_ms: Millis, at_ms: Millis, usage: Usage) -> IdleJob:
    job, gpus, use = run.job, gpus_of(run), usage.of(run.job.id)
    return IdleJob(
        id=job.id,
        team=job.team,
        kind=(job.terms or _PLAIN).kind,
        gpus=gpus,
        idle_since=iso(since_ms),
        gpu_hours_lost=round(gpus * max(0, at_ms - since_ms) / HOUR, 3),
        use=None if use is None else to_use(use),
    )


def _gpus(jobs: list[IdleJob]) -> float:
    return sum(one.gpus for one in jobs)


def _hours(jobs: list[IdleJob]) -> float:
    return round(sum(one.gpu_hours_lost for one in jobs), 3)
