"""Nodes that keep failing jobs are cordoned, in the moment that the last failure is told.

Whether a node is to blame is a decider's question and is asked through `Judge`; here it is
only told what the fleet will know once the facts on their way are applied. So the job that
failed last is not placed there again first.
"""

from collections.abc import Callable, Sequence

from msgspec import UNSET

from tenfold.fleet.trouble import Trouble
from tenfold.fleet.view import FleetView
from tenfold.model.events import (
    ActionRefused,
    Event,
    JobEnded,
    JobStopped,
    NodeCordoned,
    NodeLost,
    NodeReturned,
)
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Order, Run
from tenfold.model.reason import Reason
from tenfold.model.units import Millis

Judge = Callable[[FleetView, Trouble, Millis], Sequence[tuple[NodeId, Reason]]]
"""Tells which nodes are to be cordoned now, and why."""


def nobody(view: FleetView, trouble: Trouble, now_ms: Millis) -> Sequence[tuple[NodeId, Reason]]:
    """Blame no node."""
    return ()


class Blame:
    """Asks the judge when there is something new to judge."""

    def __init__(self, judge: Judge, view: FleetView) -> None:
        self._judge = judge
        self._view = view
        self._is_asked = False
        """A controller that comes back asks once: the one before may not have come to it."""

    def verdicts(self, facts: Sequence[Event], now_ms: Millis) -> list[Event]:
        """Return the cordons that follow from facts that are not applied yet."""
        if self._is_asked and not any(self._is_news(fact) for fact in facts):
            return []
        self._is_asked = True
        trouble = self._view.trouble.copy()
        changed: dict[NodeId, None] = {}
        for fact in facts:
            self._note(trouble, fact)
            if isinstance(fact, NodeLost | NodeCordoned | NodeReturned):
                changed[fact.node_id] = None
        return [
            NodeCordoned(now_ms, node, cause)
            for node, cause in self._judge(self._view, trouble, now_ms)
            if node not in changed
        ]

    def _is_news(self, fact: Event) -> bool:
        if isinstance(fact, JobEnded) and fact.status == "completed":
            return bool(self._view.trouble.failures)
        told = isinstance(fact, JobStopped | JobEnded | ActionRefused)
        return told and fact.failure is not UNSET

    def _note(self, trouble: Trouble, fact: Event) -> None:
        if isinstance(fact, JobEnded):
            held = self._held(fact.job_id)
            if held is not None:
                trouble.ended(fact, held.job, [slot.node for slot in held.slots])
        elif isinstance(fact, JobStopped):
            held = self._held(fact.job_id)
            if held is not None:
                trouble.stopped(fact, held.job)
        elif isinstance(fact, ActionRefused):
            held = self._held(fact.action.job_id)
            if held is not None:
                trouble.refused(fact, held.job)
        elif isinstance(fact, NodeReturned):
            trouble.returned(fact.node_id)

    def _held(self, job_id: JobId) -> Run | Order | None:
        return self._view.running.get(job_id) or self._view.orders.get(job_id)
