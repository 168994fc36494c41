"""What a rerun needs from a record besides jobs: faults and the initial state."""

from collections.abc import Sequence

from msgspec.structs import replace

from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import ResizeJob, StartJob
from tenfold.model.events import (
    ActionOrdered,
    Event,
    JobEnded,
    JobStarted,
    JobStopped,
    JobSubmitted,
    NodeCordoned,
    NodeJoined,
    NodeLeft,
    NodeLost,
    NodeReturned,
)
from tenfold.model.fault import Fault
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Slot
from tenfold.model.units import Millis
from tenfold.report.figures import count


def faults_in(events: Sequence[Event]) -> tuple[list[Fault], int]:
    """Return the outages of nodes in order, and how many never came back."""
    lost: dict[NodeId, int] = {}
    faults: list[Fault] = []
    last_ms = last_ms_of(events)
    for event in events:
        if isinstance(event, NodeLost | NodeLeft) and event.node_id not in lost:
            lost[event.node_id] = len(faults)
            until_ms = Millis(max(last_ms, event.at_ms + 1))
            cause = event.cause if isinstance(event, NodeLost) else "left"
            faults.append(Fault(event.at_ms, event.node_id, until_ms, cause))
        elif (back := _back(event)) in lost:
            place = lost.pop(back)
            faults[place] = replace(faults[place], until_ms=event.at_ms)
    return faults, len(lost)


def _back(event: Event) -> NodeId:
    """Return the node that an event brings back, if one."""
    if isinstance(event, NodeJoined):
        return event.node.id
    return event.node_id if isinstance(event, NodeReturned) else NodeId("")


def drains_in(events: Sequence[Event]) -> list[Fault]:
    """Return drains as outages, each from when the last job on the node had ended."""
    drains = _Drains()
    for event in events:
        drains.follow(event)
    for node in list(drains.since_ms):
        drains.close(node, Millis(last_ms_of(events) + 1))
    return drains.faults


class _Drains:
    """Follows which nodes are drained, and from when they are empty."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.since_ms: dict[NodeId, Millis] = {}
        """When each drained node was empty; -1 while jobs run there."""
        self._slots: dict[JobId, tuple[Slot, ...]] = {}
        self._busy: dict[NodeId, int] = {}

    def follow(self, event: Event) -> None:
        """Take one more event into account."""
        if isinstance(event, ActionOrdered) and isinstance(event.action, StartJob):
            self._slots[event.action.job_id] = event.action.slots
            for slot in event.action.slots:
                self._busy[slot.node] = self._busy.get(slot.node, 0) + 1
        elif isinstance(event, JobEnded | JobStopped):
            self._free(event.job_id, event.at_ms)
        elif isinstance(event, NodeCordoned):
            is_busy = self._busy.get(event.node_id)
            self.since_ms[event.node_id] = Millis(-1) if is_busy else event.at_ms
        elif isinstance(event, NodeReturned | NodeLost | NodeLeft):
            self.close(event.node_id, event.at_ms)

    def close(self, node: NodeId, at_ms: Millis) -> None:
        """End the drain of a node."""
        since_ms = self.since_ms.pop(node, None)
        if since_ms is not None and 0 <= since_ms < at_ms:
            self.faults.append(Fault(since_ms, node, at_ms, "drained"))

    def _free(self, job_id: JobId, at_ms: Millis) -> None:
        for slot in self._slots.pop(job_id, ()):
            self._busy[slot.node] -= 1
            if not self._busy[slot.node] and slot.node in self.since_ms:
                self.since_ms[slot.node] = at_ms


def not_repeated_notes(events: Sequence[Event], *, drains: bool = False) -> list[str]:
    """Return notes on what a rerun does not repeat."""
    first_ms = events[0].at_ms if events else Millis(0)
    late_joins = sum(isinstance(event, NodeJoined) and event.at_ms > first_ms for event in events)
    cordoned = sum(isinstance(event, NodeCordoned) for event in events)
    notes: list[str] = []
    if late_joins:
        notes.append(f"{count(late_joins, 'node')} joined later: assumed present from the start")
    if cordoned and not drains:
        notes.append(f"cordons are not repeated: {cordoned:,}")
    return notes


def never_used(events: Sequence[Event]) -> list[NodeId]:
    """Return nodes that are cordoned at the end and never ran a job, such as rejected ones."""
    cordoned: dict[NodeId, None] = {}
    used: dict[NodeId, None] = {}
    for event in events:
        if isinstance(event, NodeCordoned):
            cordoned[event.node_id] = None
        elif isinstance(event, NodeReturned):
            cordoned.pop(event.node_id, None)
        elif isinstance(event, ActionOrdered) and isinstance(event.action, StartJob | ResizeJob):
            used |= {slot.node: None for slot in event.action.slots}
    return [node_id for node_id in cordoned if node_id not in used]


def events_before(base: Fleet, at_ms: Millis) -> list[Event]:
    """Return the initial state of a record as events at its first moment."""
    events: list[Event] = [NodeJoined(at_ms, node) for node in base.nodes.values()]
    down_nodes = [node_id for node_id, state in base.states.items() if state == "down"]
    events += [NodeLost(at_ms, node_id) for node_id in down_nodes]
    events += [JobSubmitted(at_ms, job) for job in base.pending.values()]
    for ordered_or_running in (*base.orders.values(), *base.running.values()):
        events.append(JobSubmitted(at_ms, ordered_or_running.job))
    events += [JobStarted(at_ms, job_id) for job_id in base.running]
    return events


def last_ms_of(events: Sequence[Event]) -> Millis:
    """Return the time of the last event."""
    return events[-1].at_ms if events else Millis(0)
