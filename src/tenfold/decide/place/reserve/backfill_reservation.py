"""Promises: nodes that are kept for a waiting gang, and when it is to start there.

A gang that small jobs would starve is promised the nodes that are expected to be free
first. Nobody else may use them then, except jobs that are sure to end in time, or that may
be stopped when the promise comes due. A promise is a fact of the journal: a controller that
starts again keeps it, and a gang keeps the place that it was promised.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from tenfold.decide.place.quota.allocations import PLAIN, Allocation
from tenfold.fleet.capacity import FreeNodeIndex, GangSplit, Slots
from tenfold.fleet.topology.node_index import TopologyNodeIndex
from tenfold.fleet.topology.topology import TopologyCapacity, TopologyScratch
from tenfold.model.ids import NodeId
from tenfold.model.job.job import BackfillReservation, Job, Shape
from tenfold.model.units import MINUTE, Millis

SHORTEST_GUESS_MS = 5 * MINUTE
"""What a job that says nothing is expected to go on for at least."""

Ends = Mapping[NodeId, list[tuple[int, int]]]
"""By node: (when somebody is expected to end, GPUs that frees)."""


class ExpectedEnds:
    """Who is expected to leave, and when."""

    def __init__(self, allocations: Iterable[Allocation], now_ms: Millis) -> None:
        self.now_ms = now_ms
        self.in_order = sorted(
            ((end_ms(each, now_ms), each) for each in allocations), key=_end_order
        )

    @cached_property
    def by_node(self) -> Ends:
        """When whole GPUs are expected to be given back, node by node."""
        ends: dict[NodeId, list[tuple[int, int]]] = {}
        shared: dict[tuple[NodeId, int], int] = {}
        for at_ms, allocation in self.in_order:
            for slot in allocation.slots:
                if slot.milli:
                    # A device is free when the last of those who share it is gone.
                    shared[slot.node, slot.device] = at_ms
                elif slot.gpus:
                    ends.setdefault(slot.node, []).append((at_ms, slot.gpus))
        for (node_id, _), at_ms in shared.items():
            ends.setdefault(node_id, []).append((at_ms, 1))
        return ends

    def first(self, scratch: TopologyScratch, predicate: Callable[[], bool]) -> Millis | None:
        """Return when something is so that needs room, as one after the other leaves."""
        in_order = self.in_order
        gone, low, high = 0, 0, len(in_order)
        # Who has left is counted on the index itself: halving moves each of them about twice.
        nobody_gone = scratch.checkpoint()
        while low <= high:
            middle = (low + high) // 2
            for _, allocation in in_order[gone:middle]:
                scratch.release(allocation.slots, allocation.job.shape)
            scratch.rollback(nobody_gone + middle)
            gone = middle
            if predicate():
                high = middle - 1
            else:
                low = middle + 1
        scratch.rollback(nobody_gone)
        if low > len(in_order):
            return None
        return Millis(in_order[low - 1][0]) if low else self.now_ms


def _end_order(pair: tuple[int, Allocation]) -> tuple[int, int, int]:
    at_ms, allocation = pair
    return at_ms, allocation.job.submitted_ms, allocation.job.seq


def end_ms(allocation: Allocation, now_ms: Millis) -> int:
    """Return when a job is expected to end: by its limit, or after as long as it has run."""
    if allocation.stopping:
        return now_ms
    limit = allocation.job.limit_ms
    if limit is not None:
        return max(now_ms, allocation.started_ms + limit)
    return now_ms + max(SHORTEST_GUESS_MS, now_ms - allocation.started_ms)


def plan_reservation(
    scratch: TopologyScratch,
    shape: Shape,
    accelerators: Iterable[str],
    expected_ends: ExpectedEnds,
    busy: Mapping[NodeId, None],
) -> tuple[Slots, Millis] | None:
    """Return the slots that a gang is expected to get first, on nodes not busy, and when."""
    capacity = scratch.capacity
    best: tuple[Slots, Millis] | None = None
    for accelerator in accelerators:
        splits = capacity.splits_in(shape, accelerator)
        if _is_plain(shape, splits):
            plans = [_in_index(capacity, split, shape, expected_ends, busy) for split in splits]
        else:
            plans = [_by_trial(scratch, shape, accelerator, expected_ends, busy)]
        for plan in plans:
            if plan is not None and (best is None or plan[1] < best[1]):
                best = plan
    return best


def start_ms_of(
    scratch: TopologyScratch, slots: Slots, shape: Shape, expected_ends: ExpectedEnds
) -> Millis | None:
    """Return when the slots of a promise are expected to be free; None where they never are."""
    return expected_ends.first(scratch, lambda: scratch.capacity.has_kept(slots, shape))


def ends_in_time(job: Job, reservation: BackfillReservation, now_ms: Millis, least_ms: int) -> bool:
    """Return whether a job may use a node that is kept: it ends before, or can be stopped.

    Only a job that says nothing about its length is let in on the chance of being stopped.
    """
    if job.limit_ms is not None:
        return now_ms + job.limit_ms <= reservation.start_ms
    return (
        job.terms or PLAIN
    ).preemptible and reservation.since_ms < now_ms <= reservation.start_ms - least_ms


def _is_plain(shape: Shape, splits: Iterable[GangSplit]) -> bool:
    """Return whether nodes with enough GPUs are all that a gang needs."""
    where = shape.where
    return (
        bool(shape.gpus)
        and not (shape.cpus_milli or shape.memory_mib)
        and not (where is not None and where.within and where.how == "balanced")
        and not any(
            isinstance(split.node_index, TopologyNodeIndex) and split.node_index.racks
            for split in splits
        )
    )


def _by_trial(
    scratch: TopologyScratch,
    shape: Shape,
    accelerator: str,
    expected_ends: ExpectedEnds,
    busy: Mapping[NodeId, None],
) -> tuple[Slots, Millis] | None:
    """Let one after the other leave until the gang finds room."""
    found: list[Slots] = []

    def fits() -> bool:
        with scratch.trial():
            slots = scratch.claim_in(shape, accelerator)
        if slots is not None:
            found.append(slots)
        return slots is not None

    with scratch.hiding(list(busy)):
        start_ms = expected_ends.first(scratch, fits)
    # The last time that it fitted is the earliest: halving goes on below each success.
    return None if start_ms is None else (found[-1], start_ms)


def _in_index(
    capacity: TopologyCapacity,
    split: GangSplit,
    shape: Shape,
    expected_ends: ExpectedEnds,
    busy: Mapping[NodeId, None],
) -> tuple[Slots, Millis] | None:
    node_index, wanted = split.node_index, split.members + (split.rest > 0)
    ends, now_ms = expected_ends.by_node, expected_ends.now_ms
    times: list[tuple[int, int, int]] = []
    for number, name in enumerate(node_index.names):
        if not node_index.is_open[number] or name in busy:
            continue
        at_ms = _free_ms(node_index.free[number], split.gpus, ends.get(name, ()), now_ms)
        if at_ms is not None:
            times.append((at_ms, -node_index.free[number], number))
    times.sort()
    best: list[tuple[int, int, int]] | None = None
    for group in _groups(capacity, node_index, shape, times):
        if len(group) >= wanted and (best is None or group[wanted - 1] < best[-1]):
            best = group[:wanted]
    if best is None:
        return None
    slots = [node_index.slots(number, split.gpus)[0] for _, _, number in best]
    if split.rest:
        slots[-1] = node_index.slots(best[-1][2], split.rest)[0]
    return tuple(slots), Millis(best[-1][0])


def _groups(
    capacity: TopologyCapacity,
    node_index: FreeNodeIndex,
    shape: Shape,
    times: list[tuple[int, int, int]],
) -> Iterator[list[tuple[int, int, int]]]:
    """Yield the nodes that may be taken together, soonest first."""
    where = shape.where
    if where is None or where.how != "required" or not where.within:
        yield times
        return
    groups: dict[str, list[tuple[int, int, int]]] = {}
    for each in times:
        domain = capacity.domain_of(node_index.names[each[2]], where.within)
        groups.setdefault(domain, []).append(each)
    yield from groups.values()


def _free_ms(free: int, gpus: int, ends: Iterable[tuple[int, int]], now_ms: Millis) -> int | None:
    """Return when a node is expected to have so many GPUs free; None where it never has."""
    if free >= gpus:
        return int(now_ms)
    for at_ms, given in sorted(ends):
        free += given
        if free >= gpus:
            return at_ms
    return None
