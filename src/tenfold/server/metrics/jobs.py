"""Metrics of jobs, from events: waits, failures, recoveries, and useful GPU time.

What a run was worth is known when it ends: all of it if the job completed, otherwise what it saved.
Only events are used, because the fleet may be ahead of the disk.
"""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import UNSET, Struct

from tenfold.fleet.fleet import NEVER_RAN, Fleet
from tenfold.model.actions import ResizeJob, StartJob
from tenfold.model.events import (
    ActionOrdered,
    Event,
    JobBusy,
    JobCancelled,
    JobEnded,
    JobIdled,
    JobRefused,
    JobResized,
    JobStarted,
    JobStopped,
    JobSubmitted,
    job_of,
)
from tenfold.model.ids import JobId
from tenfold.model.job.job import WHOLE, Slot
from tenfold.model.units import SECOND, Millis
from tenfold.server.metrics.metrics import Meters

FAILURES = ("node-lost", "crashed", "start-failed")
"""Why a job stopped, where that was a failure."""


class _Job(Struct):
    submitted_ms: Millis
    has_run: bool = False
    gpus: float = 0.0
    gpus_next: float = 0.0
    since_ms: Millis = Millis(0)
    """Since when it has held its GPUs."""
    started_ms: Millis | None = None
    ran_gpu_s: float = 0.0
    """GPU time of this run before its last resize."""
    progress_ms: Millis = Millis(0)
    idle_ms: Millis | None = None
    """Since when it is idle."""
    failed_ms: Millis | None = None
    """When a failure stopped it, until it runs again."""


