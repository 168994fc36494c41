"""The `governed` policy: many teams with quotas, large gangs, reserved starts.

Each cycle, in this order: gangs that lost a node restart; reserved gangs start; teams within
their quota go first, then by fair share; jobs within quota reclaim what others borrowed; large
gangs get a reserved start; elastic jobs grow into what no pending job needs. README.md draws it.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from tenfold.decide.place.quota.team_tree import next_hours_ms
from tenfold.decide.place.ranked.learned import epoch
from tenfold.decide.place.scheduling_pass import SchedulingPass
from tenfold.decide.place.state.scheduler_state import SchedulerState
from tenfold.fleet.capacity import Capacity
from tenfold.fleet.fleet import FleetView
from tenfold.model.actions import Action, RefuseJob, ResizeJob, StartJob
from tenfold.model.decision import Decision
from tenfold.model.events import (
    ActionOrdered,
    Event,
    JobBusy,
    JobEnded,
    JobIdled,
    JobStarted,
    JobStopped,
    JobSubmitted,
)
from tenfold.model.job.job import Job
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.units import Millis


class GovernedPlacer:
    """A decider for teams that share a fleet."""

    name = "governed"

    def __init__(self, govern: GovernanceRules) -> None:
        self._govern = govern
        self._version = -1
        self._hours_ms: int | None = None
        """When quotas, off-peak hours or windows change next."""
        self._state: SchedulerState | None = None
        self._is_decayed = govern.fair_share == "decayed"
        self._epoch = 0
        """The count of finished jobs at which decayed usage was last computed."""

    @property
    def index(self) -> Capacity | None:
        """Free capacity without nodes of windows and reservations; None during a resize."""
        state = self._state
        return None if state is None or state.resizing else state.capacity

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        """Return starts, stops, reservations and resizes, and when to wake up next."""
        state = self._state
        fresh: list[Job] = []
        if (
            state is None
            or news is None
            or self._version + len(news) != view.version
            or (self._hours_ms is not None and now_ms >= self._hours_ms)
            or state.resizing
            or (self._is_decayed and self._epoch != epoch(view.ended))
            or not _apply_events(state, news, fresh)
        ):
            state = self._state = SchedulerState(self._govern, view, now_ms)
            self._epoch = epoch(view.ended)
            edges = (next_hours_ms(self._govern, now_ms), state.windows.next_ms)
            self._hours_ms = min((at_ms for at_ms in edges if at_ms is not None), default=None)
            fresh = list(view.pending.values())
        self._version = view.version
        scheduling_pass = SchedulingPass(state, view, now_ms)
        decision = scheduling_pass.start_single(fresh[0]) if len(fresh) == 1 else None
        if decision is None:
            scheduling_pass.admit(fresh)
            decision = scheduling_pass.run()
        wake_ms, hours_ms = decision.wake_at_ms, self._hours_ms
        if hours_ms is None or not (view.pending or view.running or view.orders):
            return decision
        if wake_ms is not None and wake_ms <= hours_ms:
            return decision
        return replace(decision, wake_at_ms=Millis(hours_ms))


def _apply_events(state: SchedulerState, news: Sequence[Event], fresh: list[Job]) -> bool:
    """Apply events to the scheduler state; False if it must be rebuilt."""
    for event in news:
        if isinstance(event, JobStarted):
            allocation = state.allocations.held[event.job_id]
            if allocation.started_ms != event.at_ms:
                state.allocations.run_started(allocation, event.at_ms)
                state.dirty = True
            # An elastic job can shrink once it runs.
            state.dirty |= allocation.job.terms is not None
        elif isinstance(event, JobSubmitted):
            fresh.append(event.job)
        elif isinstance(event, JobEnded):
            allocation = state.release(event.job_id)
            again = state.admission.ended(allocation.job)
            if any(job.terms is not None and job.terms.array_most for job in again):
                return False
            fresh += again
        elif isinstance(event, ActionOrdered):
            if not _is_known(event.action, state, fresh):
                return False
        elif not _apply_rare_event(event, state, fresh):
            return False
    return True


def _apply_rare_event(event: Event, state: SchedulerState, fresh: list[Job]) -> bool:
    """Apply a rarer event; False if the state must be rebuilt."""
    if isinstance(event, JobStopped) and event.cause == "preempted":
        allocation = state.release(event.job_id)
        fresh.append(allocation.job)
        return state.admission.is_plain(allocation.job)
    return isinstance(event, JobIdled | JobBusy)


def _is_known(action: Action, state: SchedulerState, fresh: list[Job]) -> bool:
    """Return whether the state already reflects an order; True for its own orders."""
    if isinstance(action, StartJob):
        return action.job_id in state.allocations.held
    if isinstance(action, RefuseJob):
        fresh += state.admission.refused(action.job_id)
    return not isinstance(action, ResizeJob)
