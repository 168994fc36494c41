"""The fleet: the one place where state changes, and only by applying an event.

Containers change, the records in them never do: they are replaced. So `fork` copies a few
dictionaries and shares every record, and a what-if branch costs almost nothing.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace

from tenfold.model.actions import StartJob, StopJob
from tenfold.model.events import (
    ActionOrdered,
    ActionRefused,
    Event,
    JobCancelled,
    JobEnded,
    JobRefused,
    JobStarted,
    JobStopped,
    JobSubmitted,
    NodeCordoned,
    NodeJoined,
    NodeLost,
    NodeReturned,
)
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job import WHOLE, Ended, Job, Order, Past, Run, Shape, Slot, per_member
from tenfold.model.node import Node, NodeState
from tenfold.model.units import Millis

HISTORY = 4_096 + 1_024
"""Finished jobs that are remembered: enough to learn from, and bounded."""

NEVER_RAN = Past()


class FleetView(Protocol):
    """What a decider may see. It has no method that changes anything."""

    @property
    def version(self) -> int:
        """Number of events applied so far."""
        ...

    @property
    def nodes(self) -> Mapping[NodeId, Node]:
        """Every node that ever joined, in order."""
        ...

    @property
    def states(self) -> Mapping[NodeId, NodeState]:
        """Whether a node may take work."""
        ...

    @property
    def gpus_free(self) -> Mapping[NodeId, int]:
        """Whole devices that nobody holds a part of."""
        ...

    @property
    def cpus_milli_free(self) -> Mapping[NodeId, int]:
        """CPUs left, where they are counted."""
        ...

    @property
    def memory_mib_free(self) -> Mapping[NodeId, int]:
        """Memory left, where it is counted."""
        ...

    @property
    def shares(self) -> Mapping[NodeId, tuple[tuple[int, int], ...]]:
        """Devices that are shared, as (device, thousandths given)."""
        ...

    @property
    def pending(self) -> Mapping[JobId, Job]:
        """Jobs that wait."""
        ...

    @property
    def orders(self) -> Mapping[JobId, Order]:
        """Starts whose outcome is not known yet."""
        ...

    @property
    def running(self) -> Mapping[JobId, Run]:
        """Jobs that run, or are being stopped."""
        ...

    @property
    def past(self) -> Mapping[JobId, Past]:
        """Earlier runs of jobs that are not over."""
        ...

    @property
    def history(self) -> Sequence[Ended]:
        """The latest finished jobs, oldest first."""
        ...

    @property
    def ended(self) -> int:
        """How many jobs are over."""
        ...


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
        """Devices that are shared, as (device, thousandths given), by node."""
        self.pending: dict[JobId, Job] = {}
        self.orders: dict[JobId, Order] = {}
        self.running: dict[JobId, Run] = {}
        self.past: dict[JobId, Past] = {}
        self.history: deque[Ended] = deque(maxlen=HISTORY)
        self.ended = 0
        self._handlers = {
            JobSubmitted: self._job_submitted,
            ActionOrdered: self._action_ordered,
            JobStarted: self._job_started,
            JobEnded: self._job_ended,
            JobStopped: self._job_stopped,
            JobRefused: self._job_gone,
            JobCancelled: self._job_gone,
            ActionRefused: self._action_refused,
            NodeJoined: self._node_joined,
            NodeLost: self._node_lost,
            NodeReturned: self._node_returned,
            NodeCordoned: self._node_cordoned,
        }

    def apply(self, event: Event) -> None:
        """Change the state by one fact."""
        self._handlers[type(event)](event)  # pyright: ignore[reportArgumentType]
        self.version += 1

    def apply_all(self, events: Sequence[Event]) -> None:
        """Change the state by the facts of one moment, in order."""
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
        return copy

    def _job_submitted(self, event: JobSubmitted) -> None:
        job = event.job
        assert job.id not in self.pending, f"job `{job.id}` was submitted twice"
        self.pending[job.id] = job

    def _action_ordered(self, event: ActionOrdered) -> None:
        action = event.action
        if type(action) is StartJob:
            job = self.pending.pop(action.job_id)
            self._take(action.slots, job.shape)
            self.orders[action.job_id] = Order(job, action.slots, event.at_ms)
        elif type(action) is StopJob:
            run = self.running[action.job_id]
            self.running[action.job_id] = replace(run, stopping=True)

    def _job_started(self, event: JobStarted) -> None:
        order = self.orders.pop(event.job_id)
        self.running[event.job_id] = Run(order.job, order.slots, event.at_ms)

    def _job_ended(self, event: JobEnded) -> None:
        run = self.running.pop(event.job_id)
        self._give(run.slots, run.job.shape)
        ran_ms = event.at_ms - run.started_ms
        if self.past and (past := self.past.pop(event.job_id, None)):
            ran_ms += past.ran_ms
        self.ended += 1
        self.history.append(Ended(run.job, ran_ms, event.at_ms, event.status))

    def _job_stopped(self, event: JobStopped) -> None:
        run = self.running.pop(event.job_id, None)
        if run is not None:
            job, slots, ran_ms = run.job, run.slots, event.at_ms - run.started_ms
        else:
            order = self.orders.pop(event.job_id)
            job, slots, ran_ms = order.job, order.slots, 0
        self._give(slots, job.shape)
        past = self.past.get(event.job_id, NEVER_RAN)
        self.past[event.job_id] = Past(
            past.runs + 1,
            Millis(past.ran_ms + ran_ms),
            event.progress_ms,
            event.at_ms,
            event.cause,
        )
        self.pending[event.job_id] = job

    def _job_gone(self, event: JobRefused | JobCancelled) -> None:
        del self.pending[event.job_id]
        self.past.pop(event.job_id, None)

    def _action_refused(self, event: ActionRefused) -> None:
        action = event.action
        if type(action) is StartJob and (order := self.orders.pop(action.job_id, None)):
            self._give(order.slots, order.job.shape)
            self.pending[action.job_id] = order.job
        elif type(action) is StopJob and (run := self.running.get(action.job_id)):
            self.running[action.job_id] = replace(run, stopping=False)

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

    def _node_returned(self, event: NodeReturned) -> None:
        self.states[event.node_id] = "up"

    def _node_cordoned(self, event: NodeCordoned) -> None:
        self.states[event.node_id] = "cordoned"

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
                assert self.cpus_milli_free[slot.node] >= 0, f"node `{slot.node}` lacks cpus"
            if node.memory_mib:
                self.memory_mib_free[slot.node] += sign * memory
                assert self.memory_mib_free[slot.node] >= 0, f"node `{slot.node}` lacks memory"

    def _share(self, slot: Slot, milli: int) -> None:
        given = dict(self.shares.get(slot.node, ()))
        before = given.get(slot.device, 0)
        after = before + milli
        assert 0 <= after <= WHOLE, f"device {slot.device} of node `{slot.node}` is over-shared"
        if before == 0:
            self.gpus_free[slot.node] -= 1
            assert self.gpus_free[slot.node] >= 0, f"node `{slot.node}` has no device to share"
        if after == 0:
            self.gpus_free[slot.node] += 1
            del given[slot.device]
        else:
            given[slot.device] = after
        if given:
            self.shares[slot.node] = tuple(sorted(given.items()))
        else:
            del self.shares[slot.node]
