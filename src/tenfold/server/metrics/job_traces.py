"""The stages of each job as spans of one trace: submit, queue, decide, launch, run, end.

The trace is the one that the request belonged to, kept with the job in the journal. A stage is
told when the fact that ends it is on the disk, so no span has to be kept open: a control plane
that was killed goes on with the stages that follow.
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
"""By this a job knows of which trace it is a part, and may add spans of its own."""


def traced(submissions: tuple[Submission, ...], trace: str) -> tuple[Submission, ...]:
    """Return submissions that know of which trace they are a part, where there is one."""
    if not trace:
        return submissions
    return tuple(replace(one, run_spec=_marked(one.run_spec, trace)) for one in submissions)


def _marked(spec: RunSpec, trace: str) -> RunSpec:
    own = any(name == VARIABLE for name, _ in spec.env)
    return replace(spec, trace=trace, env=spec.env if own else (*spec.env, (VARIABLE, trace)))


class _Known(Struct):
    """A job that is not over."""

    trace: str
    team: str
    since_ms: int
    """When the stage began that it is in."""
    attempt: int = 0


class JobTraces:
    """Tells the stages of jobs, from facts that are on the disk."""

    def __init__(self, traces: Traces) -> None:
        self._traces = traces
        self._known: dict[JobId, _Known] = {}

    def take_over(self, unfinished: Iterable[tuple[JobRow, JobSubmitted]]) -> None:
        """Know the jobs again that were not over when the journal was opened."""
        for row, event in unfinished:
            if event.run_spec is not None and event.run_spec.trace:
                known = _Known(event.run_spec.trace, row.team, row.changed_ms, row.attempts)
                self._known[row.id] = known

    def note(self, event: Event, begun_ms: int, now_ms: int) -> None:
        """Tell the stage that a fact ends; `begun_ms` is when its cycle began."""
        if isinstance(event, JobSubmitted):
            self._submitted(event, now_ms)
        elif isinstance(event, ActionOrdered | ActionRefused):
            if isinstance(event.action, StartJob):
                self._ordered(event, event.action, begun_ms, now_ms)
        elif isinstance(event, JobStarted):
            self._passes(event.job_id, "launch", event.at_ms)
        elif isinstance(event, JobStopped):
            self._passes(event.job_id, "run", event.at_ms, event.cause)
        elif isinstance(event, JobResized):
            self._passes(event.job_id, "run", event.at_ms, "resized")
        elif isinstance(event, JobEnded):
            self._passes(event.job_id, "run", event.at_ms, event.status)
            self._ends(event.job_id, now_ms, event.status)
        elif isinstance(event, JobCancelled | JobRefused):
            outcome = "cancelled" if isinstance(event, JobCancelled) else "refused"
            self._passes(event.job_id, "queue", event.at_ms, outcome)
            self._ends(event.job_id, now_ms, outcome)

    def _submitted(self, event: JobSubmitted, now_ms: int) -> None:
        if event.run_spec is not None and event.run_spec.trace:
            job = event.job
            known = self._known[job.id] = _Known(event.run_spec.trace, job.team, event.at_ms)
            self._tell(job.id, known, "submit", now_ms)
            known.since_ms = now_ms

    def _ordered(
        self, event: ActionOrdered | ActionRefused, action: StartJob, begun_ms: int, now_ms: int
    ) -> None:
        job_id = action.job_id
        if isinstance(event, ActionRefused):
            self._passes(job_id, "launch", event.at_ms, event.reason.code)
            return
        known = self._known.get(job_id)
        if known is not None:
            known.attempt += 1
            self._passes(job_id, "queue", event.at_ms)
            known.since_ms = begun_ms
            self._tell(job_id, known, "decide", now_ms)
            known.since_ms = event.at_ms

    def _passes(self, job_id: JobId, stage: str, at_ms: int, outcome: str = "") -> None:
        """Tell a stage that is over; the next one begins."""
        known = self._known.get(job_id)
        if known is not None:
            self._tell(job_id, known, stage, at_ms, outcome)
            known.since_ms = at_ms

    def _ends(self, job_id: JobId, now_ms: int, outcome: str) -> None:
        known = self._known.pop(job_id, None)
        if known is not None:
            self._tell(job_id, known, "end", now_ms, outcome)

    def _tell(
        self, job_id: JobId, known: _Known, stage: str, ended_ms: int, outcome: str = ""
    ) -> None:
        told: dict[str, str | int] = {
            "job": job_id,
            "team": known.team,
            "attempt": known.attempt,
        }
        if outcome:
            told["outcome"] = outcome
        self._traces.stage(stage, known.trace, known.since_ms, ended_ms, told)
