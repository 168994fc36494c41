"""Hide jobs from a decider until their dependencies are met and their array may run another member.

The policy `governed` handles both itself. For every other policy a job with an open dependency is
hidden from the view and the events. It appears when the last dependency is met, as if it were
submitted then, and is refused when one that had to complete did not. Of an array with a limit, as
many members are shown as may run at once, in the order of their indexes.
"""

from collections.abc import Sequence
from typing import cast

from tenfold.decide.place.hidden_jobs import Gate, ViewWithout
from tenfold.decide.place.indexed import IndexedDecider
from tenfold.fleet.view import FleetView
from tenfold.model.actions import Action, RefuseJob
from tenfold.model.decision import Decision
from tenfold.model.events import (
    Event,
    JobCancelled,
    JobChanged,
    JobEnded,
    JobHeld,
    JobRefused,
    JobReleased,
    JobSubmitted,
)
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.reason import JobRef, Reason
from tenfold.model.units import Millis

_ENDS = (JobEnded, JobCancelled, JobRefused)
_LEAVES = (JobCancelled, JobRefused, JobHeld)
"""Events after which a pending job is no longer pending."""


class DependencyGate(Gate):
    """Shows jobs to another decider once their dependencies are met."""

    def __init__(self, inner: IndexedDecider) -> None:
        super().__init__(inner)
        self._shown: dict[JobId, str] = {}
        """Unfinished members of limited arrays that the other decider sees, and their array."""
        self._shown_of: dict[str, int] = {}
        """How many of them each array has."""

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        """Return the other decider's decision, and refusals of jobs that can never start."""
        visible = news
        if (
            news is None
            or self._version + len(news) != view.version
            # A released or changed job is pending without having been submitted just now.
            or any(isinstance(event, JobReleased | JobChanged) for event in news)
        ):
            visible, self._events_hidden = None, 0
            self._begin(view)
        elif self._hidden or self._shown or any(_names_others(event) for event in news):
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
            if isinstance(event, JobSubmitted) and not self._shows(view, event.job):
                self._hidden[event.job.id] = event.job
            elif isinstance(event, _LEAVES) and event.job_id in self._hidden:
                del self._hidden[event.job_id]
            else:
                visible.append(event)
        for event in news:
            if isinstance(event, (*_ENDS, JobHeld)):
                self._forget(event.job_id)
        if any(isinstance(event, (*_ENDS, JobHeld)) for event in news):
            for job in [job for job in self._hidden.values() if self._shows(view, job)]:
                del self._hidden[job.id]
                visible.append(JobSubmitted(news[-1].at_ms, job))
        self._events_hidden += len(news) - len(visible)
        return visible

    def _begin(self, view: FleetView) -> None:
        """Decide anew which pending jobs are hidden."""
        self._hidden, self._shown, self._shown_of = {}, {}, {}
        limited = [job for job in view.pending.values() if _is_limited(job)]
        if limited:
            for held in (*view.orders.values(), *view.running.values()):
                if _is_limited(held.job):
                    self._show(held.job)
        for job in view.pending.values():
            if not _is_limited(job) and waits_for(view, job):
                self._hidden[job.id] = job
        for job in sorted(limited, key=lambda job: (job.submitted_ms, job.seq)):
            if not self._shows(view, job):
                self._hidden[job.id] = job

    def _shows(self, view: FleetView, job: Job) -> bool:
        """Return whether a pending job is to be shown; a member of an array is then counted."""
        if waits_for(view, job):
            return False
        if not _is_limited(job) or job.id in self._shown:
            return True
        assert job.terms is not None, "a member of an array has terms"
        if self._shown_of.get(job.terms.array, 0) >= job.terms.array_most:
            return False
        self._show(job)
        return True

    def _show(self, job: Job) -> None:
        assert job.terms is not None, "a member of an array has terms"
        self._shown[job.id] = job.terms.array
        self._shown_of[job.terms.array] = self._shown_of.get(job.terms.array, 0) + 1

    def _forget(self, job_id: JobId) -> None:
        array = self._shown.pop(job_id, None)
        if array is not None:
            self._shown_of[array] -= 1


def _is_limited(job: Job) -> bool:
    terms = job.terms
    return terms is not None and terms.array_most > 0 and terms.array_most_always is True


def waits_for(view: FleetView, job: Job) -> bool:
    """Return whether a dependency of a job is open or did not complete."""
    if job.terms is None:
        return False
    for earlier in job.terms.after:
        status = view.end_statuses.get(earlier)
        if status is not None:
            if status != "completed":
                return True
        elif _is_unfinished(view, earlier):
            return True
    return any(_is_unfinished(view, earlier) for earlier in job.terms.ended_first)


def _is_unfinished(view: FleetView, job_id: JobId) -> bool:
    return any(job_id in jobs for jobs in (view.pending, view.orders, view.running, view.held))


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
        type(event) is JobSubmitted
        and event.job.terms is not None
        and bool(event.job.terms.after or event.job.terms.ended_first or _is_limited(event.job))
    )
