"""Free capacity by kind of node: which nodes could hold a shape, and which can now.

This is a decider's working copy: claims take effect at once, so that later choices of the same
cycle see them. It can always be rebuilt from the fleet's view.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Self

from tenfold.fleet.fleet import FleetView
from tenfold.fleet.free_node_index import FreeNodeIndex, Slots
from tenfold.model.fleet.constraints import PlacementConstraints
from tenfold.model.fleet.node import Node
from tenfold.model.ids import NodeId
from tenfold.model.job.job import WHOLE, Shape, Slot, per_member

__all__ = ["Capacity", "FreeNodeIndex", "GangSplit", "Slots"]


class GangSplit:
    """How a gang is split over nodes of one kind: members, GPUs each, and perhaps a remainder."""

    __slots__ = ("gpus", "members", "node_index", "rest")

    def __init__(self, node_index: FreeNodeIndex, members: int, gpus: int, rest: int) -> None:
        self.node_index = node_index
        self.members = members
        self.gpus = gpus
        self.rest = rest


class Capacity:
    """The free capacity of a fleet, by kind of node."""

    def __init__(self) -> None:
        self.node_indexes: dict[tuple[str, str, int, int, int], FreeNodeIndex] = {}
        """By site and tags in one word, accelerator, GPUs, CPUs and memory."""
        self.place: dict[NodeId, tuple[FreeNodeIndex, int]] = {}
        self._splits: dict[str, tuple[GangSplit, ...]] = {}
        self._plain: dict[str, tuple[FreeNodeIndex, int]] = {}
        """Shapes of whole GPUs on one node that only one kind of node can hold: most jobs."""

    @classmethod
    def of(cls, view: FleetView) -> Self:
        """Build the index from the current view."""
        capacity = cls()
        for node in view.nodes.values():
            capacity.add(node, view)
        return capacity

    def add(self, node: Node, view: FleetView) -> None:
        """Add one node from the view."""
        where = "\n".join((node.site, *node.tags))
        kind = (where, node.accelerator, node.gpus, node.cpus_milli, node.memory_mib)
        node_index = self.node_indexes.get(kind)
        if node_index is None:
            node_index = self.node_indexes[kind] = self.node_index_for(node)
            self._splits.clear()
            self._plain.clear()
        number = node_index.add(
            node,
            gpus_free=view.gpus_free[node.id],
            cpus=view.cpus_milli_free[node.id],
            memory=view.memory_mib_free[node.id],
            is_open=view.states[node.id] == "up",
        )
        self.place[node.id] = (node_index, number)
        if shares := view.shares.get(node.id):
            node_index.given[number] = dict(shares)

    def node_index_for(self, node: Node) -> FreeNodeIndex:
        """Return an empty index for nodes like this one."""
        return FreeNodeIndex(node.gpus, node.tags)

    def set_open(self, node_id: NodeId, is_open: bool) -> None:
        """Open a node to new jobs, or hide it."""
        node_index, number = self.place[node_id]
        node_index.set_open(number, is_open)

    def refresh(self, view: FleetView) -> None:
        """Learn from the view what a choice of node may use; the tightest fit needs nothing."""

    def splits(self, shape: Shape) -> tuple[GangSplit, ...]:
        """Return how a shape could ever be split, by kind of node; empty means never."""
        splits = self._splits.get(shape.key)
        if splits is None:
            splits = self._splits[shape.key] = tuple(self._find_splits(shape))
            counted = shape.cpus_milli or shape.memory_mib or shape.milli or not shape.gpus
            if len(splits) == 1 and splits[0].members == 1 and not splits[0].rest and not counted:
                self._plain[shape.key] = (splits[0].node_index, splits[0].gpus)
        return splits

    def could_hold(self, shape: Shape) -> bool:
        """Return whether the fleet could hold the shape if it were empty and all nodes were up."""
        return any(
            split.members + (split.rest > 0) <= len(split.node_index.names)
            for split in self.splits(shape)
        )

    def claim(self, shape: Shape) -> Slots | None:
        """Claim the tightest slots for a whole gang, or return None."""
        plain = self._plain.get(shape.key)
        if plain is not None:
            node_index, gpus = plain
            return node_index.claim(gpus)
        return self.claim_from(self.splits(shape), shape)

    def claim_from(self, splits: Sequence[GangSplit], shape: Shape) -> Slots | None:
        """Claim the tightest slots in the first of these splits that fits."""
        for split in splits:
            if shape.milli:
                slots = self._claim_share(split.node_index, shape)
            elif split.members == 1 and not split.rest:
                slots = self._claim_one(split.node_index, split.gpus, shape)
            else:
                slots = self._claim_many(split, shape)
            if slots is not None:
                return slots
        return None

    def take(self, slots: Slots, shape: Shape) -> None:
        """Allocate these exact slots."""
        for slot in slots:
            node_index, number = self.place[slot.node]
            if slot.milli:
                self._share(node_index, number, slot.device, slot.milli)
            else:
                node_index.move(number, node_index.free[number] - slot.gpus)
        self._hold(slots, shape, -1)

    def has(self, slots: Slots, shape: Shape) -> bool:
        """Return whether these exact slots are free, on nodes that are open."""
        place = self.place
        for slot in slots:
            node_index, number = place[slot.node]
            if not node_index.is_open[number]:
                return False
        return self.has_free(slots, shape)

    def has_free(self, slots: Slots, shape: Shape) -> bool:
        """Return whether these exact slots are free, on nodes that may be hidden."""
        for slot in slots:
            node_index, number = self.place[slot.node]
            whole = slot.gpus
            if slot.milli:
                given = node_index.given.get(number, {}).get(slot.device, 0)
                if given + slot.milli > WHOLE:
                    return False
                whole = int(given == 0)
            if node_index.free[number] < whole:
                return False
            if not self._has(node_index, number, shape, len(slots)):
                return False
        return True

    def give(self, slots: Slots, shape: Shape) -> None:
        """Release slots."""
        for slot in slots:
            node_index, number = self.place[slot.node]
            if slot.milli:
                self._share(node_index, number, slot.device, -slot.milli)
            else:
                node_index.move(number, node_index.free[number] + slot.gpus)
        if shape.cpus_milli or shape.memory_mib:
            self._hold(slots, shape, 1)

    def _find_splits(self, shape: Shape) -> Iterator[GangSplit]:
        for (_, accelerator, size, cpus, memory), node_index in self.node_indexes.items():
            if shape.accelerators and accelerator not in shape.accelerators:
                continue
            if shape.where is not None and not _admits(shape.where, node_index.tags):
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
                yield GangSplit(node_index, members, gpus, rest)

    def _claim_one(self, node_index: FreeNodeIndex, gpus: int, shape: Shape) -> Slots | None:
        if shape.cpus_milli or shape.memory_mib:
            number = next(
                (n for n in node_index.each(gpus) if self._has(node_index, n, shape, 1)), -1
            )
        else:
            number = node_index.tightest(gpus)
        if number < 0:
            return None
        node_index.move(number, node_index.free[number] - gpus)
        slots = node_index.slots(number, gpus)
        if shape.cpus_milli or shape.memory_mib:
            self._hold(slots, shape, -1)
        return slots

    def _claim_many(self, split: GangSplit, shape: Shape) -> Slots | None:
        node_index, gpus, wanted = split.node_index, split.gpus, split.members
        members = wanted + (split.rest > 0)
        if node_index.count_with_free(gpus) < wanted:
            return None
        fitting = (n for n in node_index.each(gpus) if self._has(node_index, n, shape, members))
        chosen = list(islice(fitting, wanted))
        if len(chosen) < wanted:
            return None
        slots = [node_index.slots(number, gpus)[0] for number in chosen]
        if split.rest:
            others = (number for number in node_index.each(split.rest) if number not in chosen)
            last = next((n for n in others if self._has(node_index, n, shape, members)), -1)
            if last < 0:
                return None
            slots.append(node_index.slots(last, split.rest)[0])
        taken = tuple(slots)
        self.take(taken, shape)
        return taken

    def _claim_share(self, node_index: FreeNodeIndex, shape: Shape) -> Slots | None:
        best: tuple[int, int, int] | None = None
        for number, given in node_index.given.items():
            if node_index.is_open[number] and self._has(node_index, number, shape, 1):
                for device, milli in given.items():
                    left = 1_000 - milli - shape.milli
                    if left >= 0 and (best is None or (left, number, device) < best):
                        best = (left, number, device)
        if best is None:
            number = next((n for n in node_index.each(1) if self._has(node_index, n, shape, 1)), -1)
            if number < 0:
                return None
            taken = node_index.given.get(number, {})
            best = (0, number, next(d for d in range(node_index.size) if d not in taken))
        slots = (Slot(node_index.names[best[1]], 0, shape.milli, best[2]),)
        self.take(slots, shape)
        return slots

    def _has(self, node_index: FreeNodeIndex, number: int, shape: Shape, members: int) -> bool:
        cpus, memory = per_member(shape, members)
        return (not node_index.counts_cpus or node_index.cpus[number] >= cpus) and (
            not node_index.counts_memory or node_index.memory[number] >= memory
        )

    def _hold(self, slots: Slots, shape: Shape, sign: int) -> None:
        if not (shape.cpus_milli or shape.memory_mib):
            return
        cpus, memory = per_member(shape, len(slots))
        for slot in slots:
            node_index, number = self.place[slot.node]
            if node_index.counts_cpus:
                node_index.cpus[number] += sign * cpus
            if node_index.counts_memory:
                node_index.memory[number] += sign * memory

    def _share(self, node_index: FreeNodeIndex, number: int, device: int, milli: int) -> None:
        given = node_index.given.setdefault(number, {})
        before = given.get(device, 0)
        after = before + milli
        if before == 0:
            node_index.move(number, node_index.free[number] - 1)
        if after == 0:
            del given[device]
            node_index.move(number, node_index.free[number] + 1)
            if not given:
                del node_index.given[number]
        else:
            given[device] = after


def _admits(where: PlacementConstraints, tags: tuple[str, ...]) -> bool:
    return all(tag in tags for tag in where.needs) and not any(tag in tags for tag in where.avoids)
