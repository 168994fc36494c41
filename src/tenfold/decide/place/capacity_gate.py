"""Keep jobs pending that no node can run yet, where they allow it, instead of refusing them.

The inner decider refuses such a job as it refuses any other. The gate drops the refusal and hides
the job from then on, until nodes join; then the inner decider sees all jobs again. Without jobs
that set `allow_pending`, the gate does nothing.
"""

from collections.abc import Sequence
from typing import cast

from tenfold.decide.place.hidden_jobs import Gate, ViewWithout
from tenfold.decide.place.indexed import IndexedDecider
from tenfold.decide.place.misfit import CODES
from tenfold.fleet.view import FleetView
from tenfold.model.actions import Action, RefuseJob
from tenfold.model.decision import Decision
from tenfold.model.events import Event, NodeJoined, job_of
from tenfold.model.job.job import Job
from tenfold.model.job.submission import Submission
from tenfold.model.units import Millis

MAY_CHANGE = (*CODES, "larger-than-the-partition", "never-between-windows")
"""Codes of refusals that more nodes may lift."""


class CapacityGate(Gate):
    """Hides jobs that wait for nodes to join from another decider."""

    def __init__(self, inner: IndexedDecider) -> None:
        super().__init__(inner)
        self._is_new = False
        """Whether a job was hidden in the last decision, so the inner decider must rebuild."""

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        """Return the other decider's decision without refusals that more nodes may lift."""
        if self._hidden or self._events_hidden:
            seen, visible = self._visible(view, news)
        else:
            seen, visible = view, news
        self._version = view.version
        decision = self._inner.decide(seen, now_ms, visible)
        kept = [one for one in decision.actions if not self._waits(view, one)]
        if len(kept) == len(decision.actions):
            return decision
        self._is_new = True
        return Decision(kept, decision.wake_at_ms)

    def _visible(
        self, view: FleetView, news: Sequence[Event] | None
    ) -> tuple[FleetView, Sequence[Event] | None]:
        """Return what the inner decider may see: no hidden job, and no event of one."""
        missed = news is None or self._version + len(news) != view.version
        if missed or any(isinstance(event, NodeJoined) for event in news or ()):
            self._hidden, self._events_hidden, self._is_new = {}, 0, False
            return view, None
        assert news is not None
        visible = [event for event in news if job_of(event) not in self._hidden]
        self._events_hidden += len(news) - len(visible)
        for name in [name for name in self._hidden if name not in view.pending]:
            del self._hidden[name]
        seen = cast("FleetView", ViewWithout(view, self._hidden, self._events_hidden))
        if self._is_new:
            self._is_new = False
            return seen, None
        return seen, visible

    def _waits(self, view: FleetView, action: Action) -> bool:
        """Return whether an action refuses a job that waits for nodes instead; hide the job."""
        if not isinstance(action, RefuseJob):
            return False
        job = view.pending[action.job_id]
        if not waits_for_nodes(job, [reason.code for reason in action.reasons]):
            return False
        self._hidden[job.id] = job
        return True


def waits_for_nodes(job: Job | Submission, codes: Sequence[str]) -> bool:
    """Return whether a job that is refused for these reasons waits for nodes to join instead."""
    allows = job.terms is not None and job.terms.allow_pending is True
    return allows and all(code in MAY_CHANGE for code in codes)
