"""Those who could give way, node by node, and what room on each node costs.

The cheapest nodes are found first, and where the members of a gang must stand together the
cheapest domain. Prices are worked out once a walk and mended where somebody has gone: a
second gang finds its nodes without looking at the whole fleet again.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush

from tenfold.decide.place.quota.allocations import Holding
from tenfold.fleet.capacity import Bank, Seat
from tenfold.fleet.topology.bank import TopologyBank
from tenfold.fleet.topology.topology import TopologyCapacity
from tenfold.model.fleet.constraints import Level
from tenfold.model.job.job import Shape

Priced = tuple[int, Holding]
Found = tuple[int, list[Holding]]
"""What it costs, and who goes."""
NEVER = 1 << 62
_Here = tuple[int, int, Holding]
"""On one node: price, GPUs there, who."""


class Givers:
    """Those who may go for some job, cheapest first."""

    def __init__(self, capacity: TopologyCapacity, priced: Sequence[Priced]) -> None:
        self.priced = priced
        self._capacity = capacity
        self._on: dict[Bank, dict[int, list[_Here]]] = {}
        self._makers: dict[tuple[Bank, int, Level], dict[str, _Makers]] = {}
        self._ranks: dict[int, int] = {}
        self._is_whole = True
        """Whether nobody holds only a share of a device."""
        for price, each in priced:
            for slot in each.slots:
                bank, number = capacity.place[slot.node]
                on = self._on.setdefault(bank, {})
                on.setdefault(number, []).append((price, slot.gpus, each))
                self._is_whole &= not slot.milli

    def rank(self, holding: Holding) -> int:
        """Return how many are cheaper than one of them."""
        if not self._ranks:
            self._ranks = {id(each): rank for rank, (_, each) in enumerate(self.priced)}
        return self._ranks[id(holding)]

    def for_room(self, shape: Shape, accelerator: str) -> list[Holding] | None:
        """Return those on the cheapest nodes without whom a shape should find room."""
        best: Found | None = None
        for seat in self._capacity.seats_in(shape, accelerator):
            for makers, ready in self._domains(seat, shape):
                found = makers.cheapest(seat.members + (seat.rest > 0) - ready)
                if found is not None and (best is None or found[0] < best[0]):
                    best = found
        return None if best is None else best[1]

    def is_sure(self, shape: Shape, accelerator: str) -> bool:
        """Return whether nodes with enough GPUs are all that a shape needs."""
        where = shape.where
        return (
            self._is_whole
            and bool(shape.gpus)
            and not (shape.cpus_milli or shape.memory_mib)
            and not (where is not None and where.within and where.how == "balanced")
            and not any(
                seat.rest or (isinstance(seat.bank, TopologyBank) and seat.bank.racks)
                for seat in self._capacity.seats_in(shape, accelerator)
            )
        )

    def gone(self, holding: Holding) -> None:
        """Mend the prices of the nodes of one who was told to go."""
        for slot in holding.slots:
            bank, number = self._capacity.place[slot.node]
            for (of, _, _), domains in self._makers.items():
                if of is bank:
                    for makers in domains.values():
                        makers.renew(number)

    def _domains(self, seat: Seat, shape: Shape) -> Iterator[tuple["_Makers", int]]:
        """Yield each domain that may do, with the number of its nodes that have room already."""
        bank, where = seat.bank, shape.where
        assert isinstance(bank, TopologyBank)
        level: Level = where.within if where is not None and where.how == "required" else ""
        key = (bank, seat.gpus, level)
        domains = self._makers.get(key)
        if domains is None:
            domains = self._makers[key] = self._made(bank, seat.gpus, level)
        if not level:
            yield domains[""], bank.with_room(seat.gpus)
            return
        tally = bank.tally(level, seat.gpus)
        ready = dict(zip(tally.groups.names, tally.counts, strict=True))
        for name, makers in domains.items():
            yield makers, ready[name]

    def _made(self, bank: TopologyBank, gpus: int, level: Level) -> dict[str, "_Makers"]:
        on = self._on.get(bank, {})
        if not level:
            return {"": _Makers(self._capacity, bank, gpus, on)}
        parts: dict[str, dict[int, list[_Here]]] = {}
        for number, here in on.items():
            domain = self._capacity.domain_of(bank.names[number], level)
            parts.setdefault(domain, {})[number] = here
        return {name: _Makers(self._capacity, bank, gpus, part) for name, part in parts.items()}


class _Makers:
    """Nodes of one domain on which somebody could make room for a member."""

    def __init__(
        self,
        capacity: TopologyCapacity,
        bank: TopologyBank,
        gpus: int,
        on: dict[int, list[_Here]],
    ) -> None:
        self._place = capacity.place
        self._bank = bank
        self._gpus = gpus
        self._on = on
        self._heap = [(0 if self._has_room(n) else self._cost(n), n) for n in on]
        """(No more than its price, number) of all nodes; prices are seen to when one is used."""
        heapify(self._heap)

    def renew(self, number: int) -> None:
        """Hear that somebody has left a node."""
        if number in self._on:
            heappush(self._heap, (self._cost(number), number))

    def cheapest(self, wanted: int) -> Found | None:
        """Return who must go from the cheapest nodes so that so many have room."""
        self._clean()
        heap, is_open = self._heap.copy(), self._bank.is_open
        going: dict[int, Holding] = {}
        taken: dict[int, None] = {}
        spent = 0
        while wanted > 0:
            if not heap:
                return None
            price, number = heappop(heap)
            if number in taken or not is_open[number]:
                continue
            found = self._price(number, going)
            if found is None:
                continue
            if found[0] > price:
                heappush(heap, (found[0], number))
                continue
            spent += found[0]
            wanted -= 1
            taken[number] = None
            for each in found[1]:
                going[id(each)] = each
            self._cheapen(heap, found[1], going)
        return spent, list(going.values())

    def _cheapen(
        self, heap: list[tuple[int, int]], gone: Iterable[Holding], going: dict[int, Holding]
    ) -> None:
        """Price those nodes anew that others who go stand on too."""
        for each in gone:
            for slot in each.slots if len(each.slots) > 1 else ():
                bank, number = self._place[slot.node]
                is_here = bank is self._bank and number in self._on
                if is_here and (found := self._price(number, going)) is not None:
                    heappush(heap, (found[0], number))

    def _clean(self) -> None:
        """Put prices right that no longer hold, as far as they are in the way."""
        heap = self._heap
        while heap:
            price, number = heap[0]
            if self._has_room(number) or (cost := self._cost(number)) <= price:
                return
            heappop(heap)
            if cost < NEVER:
                heappush(heap, (cost, number))

    def _has_room(self, number: int) -> bool:
        """Return whether a node has room for a member as it is."""
        return self._bank.shown.get(number, self._bank.free[number]) >= self._gpus

    def _cost(self, number: int) -> int:
        found = self._price(number, {})
        return NEVER if found is None else found[0]

    def _price(self, number: int, going: dict[int, Holding]) -> Found | None:
        """Return (cost, who) to make room on a node beside those who go; None if it cannot be."""
        bank = self._bank
        short = self._gpus - bank.shown.get(number, bank.free[number])
        if short <= 0:
            return None
        here = self._on[number]
        for _, gpus, each in here if going else ():
            if id(each) in going:
                short -= gpus
        chosen: list[_Here] = []
        for one in here:
            if short <= 0:
                break
            if one[1] and not one[2].stopping and id(one[2]) not in going:
                chosen.append(one)
                short -= one[1]
        if short > 0:
            return None
        for one in reversed(chosen.copy()):
            if short + one[1] <= 0:
                chosen.remove(one)
                short += one[1]
        return sum(one[0] for one in chosen), [one[2] for one in chosen]
