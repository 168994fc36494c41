"""Which allocations to preempt for a gang that also requests CPUs or memory.

A node fits only if GPUs, CPUs and memory all suffice: idle GPUs without free memory do not help.
"""

from collections.abc import Iterable
from operator import add, ge, sub

from tenfold.decide.place.ranked.ranking import RankedAllocation
from tenfold.fleet.capacity import Capacity, FreeNodeIndex, GangSplit
from tenfold.model.job.job import Shape, Slot, per_member

Amounts = tuple[int, ...]
"""GPUs, CPU thousandths and MiB."""


class CountedSearch:
    """The search on one kind of node, and what a gang member needs there."""

    def __init__(self, capacity: Capacity, split: GangSplit, shape: Shape) -> None:
        self._capacity = capacity
        self._node_index = node_index = split.node_index
        members = split.members + (split.rest > 0)
        cpus, memory = per_member(shape, members)
        self._cpus = node_index.counts_cpus and cpus > 0
        self._memory = node_index.counts_memory and memory > 0
        gpus = split.gpus or int(shape.milli > 0)
        self._need = self._amounts(gpus, cpus, memory)
        have = [number for number in node_index.each(gpus) if self._has(self._free(number))]
        self._wanted = members - len(have)

    def victims(self, worst_first: Iterable[RankedAllocation]) -> list[RankedAllocation] | None:
        """Return the victims that let enough nodes fit, or None."""
        if self._wanted <= 0:
            return None
        free: dict[int, Amounts] = {}
        chosen: list[int] = []
        picked: list[RankedAllocation] = []
        for allocation in worst_first:
            if not allocation.preemptible:
                continue
            parts = self._parts(allocation)
            for number, given in parts:
                before = free.get(number) or self._free(number)
                free[number] = after = tuple(map(add, before, given))
                if self._has(after) and not self._has(before):
                    chosen.append(number)
            if parts:
                picked.append(allocation)
            if len(chosen) >= self._wanted:
                return self._needed(chosen[: self._wanted], picked)
        return None

    def _needed(self, chosen: list[int], picked: list[RankedAllocation]) -> list[RankedAllocation]:
        """Spare, best first, every victim that the chosen nodes do not need."""
        spare = {number: tuple(map(sub, self._free(number), self._need)) for number in chosen}
        there: list[tuple[RankedAllocation, list[tuple[int, Amounts]]]] = []
        for allocation in picked:
            parts = [part for part in self._parts(allocation) if part[0] in spare]
            if parts:
                there.append((allocation, parts))
                for number, given in parts:
                    spare[number] = tuple(map(add, spare[number], given))
        needed: list[RankedAllocation] = []
        for allocation, parts in reversed(there):
            if all(all(map(ge, spare[number], given)) for number, given in parts):
                for number, given in parts:
                    spare[number] = tuple(map(sub, spare[number], given))
            else:
                needed.append(allocation)
        needed.reverse()
        return needed

    def _parts(self, allocation: RankedAllocation) -> list[tuple[int, Amounts]]:
        """Return what an allocation would release on open nodes of this kind."""
        shape, slots = allocation.job.shape, allocation.slots
        cpus, memory = per_member(shape, len(slots))
        return [
            (number, self._amounts(slot.gpus, cpus, memory))
            for slot in slots
            if (number := self._number(slot)) >= 0
        ]

    def _number(self, slot: Slot) -> int:
        index, number = self._capacity.place[slot.node]
        return number if index is self._node_index and index.is_open[number] else -1

    def _free(self, number: int) -> Amounts:
        node_index: FreeNodeIndex = self._node_index
        return self._amounts(
            node_index.free[number], node_index.cpus[number], node_index.memory[number]
        )

    def _has(self, free: Amounts) -> bool:
        return all(map(ge, free, self._need))

    def _amounts(self, gpus: int, cpus: int, memory: int) -> Amounts:
        """Leave out what the shape does not request, or what these nodes do not count."""
        return gpus, cpus if self._cpus else 0, memory if self._memory else 0
