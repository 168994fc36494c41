"""Possible victims by node, and what it costs to free each node.

The cheapest nodes are found first, or the cheapest domain where a gang must share one. Costs are
computed once per pass and updated as stops are ordered, so a second gang does not search the
whole fleet again.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush

from tenfold.decide.place.quota.allocations import Allocation
from tenfold.fleet.capacity import FreeNodeIndex, GangSplit
from tenfold.fleet.topology.node_index import TopologyNodeIndex
from tenfold.fleet.topology.topology import TopologyCapacity
from tenfold.model.fleet.constraints import Level
from tenfold.model.job.job import Shape

Priced = tuple[int, Allocation]
Found = tuple[int, list[Allocation]]
"""The cost, and the victims."""
NEVER = 1 << 62
_VictimOnNode = tuple[int, int, Allocation]
"""A victim on one node: cost, GPUs there, allocation."""


class VictimIndex:
    """Possible victims for some job, cheapest first."""

    def __init__(self, capacity: TopologyCapacity, priced: Sequence[Priced]) -> None:
        self.priced = priced
        self._capacity = capacity
        self._on: dict[FreeNodeIndex, dict[int, list[_VictimOnNode]]] = {}
        self._node_victims: dict[tuple[FreeNodeIndex, int, Level], dict[str, NodeVictims]] = {}
        self._ranks: dict[int, int] = {}
        self._is_whole = True
        """Whether no victim holds a share of a device."""
        for price, each in priced:
            for slot in each.slots:
                node_index, number = capacity.place[slot.node]
                on = self._on.setdefault(node_index, {})
                on.setdefault(number, []).append((price, slot.gpus, each))
                self._is_whole &= not slot.milli

    def rank(self, allocation: Allocation) -> int:
        """Return how many victims are cheaper than this one."""
        if not self._ranks:
            self._ranks = {id(each): rank for rank, (_, each) in enumerate(self.priced)}
        return self._ranks[id(allocation)]

    def victims_for(self, shape: Shape, accelerator: str) -> list[Allocation] | None:
        """Return victims on the cheapest nodes whose stops should let a shape fit."""
        best: Found | None = None
        for split in self._capacity.splits_in(shape, accelerator):
            for node_victims, ready in self._domains(split, shape):
                found = node_victims.cheapest(split.members + (split.rest > 0) - ready)
                if found is not None and (best is None or found[0] < best[0]):
                    best = found
        return None if best is None else best[1]

    def is_sure(self, shape: Shape, accelerator: str) -> bool:
        """Return whether enough GPUs per node are all that a shape needs."""
        where = shape.where
        return (
            self._is_whole
            and bool(shape.gpus)
            and not (shape.cpus_milli or shape.memory_mib)
            and not (where is not None and where.within and where.how == "balanced")
            and not any(
                split.rest
                or (isinstance(split.node_index, TopologyNodeIndex) and split.node_index.racks)
                for split in self._capacity.splits_in(shape, accelerator)
            )
        )

    def gone(self, allocation: Allocation) -> None:
        """Update the costs on the nodes of an allocation that is being stopped."""
        for slot in allocation.slots:
            node_index, number = self._capacity.place[slot.node]
            for (of, _, _), domains in self._node_victims.items():
                if of is node_index:
                    for node_victims in domains.values():
                        node_victims.renew(number)

    def _domains(self, split: GangSplit, shape: Shape) -> Iterator[tuple["NodeVictims", int]]:
        """Yield each possible domain, with the number of its nodes that already fit."""
        node_index, where = split.node_index, shape.where
        assert isinstance(node_index, TopologyNodeIndex)
        level: Level = where.within if where is not None and where.how == "required" else ""
        key = (node_index, split.gpus, level)
        domains = self._node_victims.get(key)
        if domains is None:
            domains = self._node_victims[key] = self._made(node_index, split.gpus, level)
        if not level:
            yield domains[""], node_index.count_with_free(split.gpus)
            return
        tally = node_index.tally(level, split.gpus)
        ready = dict(zip(tally.groups.names, tally.counts, strict=True))
        for name, node_victims in domains.items():
            yield node_victims, ready[name]

    def _made(
        self, node_index: TopologyNodeIndex, gpus: int, level: Level
    ) -> dict[str, "NodeVictims"]:
        on = self._on.get(node_index, {})
        if not level:
            return {"": NodeVictims(self._capacity, node_index, gpus, on)}
        parts: dict[str, dict[int, list[_VictimOnNode]]] = {}
        for number, here in on.items():
            domain = self._capacity.domain_of(node_index.names[number], level)
            parts.setdefault(domain, {})[number] = here
        return {
            name: NodeVictims(self._capacity, node_index, gpus, part)
            for name, part in parts.items()
        }


class NodeVictims:
    """Nodes of one domain that victims could free for a gang member."""

    def __init__(
        self,
        capacity: TopologyCapacity,
        node_index: TopologyNodeIndex,
        gpus: int,
        on: dict[int, list[_VictimOnNode]],
    ) -> None:
        self._place = capacity.place
        self._node_index = node_index
        self._gpus = gpus
        self._on = on
        self._heap = [(0 if self._has_capacity(n) else self._cost(n), n) for n in on]
        """(lower bound of the cost, number) of all nodes; exact costs are computed on use."""
        heapify(self._heap)

    def renew(self, number: int) -> None:
        """Note that an allocation left a node."""
        if number in self._on:
            heappush(self._heap, (self._cost(number), number))

    def cheapest(self, wanted: int) -> Found | None:
        """Return the victims on the cheapest nodes that free this many nodes."""
        self._drop_stale()
        heap, is_open = self._heap.copy(), self._node_index.is_open
        victims: dict[int, Allocation] = {}
        taken: dict[int, None] = {}
        spent = 0
        while wanted > 0:
            if not heap:
                return None
            price, number = heappop(heap)
            if number in taken or not is_open[number]:
                continue
            found = self._price(number, victims)
            if found is None:
                continue
            if found[0] > price:
                heappush(heap, (found[0], number))
                continue
            spent += found[0]
            wanted -= 1
            taken[number] = None
            for each in found[1]:
                victims[id(each)] = each
            self._reprice(heap, found[1], victims)
        return spent, list(victims.values())

    def _reprice(
        self,
        heap: list[tuple[int, int]],
        gone: Iterable[Allocation],
        victims: dict[int, Allocation],
    ) -> None:
        """Update the costs of other nodes that the same victims hold."""
        for each in gone:
            for slot in each.slots if len(each.slots) > 1 else ():
                node_index, number = self._place[slot.node]
                is_here = node_index is self._node_index and number in self._on
                if is_here and (found := self._price(number, victims)) is not None:
                    heappush(heap, (found[0], number))

    def _drop_stale(self) -> None:
        """Correct outdated costs at the top of the heap."""
        heap = self._heap
        while heap:
            price, number = heap[0]
            if self._has_capacity(number) or (cost := self._cost(number)) <= price:
                return
            heappop(heap)
            if cost < NEVER:
                heappush(heap, (cost, number))

    def _has_capacity(self, number: int) -> bool:
        """Return whether a node fits a gang member as it is."""
        return self._node_index.shown.get(number, self._node_index.free[number]) >= self._gpus

    def _cost(self, number: int) -> int:
        found = self._price(number, {})
        return NEVER if found is None else found[0]

    def _price(self, number: int, victims: dict[int, Allocation]) -> Found | None:
        """Return (cost, victims) to free a node besides other victims; None if impossible."""
        node_index = self._node_index
        short = self._gpus - node_index.shown.get(number, node_index.free[number])
        if short <= 0:
            return None
        here = self._on[number]
        for _, gpus, each in here if victims else ():
            if id(each) in victims:
                short -= gpus
        chosen: list[_VictimOnNode] = []
        for one in here:
            if short <= 0:
                break
            if one[1] and not one[2].stopping and id(one[2]) not in victims:
                chosen.append(one)
                short -= one[1]
        if short > 0:
            return None
        for one in reversed(chosen.copy()):
            if short + one[1] <= 0:
                chosen.remove(one)
                short += one[1]
        return sum(one[0] for one in chosen), [one[2] for one in chosen]
