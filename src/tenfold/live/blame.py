"""Cordon nodes that keep failing jobs, as soon as the last failure is reported.

A decider judges through `CordonRule` whether a node is at fault; here it only gets the state after
the pending events. The failed job is therefore not placed there again first.
"""

from collections.abc import Callable, Sequence

from msgspec import UNSET

from tenfold.fleet.failure_log import FailureLog
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

CordonRule = Callable[[FleetView, FailureLog, Millis], Sequence[tuple[NodeId, Reason]]]
"""Returns the nodes to cordon now, with reasons."""


def no_cordons(
    view: FleetView, failure_log: FailureLog, now_ms: Millis
) -> Sequence[tuple[NodeId, Reason]]:
    """Cordon no node."""
    return ()


class FailureCordons:
    """Applies the cordon rule when there is a new failure."""

    def __init__(self, judge: CordonRule, view: FleetView) -> None:
        self._judge = judge
        self._view = view
        self._is_asked = False
        """A restarted control plane checks once: the previous one may not have."""

    def cordons(self, events: Sequence[Event], now_ms: Millis) -> list[Event]:
        """Return the cordons that follow from events that are not applied yet."""
        if self._is_asked and not any(self._is_relevant(event) for event in events):
            return []
        self._is_asked = True
        failure_log = self._view.failure_log.copy()
        changed: dict[NodeId, None] = {}
        for event in events:
            self._note(failure_log, event)
            if isinstance(event, NodeLost | NodeCordoned | NodeReturned):
                changed[event.node_id] = None
        return [
            NodeCordoned(now_ms, node, cause)
            for node, cause in self._judge(self._view, failure_log, now_ms)
            if node not in changed
        ]

    def _is_relevant(self, event: Event) -> bool:
        if isinstance(event, JobEnded) and event.status == "completed":
            return bool(self._view.failure_log.failures)
        reported = isinstance(event, JobStopped | JobEnded | ActionRefused)
        return reported and event.failure is not UNSET

    def _note(self, failure_log: FailureLog, event: Event) -> None:
        if isinstance(event, JobEnded):
            held = self._held(event.job_id)
            if held is not None:
                failure_log.ended(event, held.job, [slot.node for slot in held.slots])
        elif isinstance(event, JobStopped):
            held = self._held(event.job_id)
            if held is not None:
                failure_log.stopped(event, held.job)
        elif isinstance(event, ActionRefused):
            held = self._held(event.action.job_id)
            if held is not None:
                failure_log.refused(event, held.job)
        elif isinstance(event, NodeReturned):
            failure_log.returned(event.node_id)

    def _held(self, job_id: JobId) -> Run | Order | None:
        return self._view.running.get(job_id) or self._view.orders.get(job_id)
