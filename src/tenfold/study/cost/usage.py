"""Who held which GPUs when: from a record, or from a simulation of a trace."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from tenfold.compose.inputs import PreparedRun
from tenfold.compose.simulation import SimResult
from tenfold.engine.recording import events_of
from tenfold.files.records.replay_bundle import Bundle
from tenfold.fleet.fleet import Fleet
from tenfold.live.providers.local import RELEASED
from tenfold.model.errors import InputError
from tenfold.model.events import ActionOrdered, Event, NodeJoined, NodeLeft, NodeLost, NodeReturned
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import WHOLE, Job, Slot
from tenfold.sim.measure.timeline import bounds_ms, spans

NOTHING: tuple[Slot, ...] = ()


class Held(Struct, frozen=True, gc=False):
    """GPUs that a job held on one node for a while."""

    job: Job
    node: NodeId
    milli: int
    """Thousandths of a GPU."""
    start_ms: int
    end_ms: int


class Present(Struct, frozen=True, gc=False):
    """How long a node was part of the fleet, and how long of that it was down."""

    node: Node
    start_ms: int
    end_ms: int
    down_ms: int


class Usage(Struct, frozen=True, kw_only=True):
    """Everything that a bill is made of, within one window."""

    start_ms: int
    end_ms: int
    held: tuple[Held, ...]
    present: tuple[Present, ...]

    @property
    def hours(self) -> float:
        """Length of the window."""
        return (self.end_ms - self.start_ms) / 3_600_000


def usage_of_run(prepared: PreparedRun, result: SimResult) -> Usage:
    """Return the usage of a simulated run, from its first submission to its last end."""
    meters = result.meters
    bounds = bounds_ms(prepared.request.jobs, meters)
    if bounds is None:
        raise InputError("empty-usage", "no job ran, so there is nothing to bill", "check the jobs")
    start, end = bounds
    held = [
        Held(job, slot.node, _milli(slot), max(start, since), min(end, until))
        for job, slots, since, until in spans(meters)
        for slot in slots
        if _milli(slot) and until > since
    ]
    down = _down_ms(meters.lost, meters.returned, start, end)
    present = [
        Present(node, start, end, down.get(node.id, 0))
        for node in prepared.request.nodes
        if node.gpus
    ]
    return Usage(start_ms=start, end_ms=end, held=tuple(held), present=tuple(present))


def usage_of_record(bundle: Bundle) -> Usage:
    """Return the usage of a bundle, an attached history or a journal, whole."""
    events = list(events_of(bundle.lines))
    if not events:
        raise InputError(
            "empty-usage", f"`{bundle.file}` has no events", "record a run first", file=bundle.file
        )
    start, end = _window(events)
    fleet = bundle.base() or Fleet()
    follower = _Follower(fleet, start)
    for event in events:
        follower.follow(event)
    held, present = follower.close(end)
    if not held:
        raise InputError(
            "empty-usage",
            f"`{bundle.file}` records no job that held GPUs",
            "record a run with GPU jobs first",
            file=bundle.file,
        )
    return Usage(start_ms=start, end_ms=end, held=held, present=present)


def _window(events: Sequence[Event]) -> tuple[int, int]:
    times = [event.at_ms for event in events if not isinstance(event, NodeJoined)]
    known = times or [event.at_ms for event in events]
    return min(known), max(known)


class _Follower:
    """Applies events, and notes whenever what a job holds has changed."""

    def __init__(self, fleet: Fleet, start_ms: int) -> None:
        self._fleet = fleet
        self._start_ms = start_ms
        self._holds: dict[JobId, tuple[Job, tuple[Slot, ...], int]] = {}
        self._held: list[Held] = []
        self._nodes = dict(fleet.nodes)
        """Of the fleet, with those that left."""
        self._joined: dict[NodeId, int] = dict.fromkeys(fleet.nodes, start_ms)
        self._left: dict[NodeId, int] = {}
        self._lost: list[tuple[int, NodeId]] = []
        self._returned: list[tuple[int, NodeId]] = []
        for job in (*fleet.running, *fleet.orders):
            self._note(job, start_ms)

    def follow(self, event: Event) -> None:
        """Take one more event into account."""
        self._fleet.apply(event)
        if isinstance(event, NodeJoined):
            self._nodes[event.node.id] = event.node
            self._left.pop(event.node.id, None)
            self._joined.setdefault(event.node.id, max(event.at_ms, self._start_ms))
        elif isinstance(event, NodeLeft) or (
            isinstance(event, NodeLost) and event.cause == RELEASED
        ):
            # A rented node that was given back is no longer paid for.
            self._left[event.node_id] = event.at_ms
        elif isinstance(event, NodeLost):
            self._lost.append((event.at_ms, event.node_id))
        elif isinstance(event, NodeReturned):
            self._returned.append((event.at_ms, event.node_id))
        job_id = getattr(event.action if isinstance(event, ActionOrdered) else event, "job_id", "")
        if job_id:
            self._note(JobId(job_id), event.at_ms)

    def close(self, end_ms: int) -> tuple[tuple[Held, ...], tuple[Present, ...]]:
        """Return everything, with what is still held ended here."""
        for job_id in list(self._holds):
            self._end(job_id, end_ms)
        down = _down_ms(self._lost, self._returned, self._start_ms, end_ms)
        present = [
            Present(
                node,
                self._joined.get(name, self._start_ms),
                self._left.get(name, end_ms),
                down.get(name, 0),
            )
            for name, node in self._nodes.items()
            if node.gpus
        ]
        return tuple(self._held), tuple(present)

    def _note(self, job_id: JobId, at_ms: int) -> None:
        job, slots = self._holding(job_id)
        known = self._holds.get(job_id)
        if known is not None and known[1] == slots:
            return
        self._end(job_id, at_ms)
        if job is not None and slots:
            self._holds[job_id] = (job, slots, max(at_ms, self._start_ms))

    def _holding(self, job_id: JobId) -> tuple[Job | None, tuple[Slot, ...]]:
        run = self._fleet.running.get(job_id)
        if run is not None:
            return run.job, run.slots
        order = self._fleet.orders.get(job_id)
        return (None, NOTHING) if order is None else (order.job, order.slots)

    def _end(self, job_id: JobId, at_ms: int) -> None:
        known = self._holds.pop(job_id, None)
        if known is None:
            return
        job, slots, since_ms = known
        self._held.extend(
            Held(job, slot.node, _milli(slot), since_ms, at_ms)
            for slot in slots
            if _milli(slot) and at_ms > since_ms
        )


def _milli(slot: Slot) -> int:
    return slot.milli or slot.gpus * WHOLE


def _down_ms(
    lost: Iterable[tuple[int, NodeId]],
    returned: Iterable[tuple[int, NodeId]],
    start_ms: int,
    end_ms: int,
) -> Mapping[NodeId, int]:
    """Return how long each node was down within a window; one that never returned, to its end."""
    changes = [(at, 1, node) for at, node in lost] + [(at, 0, node) for at, node in returned]
    since: dict[NodeId, int] = {}
    down: dict[NodeId, int] = {}
    for at, is_lost, node in sorted(changes):
        clipped = min(max(at, start_ms), end_ms)
        if is_lost:
            since.setdefault(node, clipped)
        elif node in since:
            down[node] = down.get(node, 0) + clipped - since.pop(node)
    for node, at in since.items():
        down[node] = down.get(node, 0) + end_ms - at
    return down
