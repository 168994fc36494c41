"""Backfill reservations: nodes kept for a pending gang, and when it starts there.

A gang that small jobs would starve gets the nodes expected to be free first. Other jobs may use
them only if they end in time, or can be stopped when the reservation is due. A reservation is an
event in the journal: it survives a restart of the controller.
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
"""The shortest expected remaining time of a job without a limit."""

Ends = Mapping[NodeId, list[tuple[int, int]]]
"""By node: (when a job is expected to end, GPUs it frees)."""


class ExpectedEnds:
    """When running jobs are expected to end."""

    def __init__(self, allocations: Iterable[Allocation], now_ms: Millis) -> None:
        self.now_ms = now_ms
        self.in_order = sorted(
            ((end_ms(each, now_ms), each) for each in allocations), key=_end_order
        )

    @cached_property
    def by_node(self) -> Ends:
        """When whole GPUs are expected to be free, by node."""
        ends: dict[NodeId, list[tuple[int, int]]] = {}
        shared: dict[tuple[NodeId, int], int] = {}
        for at_ms, allocation in self.in_order:
            for slot in allocation.slots:
                if slot.milli:
                    # A shared device is free when the last job on it has ended.
                    shared[slot.node, slot.device] = at_ms
                elif slot.gpus:
                    ends.setdefault(slot.node, []).append((at_ms, slot.gpus))
        for (node_id, _), at_ms in shared.items():
            ends.setdefault(node_id, []).append((at_ms, 1))
        return ends

    def first(self, scratch: TopologyScratch, predicate: Callable[[], bool]) -> Millis | None:
        """Return when a condition becomes true as jobs end one after the other."""
        in_order = self.in_order
        gone, low, high = 0, 0, len(in_order)
        # Ends are applied to the index itself: bisection moves each job about twice.
        start = scratch.checkpoint()
        while low <= high:
            middle = (low + high) // 2
            for _, allocation in in_order[gone:middle]:
                scratch.release(allocation.slots, allocation.job.shape)
            scratch.rollback(start + middle)
            gone = middle
            if predicate():
                high = middle - 1
            else:
                low = middle + 1
        scratch.rollback(start)
        if low > len(in_order):
            return None
        return Millis(in_order[low - 1][0]) if low else self.now_ms


def _end_order(pair: tuple[int, Allocation]) -> tuple[int, int, int]:
    at_ms, allocation = pair
    return at_ms, allocation.job.submitted_ms, allocation.job.seq


def end_ms(allocation: Allocation, now_ms: Millis) -> int:
    """Return when a job is expected to end: at its limit, or after as long as it has run."""
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
    """Return the slots a gang is expected to get first, and when; busy nodes are skipped."""
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
    """Return when the slots of a reservation are expected to be free; None if never."""
    return expected_ends.first(scratch, lambda: scratch.capacity.has_free_hidden(slots, shape))


def ends_in_time(job: Job, reservation: BackfillReservation, now_ms: Millis, least_ms: int) -> bool:
    """Return whether a job may use a reserved node: it ends before, or can be stopped.

    Only jobs without a limit are admitted because they can be stopped.
    """
    if job.limit_ms is not None:
        return now_ms + job.limit_ms <= reservation.start_ms
    return (
        job.terms or PLAIN
    ).preemptible and reservation.since_ms < now_ms <= reservation.start_ms - least_ms


def _is_plain(shape: Shape, splits: Iterable[GangSplit]) -> bool:
    """Return whether enough GPUs per node are all that a gang needs."""
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
    """Let running jobs end one after the other until the gang fits."""
    found: list[Slots] = []

    def fits() -> bool:
        with scratch.trial():
            slots = scratch.claim_in(shape, accelerator)
        if slots is not None:
            found.append(slots)
        return slots is not None

    with scratch.hiding(list(busy)):
        start_ms = expected_ends.first(scratch, fits)
    # The last fit found is the earliest: bisection continues below each success.
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
    """Yield the nodes that may be used together, soonest first."""
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
    """Return when a node is expected to have this many GPUs free; None if never."""
    if free >= gpus:
        return int(now_ms)
    for at_ms, given in sorted(ends):
        free += given
        if free >= gpus:
            return at_ms
    return None
