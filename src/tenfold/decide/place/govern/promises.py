"""Promises: nodes that are kept for a waiting gang, and when it is to start there.

A gang that small jobs would starve is promised the nodes that are expected to be free
first. Nobody else may use them then, except jobs that are sure to end in time, or that may
be stopped when the promise comes due. A promise is a fact of the journal: a controller that
starts again keeps it, and a gang keeps the place that it was promised.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tenfold.decide.place.govern.holdings import PLAIN, Holding
from tenfold.fleet.capacity import Bank, Seat, Slots
from tenfold.fleet.topology import TopologyCapacity
from tenfold.model.ids import NodeId
from tenfold.model.job import Job, Promise, Shape
from tenfold.model.units import MINUTE, Millis

SHORTEST_GUESS_MS = 5 * MINUTE
"""What a job that says nothing is expected to go on for at least."""

Ends = Mapping[NodeId, list[tuple[int, int]]]
"""By node: (when somebody is expected to end, GPUs that frees)."""


def end_ms(holding: Holding, now_ms: Millis) -> int:
    """Return when a job is expected to end: by its limit, or after as long as it has run."""
    limit = holding.job.limit_ms
    if limit is not None:
        return max(now_ms, holding.started_ms + limit)
    return now_ms + max(SHORTEST_GUESS_MS, now_ms - holding.started_ms)


def expected_ends(holdings: Iterable[Holding], now_ms: Millis) -> Ends:
    """Return when room is expected to be given back, node by node."""
    ends: dict[NodeId, list[tuple[int, int]]] = {}
    for holding in holdings:
        at_ms = end_ms(holding, now_ms)
        for slot in holding.slots:
            ends.setdefault(slot.node, []).append((at_ms, max(1, slot.gpus)))
    return ends


def plan_promise(
    capacity: TopologyCapacity,
    shape: Shape,
    ends: Ends,
    busy: Mapping[NodeId, None],
    now_ms: Millis,
) -> tuple[Slots, Millis] | None:
    """Return the slots that a gang is expected to get first, on nodes not busy, and when."""
    best: tuple[int, Slots] | None = None
    for seat in capacity.seats(shape):
        found = _in_bank(capacity, seat, shape, _Times(ends, busy, now_ms))
        if found is not None and (best is None or found[0] < best[0]):
            best = found
    return None if best is None else (best[1], Millis(best[0]))


def start_ms_of(capacity: TopologyCapacity, slots: Slots, ends: Ends, now_ms: Millis) -> Millis:
    """Return when the slots of a promise are expected to be free."""
    latest = int(now_ms)
    for slot in slots:
        bank, number = capacity.place[slot.node]
        at_ms = _free_ms(bank.free[number], slot.gpus, ends.get(slot.node, ()), now_ms)
        latest = max(latest, now_ms + SHORTEST_GUESS_MS if at_ms is None else at_ms)
    return Millis(latest)


def ends_in_time(job: Job, promise: Promise, now_ms: Millis, least_ms: int) -> bool:
    """Return whether a job may use a node that is kept: it ends before, or can be stopped.

    Only a job that says nothing about its length is let in on the chance of being stopped.
    """
    if job.limit_ms is not None:
        return now_ms + job.limit_ms <= promise.start_ms
    return (
        job.terms or PLAIN
    ).preemptible and promise.since_ms < now_ms <= promise.start_ms - least_ms


class _Times(NamedTuple):
    """What a promise is planned by."""

    ends: Ends
    busy: Mapping[NodeId, None]
    now_ms: Millis


def _in_bank(
    capacity: TopologyCapacity, seat: Seat, shape: Shape, by: _Times
) -> tuple[int, Slots] | None:
    bank, wanted = seat.bank, seat.members + (seat.rest > 0)
    times: list[tuple[int, int, int]] = []
    for number, name in enumerate(bank.names):
        if not bank.is_open[number] or name in by.busy:
            continue
        at_ms = _free_ms(bank.free[number], seat.gpus, by.ends.get(name, ()), by.now_ms)
        if at_ms is not None:
            times.append((at_ms, -bank.free[number], number))
    times.sort()
    best: list[tuple[int, int, int]] | None = None
    for group in _groups(capacity, bank, shape, times):
        if len(group) >= wanted and (best is None or group[wanted - 1] < best[-1]):
            best = group[:wanted]
    if best is None:
        return None
    slots = [bank.slots(number, seat.gpus)[0] for _, _, number in best]
    if seat.rest:
        slots[-1] = bank.slots(best[-1][2], seat.rest)[0]
    return best[-1][0], tuple(slots)


def _groups(
    capacity: TopologyCapacity, bank: Bank, shape: Shape, times: list[tuple[int, int, int]]
) -> Iterator[list[tuple[int, int, int]]]:
    """Yield the nodes that may be taken together, soonest first."""
    where = shape.where
    if where is None or where.how != "required" or not where.within:
        yield times
        return
    groups: dict[str, list[tuple[int, int, int]]] = {}
    for each in times:
        domain = capacity.domain_of(bank.names[each[2]], where.within)
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
