"""The stages of each job as spans of one trace: submit, queue, decide, launch, run, end.

The trace is the one the request belonged to; it is stored with the job in the journal. A stage is
exported once the event that ends it is on disk, so no span is kept open: a control plane that was
killed continues with the next stage.
"""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from tenfold.journal.rows import JobRow
from tenfold.model.actions import StartJob
from tenfold.model.events import (
    ActionOrdered,
    ActionRefused,
    Event,
    JobCancelled,
    JobEnded,
    JobRefused,
    JobResized,
    JobStarted,
    JobStopped,
    JobSubmitted,
)
from tenfold.model.ids import JobId
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.job.submission import Submission
from tenfold.server.metrics.traces import Traces

VARIABLE = "TRACEPARENT"
"""The environment variable that tells a job its trace, so that it can add spans."""


def with_trace(submissions: tuple[Submission, ...], trace: str) -> tuple[Submission, ...]:
    """Return submissions with the trace they belong to, if there is one."""
    if not trace:
        return submissions
    return tuple(replace(one, run_spec=_with_trace(one.run_spec, trace)) for one in submissions)


def _with_trace(spec: RunSpec, trace: str) -> RunSpec:
    own = any(name == VARIABLE for name, _ in spec.env)
    return replace(spec, trace=trace, env=spec.env if own else (*spec.env, (VARIABLE, trace)))


class _TracedJob(Struct):
    """A job that has not ended."""

    trace: str
    team: str
    since_ms: int
    """When its current stage began."""
    attempt: int = 0


class JobTraces:
    """Exports the stages of jobs, from events that are on disk."""

    def __init__(self, traces: Traces) -> None:
        self._traces = traces
        self._jobs: dict[JobId, _TracedJob] = {}

    def take_over(self, unfinished: Iterable[tuple[JobRow, JobSubmitted]]) -> None:
        """Load the jobs that had not ended when the journal was opened."""
        for row, event in unfinished:
            if event.run_spec is not None and event.run_spec.trace:
                job_trace = _TracedJob(event.run_spec.trace, row.team, row.changed_ms, row.attempts)
                self._jobs[row.id] = job_trace

    def note(self, event: Event, started_ms: int, now_ms: int) -> None:
        """Export the stage that an event ends; `started_ms` is when its cycle began."""
        if isinstance(event, JobSubmitted):
            self._submitted(event, now_ms)
        elif isinstance(event, ActionOrdered | ActionRefused):
            if isinstance(event.action, StartJob):
                self._ordered(event, event.action, started_ms, now_ms)
        elif isinstance(event, JobStarted):
            self._end_stage(event.job_id, "launch", event.at_ms)
        elif isinstance(event, JobStopped):
            self._end_stage(event.job_id, "run", event.at_ms, event.cause)
        elif isinstance(event, JobResized):
            self._end_stage(event.job_id, "run", event.at_ms, "resized")
        elif isinstance(event, JobEnded):
            self._end_stage(event.job_id, "run", event.at_ms, event.status)
            self._end_job(event.job_id, now_ms, event.status)
        elif isinstance(event, JobCancelled | JobRefused):
            outcome = "cancelled" if isinstance(event, JobCancelled) else "refused"
            self._end_stage(event.job_id, "queue", event.at_ms, outcome)
            self._end_job(event.job_id, now_ms, outcome)

    def _submitted(self, event: JobSubmitted, now_ms: int) -> None:
        if event.run_spec is not None and event.run_spec.trace:
            job = event.job
            job_trace = self._jobs[job.id] = _TracedJob(event.run_spec.trace, job.team, event.at_ms)
            self._emit(job.id, job_trace, "submit", now_ms)
            job_trace.since_ms = now_ms

    def _ordered(
        self, event: ActionOrdered | ActionRefused, action: StartJob, started_ms: int, now_ms: int
    ) -> None:
        job_id = action.job_id
        if isinstance(event, ActionRefused):
            self._end_stage(job_id, "launch", event.at_ms, event.reason.code)
            return
        job_trace = self._jobs.get(job_id)
        if job_trace is not None:
            job_trace.attempt += 1
            self._end_stage(job_id, "queue", event.at_ms)
            job_trace.since_ms = started_ms
            self._emit(job_id, job_trace, "decide", now_ms)
            job_trace.since_ms = event.at_ms

    def _end_stage(self, job_id: JobId, stage: str, at_ms: int, outcome: str = "") -> None:
        """Export a stage that ended; the next one begins."""
        job_trace = self._jobs.get(job_id)
        if job_trace is not None:
            self._emit(job_id, job_trace, stage, at_ms, outcome)
            job_trace.since_ms = at_ms

    def _end_job(self, job_id: JobId, now_ms: int, outcome: str) -> None:
        job_trace = self._jobs.pop(job_id, None)
        if job_trace is not None:
            self._emit(job_id, job_trace, "end", now_ms, outcome)

    def _emit(
        self, job_id: JobId, job_trace: _TracedJob, stage: str, ended_ms: int, outcome: str = ""
    ) -> None:
        attributes: dict[str, str | int] = {
            "job": job_id,
            "team": job_trace.team,
            "attempt": job_trace.attempt,
        }
        if outcome:
            attributes["outcome"] = outcome
        self._traces.stage(stage, job_trace.trace, job_trace.since_ms, ended_ms, attributes)
