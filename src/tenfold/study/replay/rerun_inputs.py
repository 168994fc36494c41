"""What a rerun needs from a record besides jobs: faults and the initial state."""

from collections.abc import Sequence

from msgspec.structs import replace

from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import ResizeJob, StartJob
from tenfold.model.events import (
    ActionOrdered,
    Event,
    JobStarted,
    JobSubmitted,
    NodeCordoned,
    NodeJoined,
    NodeLost,
    NodeReturned,
)
from tenfold.model.fault import Fault
from tenfold.model.ids import NodeId
from tenfold.model.units import Millis
from tenfold.report.figures import count


def faults_in(events: Sequence[Event]) -> tuple[list[Fault], int]:
    """Return the outages of nodes in order, and how many never came back."""
    lost: dict[NodeId, int] = {}
    faults: list[Fault] = []
    last_ms = last_ms_of(events)
    for event in events:
        if isinstance(event, NodeLost):
            lost[event.node_id] = len(faults)
            until_ms = Millis(max(last_ms, event.at_ms + 1))
            faults.append(Fault(event.at_ms, event.node_id, until_ms, event.cause))
        elif isinstance(event, NodeReturned) and event.node_id in lost:
            place = lost.pop(event.node_id)
            faults[place] = replace(faults[place], until_ms=event.at_ms)
    return faults, len(lost)


def not_repeated_notes(events: Sequence[Event]) -> list[str]:
    """Return notes on what a rerun does not repeat."""
    first_ms = events[0].at_ms if events else Millis(0)
    late_joins = sum(isinstance(event, NodeJoined) and event.at_ms > first_ms for event in events)
    cordoned = sum(isinstance(event, NodeCordoned) for event in events)
    notes: list[str] = []
    if late_joins:
        notes.append(f"{count(late_joins, 'node')} joined later: assumed present from the start")
    if cordoned:
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
