"""Hide jobs from a decider until the jobs they depend on have completed.

The policy `governed` handles dependencies itself. For every other policy a job with an open
dependency is hidden from the view and the events. It appears when the last dependency has
completed, as if it were submitted then, and is refused when one did not complete.
"""

from collections.abc import Sequence
from typing import cast

from tenfold.decide.place.hidden_jobs import Gate, ViewWithout
from tenfold.fleet.view import FleetView
from tenfold.model.actions import Action, RefuseJob
from tenfold.model.decision import Decision
from tenfold.model.events import (
    Event,
    JobCancelled,
    JobEnded,
    JobHeld,
    JobRefused,
    JobReleased,
    JobSubmitted,
)
from tenfold.model.job.job import Job
from tenfold.model.reason import JobRef, Reason
from tenfold.model.units import Millis

_ENDS = (JobEnded, JobCancelled, JobRefused)
_LEAVES = (JobCancelled, JobRefused, JobHeld)
"""Events after which a pending job is no longer pending."""


class DependencyGate(Gate):
    """Shows jobs to another decider once their dependencies have completed."""

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        """Return the other decider's decision, and refusals of jobs that can never start."""
        visible = news
        if (
            news is None
            or self._version + len(news) != view.version
            # A released job is pending without having been submitted just now.
            or any(type(event) is JobReleased for event in news)
        ):
            visible, self._events_hidden = None, 0
            self._hidden = {job.id: job for job in view.pending.values() if waits_for(view, job)}
        elif self._hidden or any(_names_others(event) for event in news):
            visible = self._visible_events(view, news)
        self._version = view.version
        refused = [
            RefuseJob(job.id, (reason,))
            for job in self._hidden.values()
            if (reason := failed_before(view, job)) is not None
        ]
        seen = view
        if self._hidden or self._events_hidden:
            seen = cast("FleetView", ViewWithout(view, self._hidden, self._events_hidden))
        decision = self._inner.decide(seen, now_ms, visible)
        if not refused:
            return decision
        return Decision(
            cast("Sequence[Action]", [*refused, *decision.actions]), decision.wake_at_ms
        )

    def _visible_events(self, view: FleetView, news: Sequence[Event]) -> list[Event]:
        """Return the events without those of hidden jobs, plus submissions of jobs now shown."""
        visible: list[Event] = []
        for event in news:
            if isinstance(event, JobSubmitted) and waits_for(view, event.job):
                self._hidden[event.job.id] = event.job
            elif isinstance(event, _LEAVES) and event.job_id in self._hidden:
                del self._hidden[event.job_id]
            else:
                visible.append(event)
        if any(isinstance(event, _ENDS) for event in news):
            for job in [job for job in self._hidden.values() if not waits_for(view, job)]:
                del self._hidden[job.id]
                visible.append(JobSubmitted(news[-1].at_ms, job))
        self._events_hidden += len(news) - len(visible)
        return visible


def waits_for(view: FleetView, job: Job) -> bool:
    """Return whether a dependency of a job is open or did not complete."""
    if job.terms is None:
        return False
    for earlier in job.terms.after:
        status = view.end_statuses.get(earlier)
        if status is not None:
            if status != "completed":
                return True
        elif any(earlier in jobs for jobs in (view.pending, view.orders, view.running, view.held)):
            return True
    return False


def failed_before(view: FleetView, job: Job) -> Reason | None:
    """Return the reason if a dependency of a job did not complete."""
    assert job.terms is not None, "a hidden job has terms"
    for earlier in job.terms.after:
        status = view.end_statuses.get(earlier)
        if status is not None and status != "completed":
            return Reason("dependency-failed", {"job": JobRef(earlier), "status": status})
    return None


def _names_others(event: Event) -> bool:
    return (
        type(event) is JobSubmitted and event.job.terms is not None and bool(event.job.terms.after)
    )
