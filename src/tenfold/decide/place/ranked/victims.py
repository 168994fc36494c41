"""Which allocations to preempt: the fewest of the worst rank that free actual nodes.

Candidates are added worst first until enough nodes qualify; then every victim that is not needed
is spared, best first.
"""

from collections.abc import Iterable

from tenfold.decide.place.ranked.ranking import RankedAllocation
from tenfold.decide.place.ranked.victims_counted import CountedSearch
from tenfold.fleet.capacity import Capacity, FreeNodeIndex, GangSplit
from tenfold.fleet.scratch import Scratch
from tenfold.model.job.job import Shape


def choose_victims(
    capacity: Capacity, shape: Shape, candidates: Iterable[RankedAllocation]
) -> list[RankedAllocation] | None:
    """Return allocations whose stops would let the shape fit, or None."""
    splits = capacity.splits(shape)
    # With only one kind of node, the worst few are usually enough.
    worst_first = candidates if len(splits) == 1 else list(candidates)
    for split in splits:
        if shape.cpus_milli or shape.memory_mib:
            victims = CountedSearch(capacity, split, shape).victims(worst_first)
        else:
            victims = _for_split(capacity, split, worst_first)
        if victims is not None and _fits_without(capacity, shape, victims):
            return victims
    return None


def _for_split(
    capacity: Capacity, split: GangSplit, worst_first: Iterable[RankedAllocation]
) -> list[RankedAllocation] | None:
    node_index, gpus = split.node_index, max(1, split.gpus)
    wanted = split.members + (split.rest > 0) - node_index.count_with_free(gpus)
    if wanted <= 0:
        return None
    extra: dict[int, int] = {}
    chosen: list[int] = []
    picked: list[RankedAllocation] = []
    for allocation in worst_first:
        if not allocation.preemptible:
            continue
        touched = False
        for slot in allocation.slots:
            index, number = capacity.place[slot.node]
            if index is not node_index or not node_index.is_open[number]:
                continue
            touched = True
            before = node_index.free[number] + extra.get(number, 0)
            extra[number] = extra.get(number, 0) + slot.gpus
            if before < gpus <= before + slot.gpus:
                chosen.append(number)
        if touched:
            picked.append(allocation)
        if len(chosen) >= wanted:
            return _needed(capacity, node_index, gpus, chosen[:wanted], picked)
    return None


def _needed(
    capacity: Capacity,
    node_index: FreeNodeIndex,
    gpus: int,
    chosen: list[int],
    picked: list[RankedAllocation],
) -> list[RankedAllocation]:
    """Spare, best first, every victim that the chosen nodes do not need."""
    spare = {number: node_index.free[number] - gpus for number in chosen}
    there: list[tuple[RankedAllocation, list[tuple[int, int]]]] = []
    for allocation in picked:
        parts = [
            (number, slot.gpus)
            for slot in allocation.slots
            for index, number in (capacity.place[slot.node],)
            if index is node_index and number in spare
        ]
        if parts:
            there.append((allocation, parts))
            for number, given in parts:
                spare[number] += given
    needed: list[RankedAllocation] = []
    for allocation, parts in reversed(there):
        if all(spare[number] >= given for number, given in parts):
            for number, given in parts:
                spare[number] -= given
        else:
            needed.append(allocation)
    needed.reverse()
    return needed


def _fits_without(capacity: Capacity, shape: Shape, victims: list[RankedAllocation]) -> bool:
    """Return whether a shape fits without these allocations."""
    scratch = Scratch(capacity)
    with scratch.trial():
        for victim in victims:
            scratch.release(victim.slots, victim.job.shape)
        return scratch.claim(shape) is not None
