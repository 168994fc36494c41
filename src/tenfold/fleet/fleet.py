"""The fleet: the only place where state changes, and only by applying an event.

Containers change; the records in them are frozen and replaced. `fork` therefore copies a few
dictionaries and shares every record, so a what-if branch costs almost nothing.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from msgspec import UNSET
from msgspec.structs import replace

from tenfold.fleet.dependents import Dependents
from tenfold.fleet.failure_log import FailureLog
from tenfold.fleet.services import Services
from tenfold.fleet.view import FleetView
from tenfold.model.actions import ReserveStart, ResizeJob, StartJob, StopJob
from tenfold.model.events import (
    ActionOrdered,
    ActionRefused,
    Event,
    JobBusy,
    JobCancelled,
    JobCancelRequested,
    JobChanged,
    JobEnded,
    JobHeld,
    JobIdled,
    JobRefused,
    JobReleased,
    JobResized,
    JobStarted,
    JobStopped,
    JobSubmitted,
    ModelEvent,
    NodeAccepted,
    NodeCordoned,
    NodeJoined,
    NodeLeft,
    NodeLost,
    NodeReturned,
    NodeTested,
    ReplicaEvent,
    ServiceEvent,
)
from tenfold.model.fleet.node import Node, NodeState
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import (
    WHOLE,
    BackfillReservation,
    EndedJob,
    Job,
    JobStatus,
    Order,
    PriorRuns,
    Run,
    Shape,
    Slot,
    per_member,
)
from tenfold.model.service.state import ServiceState
from tenfold.model.units import Millis

__all__ = ["HISTORY", "NEVER_RAN", "Fleet", "FleetView", "more_than"]

HISTORY = 4_096 + 1_024
"""Finished jobs kept: enough to learn from, and bounded."""

EVICTIONS = 1_024
"""Preemptions kept."""

NEVER_RAN = PriorRuns()
_OF_SERVICES = (*get_args(ServiceEvent), *get_args(ReplicaEvent))


class Fleet:
    """Mutable container of frozen records; see `FleetView` for what deciders may read."""

    def __init__(self) -> None:
        self.version = 0
        self.nodes: dict[NodeId, Node] = {}
        self.states: dict[NodeId, NodeState] = {}
        self.gpus_free: dict[NodeId, int] = {}
        self.cpus_milli_free: dict[NodeId, int] = {}
        self.memory_mib_free: dict[NodeId, int] = {}
        self.shares: dict[NodeId, tuple[tuple[int, int], ...]] = {}
        """Shared devices as (device, thousandths in use), by node."""
        self.pending: dict[JobId, Job] = {}
        self.orders: dict[JobId, Order] = {}
        self.running: dict[JobId, Run] = {}
        self.past: dict[JobId, PriorRuns] = {}
        self.held: dict[JobId, Job] = {}
        self.reservations: dict[JobId, BackfillReservation] = {}
        self.idle: dict[JobId, Millis] = {}
        self.cancel_requests: dict[JobId, str] = {}
        self.evictions: deque[Millis] = deque(maxlen=EVICTIONS)
        self.failure_log = FailureLog()
        self._dependents = Dependents()
        self._services = Services()
        self.history: deque[EndedJob] = deque(maxlen=HISTORY)
        self.ended = 0
        self._handlers = {
            JobSubmitted: self._job_submitted,
            ActionOrdered: self._action_ordered,
            JobStarted: self._job_started,
            JobEnded: self._job_ended,
            JobStopped: self._job_stopped,
            JobRefused: self._job_gone,
            JobCancelled: self._job_gone,
            JobHeld: self._job_held,
            JobReleased: self._job_released,
            JobChanged: self._job_changed,
            JobCancelRequested: self._cancel_requested,
            JobResized: self._job_resized,
            JobIdled: self._job_idled,
            JobBusy: self._job_busy,
            ActionRefused: self._action_refused,
            NodeJoined: self._node_joined,
            NodeLost: self._node_lost,
            NodeReturned: self._node_returned,
            NodeCordoned: self._node_cordoned,
            NodeLeft: self._node_left,
            NodeTested: self._node_tested,
            NodeAccepted: self._node_tested,
            **dict.fromkeys(_OF_SERVICES, self._service_changed),
            **dict.fromkeys(get_args(ModelEvent), self._model_changed),
        }

    @property
    def end_statuses(self) -> Mapping[JobId, JobStatus]:
        """How jobs ended that unfinished jobs depend on."""
        return self._dependents.end_statuses

    @property
    def services(self) -> Mapping[str, ServiceState]:
        """Services by name."""
        return self._services.states

    def service_of(self, job_id: JobId) -> str | None:
        """Return the service that an unfinished job is a replica of, if of any."""
        return self._services.service_of(job_id)

    def apply(self, event: Event) -> None:
        """Change the state by one event."""
        self._handlers[type(event)](event)  # pyright: ignore[reportArgumentType]
        self.version += 1

    def apply_all(self, events: Sequence[Event]) -> None:
        """Change the state by the events of one moment, in order."""
        handlers = self._handlers
        for event in events:
            handlers[type(event)](event)  # pyright: ignore[reportArgumentType]
        self.version += len(events)

    def fork(self) -> "Fleet":
        """Return an independent copy for a what-if branch."""
        copy = Fleet()
        copy.version, copy.ended = self.version, self.ended
        copy.nodes, copy.states = self.nodes.copy(), self.states.copy()
        copy.gpus_free = self.gpus_free.copy()
        copy.cpus_milli_free = self.cpus_milli_free.copy()
        copy.memory_mib_free = self.memory_mib_free.copy()
        copy.shares, copy.past = self.shares.copy(), self.past.copy()
        copy.pending, copy.orders = self.pending.copy(), self.orders.copy()
        copy.running, copy.history = self.running.copy(), self.history.copy()
        copy.held = self.held.copy()
        copy.reservations, copy.idle = self.reservations.copy(), self.idle.copy()
        copy.cancel_requests = self.cancel_requests.copy()
        copy.evictions = self.evictions.copy()
        copy.failure_log = self.failure_log.copy()
        copy._dependents = self._dependents.copy()
        copy._services = self._services.copy()
        return copy

    def _job_submitted(self, event: JobSubmitted) -> None:
        job = event.job
        assert job.id not in self.pending, f"job `{job.id}` was submitted twice"
        assert job.id not in self.held, f"job `{job.id}` was submitted while it is held"
        self.pending[job.id] = job
        if job.terms is not None:
            self._dependents.add(job)
            if job.terms.service is not UNSET:
                self._services.submitted(event)

    def _action_ordered(self, event: ActionOrdered) -> None:
        action = event.action
        if type(action) is StartJob:
            job = self.pending.pop(action.job_id)
            self._take(action.slots, job.shape)
            self.orders[action.job_id] = Order(job, action.slots, event.at_ms)
            if self.reservations:
                self.reservations.pop(action.job_id, None)
        elif type(action) is StopJob:
            run = self.running[action.job_id]
            reclaimed = True if action.cause == "idle" else UNSET
            self.running[action.job_id] = replace(run, stopping=True, reclaimed=reclaimed)
            if action.cause == "preempted":
                self.evictions.append(event.at_ms)
        elif type(action) is ResizeJob:
            run = self.running[action.job_id]
            self._take(more_than(action.slots, run.slots), run.job.shape)
            self.running[action.job_id] = replace(run, becoming=action.slots)
        elif type(action) is ReserveStart:
            self.reservations.pop(action.job_id, None)
            if action.slots:
                reservation = BackfillReservation(action.slots, action.start_ms, action.since_ms)
                self.reservations[action.job_id] = reservation

    def _job_started(self, event: JobStarted) -> None:
        order = self.orders.pop(event.job_id)
        run = Run(order.job, order.slots, event.at_ms, False, None, order.ordered_ms)
        self.running[event.job_id] = run

    def _job_ended(self, event: JobEnded) -> None:
        run = self.running.pop(event.job_id)
        self._give(run.slots, run.job.shape)
        if self.idle:
            self.idle.pop(event.job_id, None)
        if self.cancel_requests:
            self.cancel_requests.pop(event.job_id, None)
        if run.job.terms is not None:
            self._leave_terms(run)
            self._services.ended(event.job_id, event.at_ms)
        if self._dependents.awaited:
            self._dependents.over(run.job, event.status)
        if event.failure is not UNSET or self.failure_log.failures or self.failure_log.crashes:
            self.failure_log.ended(event, run.job, [slot.node for slot in run.slots])
        ran_ms = event.at_ms - run.started_ms
        if self.past and (past := self.past.pop(event.job_id, None)):
            ran_ms += past.ran_ms
        self.ended += 1
        self.history.append(EndedJob(run.job, ran_ms, event.at_ms, event.status))

    def _job_stopped(self, event: JobStopped) -> None:
        run = self.running.pop(event.job_id, None)
        if run is not None:
            job, slots, ran_ms = run.job, run.slots, event.at_ms - run.started_ms
            if self.idle:
                self.idle.pop(event.job_id, None)
            if job.terms is not None:
                self._leave_terms(run)
        else:
            order = self.orders.pop(event.job_id)
            job, slots, ran_ms = order.job, order.slots, 0
        self._give(slots, job.shape)
        if job.terms is not None:
            self._services.requeued(event.job_id, event.at_ms)
        if self.cancel_requests:
            self.cancel_requests.pop(event.job_id, None)
        self.failure_log.stopped(event, job)
        past = self.past.get(event.job_id, NEVER_RAN)
        self.past[event.job_id] = PriorRuns(
            past.runs + 1,
            Millis(past.ran_ms + ran_ms),
            event.progress_ms,
            event.at_ms,
            event.cause,
        )
        self.pending[event.job_id] = job

    def _job_gone(self, event: JobRefused | JobCancelled) -> None:
        job = self.held.pop(event.job_id, None) or self.pending.pop(event.job_id)
        self.past.pop(event.job_id, None)
        self.reservations.pop(event.job_id, None)
        self.cancel_requests.pop(event.job_id, None)
        self.failure_log.over(event.job_id)
        if job.terms is not None:
            self._services.ended(event.job_id, event.at_ms)
        if self._dependents.awaited:
            self._dependents.over(job, "cancelled")

    def _job_held(self, event: JobHeld) -> None:
        """It does not start again: what policies know of pending jobs is dropped."""
        self.held[event.job_id] = self.pending.pop(event.job_id)
        self.past.pop(event.job_id, None)
        self.reservations.pop(event.job_id, None)
        self.failure_log.over(event.job_id)

    def _job_released(self, event: JobReleased) -> None:
        self.pending[event.job_id] = self.held.pop(event.job_id)

    def _job_changed(self, event: JobChanged) -> None:
        job = event.job
        jobs = self.held if job.id in self.held else self.pending
        assert job.id in jobs, f"job `{job.id}` was changed while it was not pending"
        self._dependents.leave(jobs[job.id])
        self._dependents.add(job)
        jobs[job.id] = job
        self.reservations.pop(job.id, None)

    def _cancel_requested(self, event: JobCancelRequested) -> None:
        assert event.job_id in self.running or event.job_id in self.orders, (
            f"job `{event.job_id}` has no attempt to cancel"
        )
        self.cancel_requests[event.job_id] = event.by or ""
        self._services.cancelling(event)

    def _service_changed(self, event: ServiceEvent | ReplicaEvent) -> None:
        self._services.apply(event)

    def _job_resized(self, event: JobResized) -> None:
        run = self.running[event.job_id]
        assert run.becoming is not None, f"job `{event.job_id}` was not being resized"
        self._give(more_than(run.slots, run.becoming), run.job.shape)
        self.running[event.job_id] = replace(run, slots=run.becoming, becoming=None)

    def _job_idled(self, event: JobIdled) -> None:
        self.idle[event.job_id] = event.since_ms

    def _job_busy(self, event: JobBusy) -> None:
        self.idle.pop(event.job_id, None)

    def _leave_terms(self, run: Run) -> None:
        """Clear what only runs of jobs with terms have."""
        if run.becoming is not None:
            self._give(more_than(run.becoming, run.slots), run.job.shape)

    def _action_refused(self, event: ActionRefused) -> None:
        action = event.action
        if type(action) is StartJob and (order := self.orders.pop(action.job_id, None)):
            self._give(order.slots, order.job.shape)
            self.pending[action.job_id] = order.job
            self.failure_log.refused(event, order.job)
        elif type(action) is StopJob and (run := self.running.get(action.job_id)):
            self.running[action.job_id] = replace(run, stopping=False, reclaimed=UNSET)
        elif type(action) is ResizeJob and (run := self.running.get(action.job_id)):
            self._give(more_than(action.slots, run.slots), run.job.shape)
            self.running[action.job_id] = replace(run, becoming=None)

    def _node_joined(self, event: NodeJoined) -> None:
        node = event.node
        assert node.id not in self.nodes, f"node `{node.id}` joined twice"
        self.nodes[node.id] = node
        self.states[node.id] = "up"
        self.gpus_free[node.id] = node.gpus
        self.cpus_milli_free[node.id] = node.cpus_milli
        self.memory_mib_free[node.id] = node.memory_mib

    def _node_lost(self, event: NodeLost) -> None:
        self.states[event.node_id] = "down"
        self.failure_log.lost(event.node_id)

    def _node_returned(self, event: NodeReturned) -> None:
        self.states[event.node_id] = "up"
        self.failure_log.returned(event.node_id)

    def _node_cordoned(self, event: NodeCordoned) -> None:
        self.states[event.node_id] = "cordoned"
        if event.cause is not UNSET:
            self.failure_log.cordoned(event.node_id, event.cause)

    def _node_left(self, event: NodeLeft) -> None:
        node_id = event.node_id
        assert not any(node_id in nodes for nodes in self._used_nodes()), f"`{node_id}` is in use"
        for by_node in (
            self.nodes,
            self.states,
            self.gpus_free,
            self.cpus_milli_free,
            self.memory_mib_free,
        ):
            del by_node[node_id]
        for job_id, reservation in list(self.reservations.items()):
            if any(slot.node == node_id for slot in reservation.slots):
                del self.reservations[job_id]
        self.failure_log.returned(node_id)

    def _used_nodes(self) -> Iterator[tuple[NodeId, ...]]:
        for order in self.orders.values():
            yield tuple(slot.node for slot in order.slots)
        for run in self.running.values():
            yield tuple(slot.node for slot in (*run.slots, *(run.becoming or ())))

    def _node_tested(self, event: NodeTested | NodeAccepted) -> None:
        """The consequences of a test are events of their own; its figures change nothing here."""
        assert event.node_id in self.nodes, f"node `{event.node_id}` never joined"

    def _model_changed(self, event: ModelEvent) -> None:
        """No decider reads the model registry: it is in the read tables of the journal."""

    def _take(self, slots: tuple[Slot, ...], shape: Shape) -> None:
        free = self.gpus_free
        for slot in slots:
            if slot.milli:
                self._share(slot, slot.milli)
                continue
            left = free[slot.node] - slot.gpus
            assert left >= 0, f"node `{slot.node}` is over-allocated by {-left} gpus"
            free[slot.node] = left
        if shape.cpus_milli or shape.memory_mib:
            self._hold(slots, shape, -1)

    def _give(self, slots: tuple[Slot, ...], shape: Shape) -> None:
        free = self.gpus_free
        for slot in slots:
            if slot.milli:
                self._share(slot, -slot.milli)
            else:
                free[slot.node] += slot.gpus
        if shape.cpus_milli or shape.memory_mib:
            self._hold(slots, shape, 1)

    def _hold(self, slots: tuple[Slot, ...], shape: Shape, sign: int) -> None:
        cpus, memory = per_member(shape, len(slots))
        for slot in slots:
            node = self.nodes[slot.node]
            if node.cpus_milli:
                self.cpus_milli_free[slot.node] += sign * cpus
                assert self.cpus_milli_free[slot.node] >= 0, f"node `{slot.node}` is out of cpus"
            if node.memory_mib:
                self.memory_mib_free[slot.node] += sign * memory
                assert self.memory_mib_free[slot.node] >= 0, f"node `{slot.node}` is out of memory"

    def _share(self, slot: Slot, milli: int) -> None:
        given = dict(self.shares.get(slot.node, ()))
        before = given.get(slot.device, 0)
        after = before + milli
        assert 0 <= after <= WHOLE, f"device {slot.device} of node `{slot.node}` is over-shared"
        if before == 0:
            self.gpus_free[slot.node] -= 1
            assert self.gpus_free[slot.node] >= 0, f"node `{slot.node}` has no free device to share"
        if after == 0:
            self.gpus_free[slot.node] += 1
            del given[slot.device]
        else:
            given[slot.device] = after
        if given:
            self.shares[slot.node] = tuple(sorted(given.items()))
        else:
            del self.shares[slot.node]


def more_than(slots: tuple[Slot, ...], others: tuple[Slot, ...]) -> tuple[Slot, ...]:
    """Return what slots have beyond other slots, by node; shares are never resized."""
    held = {slot.node: slot.gpus for slot in others}
    return tuple(
        Slot(slot.node, slot.gpus - held.get(slot.node, 0))
        for slot in slots
        if slot.gpus > held.get(slot.node, 0)
    )