class JobMeters:
    """Follows the jobs of one loop that have not ended."""

    def __init__(self, meters: Meters, fleet: Fleet) -> None:
        self._meters = meters.jobs
        self._jobs: dict[JobId, _Job] = {}
        self._now_ms = 0
        self._take_over(fleet)
        self._handlers: dict[type, Callable[[_Job, Any], None]] = {
            ActionOrdered: self._ordered,
            JobStarted: self._started,
            JobStopped: self._stopped,
            JobEnded: self._ended,
            JobResized: self._resized,
            JobIdled: self._idled,
            JobBusy: self._busy,
        }

    def note(self, events: Sequence[Event], now_ms: int) -> None:
        """Count events that were recorded at `now_ms`."""
        self._now_ms = now_ms
        for event in events:
            if isinstance(event, JobSubmitted):
                self._jobs[event.job.id] = _Job(event.job.submitted_ms)
                continue
            handler = self._handlers.get(type(event))
            job = self._jobs.get(job_of(event) or JobId(""))
            if handler is not None and job is not None:
                handler(job, event)
            if isinstance(event, JobEnded | JobCancelled | JobRefused):
                self._jobs.pop(event.job_id, None)

    def _take_over(self, fleet: Fleet) -> None:
        """Start with the active jobs of the journal."""
        for job in (*fleet.pending.values(), *fleet.held.values()):
            self._jobs[job.id] = _Job(job.submitted_ms)
        for held in fleet.orders.values():
            gpus, since_ms = _gpus(held.slots), held.ordered_ms
            known = _Job(held.job.submitted_ms, gpus=gpus, since_ms=since_ms)
            self._jobs[held.job.id] = known
        for run in fleet.running.values():
            self._jobs[run.job.id] = _Job(
                run.job.submitted_ms,
                has_run=True,
                gpus=_gpus(run.slots),
                gpus_next=_gpus(run.becoming or ()),
                since_ms=run.since_ms,
                started_ms=run.started_ms,
            )
        for job_id, known in self._jobs.items():
            past = fleet.past.get(job_id, NEVER_RAN)
            known.has_run = known.has_run or past.runs > 0
            known.progress_ms = past.progress_ms
            known.idle_ms = fleet.idle.get(job_id)
            if known.started_ms is None and past.runs and past.cause in FAILURES:
                known.failed_ms = past.stopped_ms

    def _ordered(self, job: _Job, event: ActionOrdered) -> None:
        action = event.action
        if isinstance(action, StartJob):
            job.gpus, job.since_ms, job.started_ms = _gpus(action.slots), event.at_ms, None
            job.ran_gpu_s = 0.0
        elif isinstance(action, ResizeJob):
            job.gpus_next = _gpus(action.slots)

    def _started(self, job: _Job, event: JobStarted) -> None:
        if job.failed_ms is not None:
            self._meters.recovered.observe(max(0, event.at_ms - job.failed_ms) / SECOND)
        if not job.has_run:
            self._meters.queue_wait.observe(max(0, event.at_ms - job.submitted_ms) / SECOND)
        job.has_run, job.started_ms, job.failed_ms = True, event.at_ms, None

    def _idled(self, job: _Job, event: JobIdled) -> None:
        job.idle_ms = event.since_ms

    def _busy(self, job: _Job, event: JobBusy | JobStopped | JobEnded | JobResized) -> None:
        """Count idle GPU time once it is over."""
        if job.idle_ms is not None:
            lost_s = max(0, event.at_ms - job.idle_ms) / SECOND
            self._meters.gpu_idle.inc(job.gpus * lost_s)
        job.idle_ms = event.at_ms if isinstance(event, JobResized) and job.idle_ms else None

    def _stopped(self, job: _Job, event: JobStopped) -> None:
        self._busy(job, event)
        self._detected(event)
        self._spent(job, event.at_ms, event.cause)
        saved_s = max(0, event.progress_ms - job.progress_ms) / SECOND
        self._meters.gpu_useful.inc(min(job.gpus * saved_s, _ran_gpu_s(job, event.at_ms)))
        job.has_run, job.progress_ms = True, event.progress_ms
        if event.cause in FAILURES and job.failed_ms is None:
            job.failed_ms = _over_at(event)

    def _ended(self, job: _Job, event: JobEnded) -> None:
        self._busy(job, event)
        self._detected(event)
        self._spent(job, event.at_ms, event.status)
        if event.status == "completed" and job.started_ms is not None:
            over_ms = _over_at(event)
            ran_ms = max(0, over_ms - job.started_ms)
            self._meters.gpu_useful.inc(_ran_gpu_s(job, over_ms))
            self._meters.job_useful.inc((job.progress_ms + ran_ms) / SECOND)
            self._meters.job_wall.inc(max(0, over_ms - job.submitted_ms) / SECOND)

    def _resized(self, job: _Job, event: JobResized) -> None:
        self._busy(job, event)
        self._spent(job, event.at_ms, "resized")
        job.ran_gpu_s = _ran_gpu_s(job, event.at_ms)
        job.gpus, job.since_ms = job.gpus_next, event.at_ms

    def _detected(self, event: JobStopped | JobEnded) -> None:
        if event.failure is not UNSET:
            passed_ms = max(0, self._now_ms - event.failure.last_alive_ms)
            self._meters.detected.observe(passed_ms / SECOND)

    def _spent(self, job: _Job, at_ms: Millis, ended: str) -> None:
        spent_s = max(0, at_ms - job.since_ms) / SECOND
        self._meters.gpu_spent.labels(ended).inc(job.gpus * spent_s)


def _ran_gpu_s(job: _Job, at_ms: Millis) -> float:
    """Return the GPU time of a run so far; time before it started is not useful."""
    if job.started_ms is None:
        return 0.0
    return job.ran_gpu_s + job.gpus * max(0, at_ms - max(job.since_ms, job.started_ms)) / SECOND


def _gpus(slots: Sequence[Slot]) -> float:
    return sum(slot.gpus * WHOLE + slot.milli for slot in slots) / WHOLE


def _over_at(event: JobStopped | JobEnded) -> Millis:
    """Return when the last process ended; GPUs were held until that was noticed."""
    return event.at_ms if event.ended_ms is UNSET else event.ended_ms
