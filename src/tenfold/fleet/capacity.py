"""Where is room? Nodes of one kind form a `Bank`, and a shape knows the banks that could hold it.

This is the working copy of a decider: it takes what it is about to order at once, so that
later picks of the same cycle see it. It can always be rebuilt from the fleet's view.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Self

from tenfold.fleet.fleet import FleetView
from tenfold.fleet.free_node_index import Bank, Slots
from tenfold.model.fleet.constraints import PlacementConstraints
from tenfold.model.fleet.node import Node
from tenfold.model.ids import NodeId
from tenfold.model.job.job import WHOLE, Shape, Slot, per_member

__all__ = ["Bank", "Capacity", "Seat", "Slots"]


class Seat:
    """How a gang sits in a bank: so many members of so many GPUs, and perhaps a rest."""

    __slots__ = ("bank", "gpus", "members", "rest")

    def __init__(self, bank: Bank, members: int, gpus: int, rest: int) -> None:
        self.bank = bank
        self.members = members
        self.gpus = gpus
        self.rest = rest


class Capacity:
    """The free room of a fleet, by kind of node."""

    def __init__(self) -> None:
        self.banks: dict[tuple[str, str, int, int, int], Bank] = {}
        """By site and tags in one word, accelerator, GPUs, CPUs and memory."""
        self.place: dict[NodeId, tuple[Bank, int]] = {}
        self._seats: dict[str, tuple[Seat, ...]] = {}
        self._plain: dict[str, tuple[Bank, int]] = {}
        """Shapes of whole GPUs on one node, where only one kind of node will do: most jobs."""

    @classmethod
    def of(cls, view: FleetView) -> Self:
        """Build the index of what is so now."""
        capacity = cls()
        for node in view.nodes.values():
            capacity.add(node, view)
        return capacity

    def add(self, node: Node, view: FleetView) -> None:
        """Add one node as the view has it."""
        where = "\n".join((node.site, *node.tags))
        kind = (where, node.accelerator, node.gpus, node.cpus_milli, node.memory_mib)
        bank = self.banks.get(kind)
        if bank is None:
            bank = self.banks[kind] = self.bank_for(node)
            self._seats.clear()
            self._plain.clear()
        number = bank.add(
            node,
            gpus_free=view.gpus_free[node.id],
            cpus=view.cpus_milli_free[node.id],
            memory=view.memory_mib_free[node.id],
            is_open=view.states[node.id] == "up",
        )
        self.place[node.id] = (bank, number)
        if shares := view.shares.get(node.id):
            bank.given[number] = dict(shares)

    def bank_for(self, node: Node) -> Bank:
        """Return an empty bank for nodes like this one."""
        return Bank(node.gpus, node.tags)

    def set_open(self, node_id: NodeId, is_open: bool) -> None:
        """Offer a node to new work, or hide it."""
        bank, number = self.place[node_id]
        bank.set_open(number, is_open)

    def refresh(self, view: FleetView) -> None:
        """Learn from the view what a choice among nodes may use; the tightest needs nothing."""

    def seats(self, shape: Shape) -> tuple[Seat, ...]:
        """Return the banks that could ever hold a shape; none means never."""
        seats = self._seats.get(shape.key)
        if seats is None:
            seats = self._seats[shape.key] = tuple(self._find_seats(shape))
            counted = shape.cpus_milli or shape.memory_mib or shape.milli or not shape.gpus
            if len(seats) == 1 and seats[0].members == 1 and not seats[0].rest and not counted:
                self._plain[shape.key] = (seats[0].bank, seats[0].gpus)
        return seats

    def could_hold(self, shape: Shape) -> bool:
        """Return whether the fleet could hold the shape if it were empty and whole."""
        return any(
            seat.members + (seat.rest > 0) <= len(seat.bank.names) for seat in self.seats(shape)
        )

    def claim(self, shape: Shape) -> Slots | None:
        """Take the tightest room for a whole gang, or return None and take nothing."""
        plain = self._plain.get(shape.key)
        if plain is not None:
            bank, gpus = plain
            return bank.claim(gpus)
        return self.claim_from(self.seats(shape), shape)

    def claim_from(self, seats: Sequence[Seat], shape: Shape) -> Slots | None:
        """Take the tightest room in the first of these banks that has it."""
        for seat in seats:
            if shape.milli:
                slots = self._claim_share(seat.bank, shape)
            elif seat.members == 1 and not seat.rest:
                slots = self._claim_one(seat.bank, seat.gpus, shape)
            else:
                slots = self._claim_many(seat, shape)
            if slots is not None:
                return slots
        return None

    def take(self, slots: Slots, shape: Shape) -> None:
        """Take these very slots."""
        for slot in slots:
            bank, number = self.place[slot.node]
            if slot.milli:
                self._share(bank, number, slot.device, slot.milli)
            else:
                bank.move(number, bank.free[number] - slot.gpus)
        self._hold(slots, shape, -1)

    def has(self, slots: Slots, shape: Shape) -> bool:
        """Return whether these very slots are free, on nodes that are offered."""
        place = self.place
        for slot in slots:
            bank, number = place[slot.node]
            if not bank.is_open[number]:
                return False
        return self.has_free(slots, shape)

    def has_free(self, slots: Slots, shape: Shape) -> bool:
        """Return whether these very slots are free, on nodes that may be hidden."""
        for slot in slots:
            bank, number = self.place[slot.node]
            whole = slot.gpus
            if slot.milli:
                given = bank.given.get(number, {}).get(slot.device, 0)
                if given + slot.milli > WHOLE:
                    return False
                whole = int(given == 0)
            if bank.free[number] < whole:
                return False
            if not self._has(bank, number, shape, len(slots)):
                return False
        return True

    def give(self, slots: Slots, shape: Shape) -> None:
        """Give slots back."""
        for slot in slots:
            bank, number = self.place[slot.node]
            if slot.milli:
                self._share(bank, number, slot.device, -slot.milli)
            else:
                bank.move(number, bank.free[number] + slot.gpus)
        if shape.cpus_milli or shape.memory_mib:
            self._hold(slots, shape, 1)

    def _find_seats(self, shape: Shape) -> Iterator[Seat]:
        for (_, accelerator, size, cpus, memory), bank in self.banks.items():
            if shape.accelerators and accelerator not in shape.accelerators:
                continue
            if shape.where is not None and not _admits(shape.where, bank.tags):
                continue
            if shape.gpus == 0:
                fits = size > 0 if shape.milli else True
                members, gpus, rest = 1, 0, 0
            elif shape.gpus_per_node:
                gpus = min(shape.gpus_per_node, shape.gpus)
                members, rest = divmod(shape.gpus, gpus)
                fits = gpus <= size
            elif size == 0:
                continue
            elif shape.gpus <= size:
                members, gpus, rest, fits = 1, shape.gpus, 0, True
            else:
                members, gpus, rest, fits = -(-shape.gpus // size), size, 0, True
            each_cpus, each_memory = per_member(shape, members + (rest > 0))
            if fits and (not cpus or each_cpus <= cpus) and (not memory or each_memory <= memory):
                yield Seat(bank, members, gpus, rest)

    def _claim_one(self, bank: Bank, gpus: int, shape: Shape) -> Slots | None:
        if shape.cpus_milli or shape.memory_mib:
            number = next((n for n in bank.each(gpus) if self._has(bank, n, shape, 1)), -1)
        else:
            number = bank.tightest(gpus)
        if number < 0:
            return None
        bank.move(number, bank.free[number] - gpus)
        slots = bank.slots(number, gpus)
        if shape.cpus_milli or shape.memory_mib:
            self._hold(slots, shape, -1)
        return slots

    def _claim_many(self, seat: Seat, shape: Shape) -> Slots | None:
        bank, gpus, wanted = seat.bank, seat.gpus, seat.members
        members = wanted + (seat.rest > 0)
        if bank.with_room(gpus) < wanted:
            return None
        with_room = (n for n in bank.each(gpus) if self._has(bank, n, shape, members))
        chosen = list(islice(with_room, wanted))
        if len(chosen) < wanted:
            return None
        slots = [bank.slots(number, gpus)[0] for number in chosen]
        if seat.rest:
            others = (number for number in bank.each(seat.rest) if number not in chosen)
            last = next((n for n in others if self._has(bank, n, shape, members)), -1)
            if last < 0:
                return None
            slots.append(bank.slots(last, seat.rest)[0])
        taken = tuple(slots)
        self.take(taken, shape)
        return taken

    def _claim_share(self, bank: Bank, shape: Shape) -> Slots | None:
        best: tuple[int, int, int] | None = None
        for number, given in bank.given.items():
            if bank.is_open[number] and self._has(bank, number, shape, 1):
                for device, milli in given.items():
                    left = 1_000 - milli - shape.milli
                    if left >= 0 and (best is None or (left, number, device) < best):
                        best = (left, number, device)
        if best is None:
            number = next((n for n in bank.each(1) if self._has(bank, n, shape, 1)), -1)
            if number < 0:
                return None
            taken = bank.given.get(number, {})
            best = (0, number, next(d for d in range(bank.size) if d not in taken))
        slots = (Slot(bank.names[best[1]], 0, shape.milli, best[2]),)
        self.take(slots, shape)
        return slots

    def _has(self, bank: Bank, number: int, shape: Shape, members: int) -> bool:
        cpus, memory = per_member(shape, members)
        return (not bank.counts_cpus or bank.cpus[number] >= cpus) and (
            not bank.counts_memory or bank.memory[number] >= memory
        )

    def _hold(self, slots: Slots, shape: Shape, sign: int) -> None:
        if not (shape.cpus_milli or shape.memory_mib):
            return
        cpus, memory = per_member(shape, len(slots))
        for slot in slots:
            bank, number = self.place[slot.node]
            if bank.counts_cpus:
                bank.cpus[number] += sign * cpus
            if bank.counts_memory:
                bank.memory[number] += sign * memory

    def _share(self, bank: Bank, number: int, device: int, milli: int) -> None:
        given = bank.given.setdefault(number, {})
        before = given.get(device, 0)
        after = before + milli
        if before == 0:
            bank.move(number, bank.free[number] - 1)
        if after == 0:
            del given[device]
            bank.move(number, bank.free[number] + 1)
            if not given:
                del bank.given[number]
        else:
            given[device] = after


def _admits(where: PlacementConstraints, tags: tuple[str, ...]) -> bool:
    return all(tag in tags for tag in where.needs) and not any(tag in tags for tag in where.avoids)
