"""Free capacity with topology: gangs in one domain, racks within their power limits.

`TopologyCapacity` is a `Capacity` that knows scale-up domains, racks, leaves and pods. A
single-node job takes the same short path as before. A larger gang follows its `where`: one
domain, packed, equal parts or spread. Without constraints it prefers one leaf, then one pod, and
is never refused for that.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from tenfold.fleet.capacity import Capacity, FreeNodeIndex, GangSplit, Slots
from tenfold.fleet.fleet import Fleet, FleetView
from tenfold.fleet.scratch import Scratch
from tenfold.fleet.topology.gang import USUAL, Gang, Strategy, strategies
from tenfold.fleet.topology.node_index import Rack, TopologyNodeIndex
from tenfold.model.events import NodeJoined
from tenfold.model.fleet.constraints import Level
from tenfold.model.fleet.node import Node
from tenfold.model.ids import NodeId
from tenfold.model.job.job import Shape, Slot
from tenfold.model.units import Millis


class Nearest(NamedTuple):
    """The domain that comes closest to fitting a gang now."""

    domain: str
    with_free: int
    """Nodes in it that fit a member."""
    needed: int
    nodes: int
    """Nodes of that kind in it, free or not."""


class HoldsSlots(Protocol):
    """Anything that holds slots."""

    @property
    def slots(self) -> Slots:
        """The slots."""
        ...


FreeOnNode = tuple[int, int, int, int]
"""Free on a node: GPUs, minus the shared thousandths, CPU thousandths and MiB."""


class TopologyCapacity(Capacity):
    """The free capacity of a fleet, by kind of node, domain and power."""

    def __init__(self) -> None:
        super().__init__()
        self._racks: dict[tuple[str, str], Rack] = {}
        """Racks whose power limit matters, by site and name."""
        self._closed: set[NodeId] = set()
        """Nodes closed by events."""
        self._hidden: dict[NodeId, int] = {}
        """Nodes hidden for other reasons, and how many reasons."""
        self._splits_of: dict[tuple[str, str], tuple[GangSplit, ...]] = {}
        self._could: dict[tuple[str, ...], bool] = {}
        self._domains: dict[Level, dict[str, tuple[NodeId, ...]]] = {}
        self._whole: TopologyCapacity | None = None

    def node_index_for(self, node: Node) -> FreeNodeIndex:
        """Return an empty index for nodes like this one."""
        return TopologyNodeIndex(node.gpus, node.tags)

    def add(self, node: Node, view: FleetView) -> None:
        """Add one node from the view."""
        super().add(node, view)
        if view.states[node.id] != "up":
            self._closed.add(node.id)
        if node.rack_watts:
            node_index, number = self._position(node.id)
            key = (str(node.site), node.rack or node.id)
            rack = self._racks.get(key)
            if rack is None:
                rack = self._racks[key] = Rack(node.rack_watts)
            rack.join(node_index, number, node)
        self._splits_of.clear()
        self._could.clear()
        self._domains.clear()
        self._whole = None

    def set_open(self, node_id: NodeId, is_open: bool) -> None:
        """Open a node to new jobs, or hide it; a reserved node stays hidden."""
        if is_open:
            self._closed.discard(node_id)
        else:
            self._closed.add(node_id)
        super().set_open(node_id, is_open and node_id not in self._hidden)

    def hide(self, node_id: NodeId) -> None:
        """Hide a node although it may be up; each reason is counted."""
        self._hidden[node_id] = self._hidden.get(node_id, 0) + 1
        super().set_open(node_id, False)

    def unhide(self, node_id: NodeId) -> None:
        """Remove one reason to hide a node; without reasons it is open again."""
        reasons = self._hidden[node_id] - 1
        if reasons:
            self._hidden[node_id] = reasons
        else:
            del self._hidden[node_id]
            super().set_open(node_id, node_id not in self._closed)

    def around(self, slots: Slots) -> list[NodeId]:
        """Return the nodes of slots, and the nodes that compete for their rack power."""
        nodes = dict.fromkeys(slot.node for slot in slots)
        if self._racks:
            for slot in slots:
                if rack := self._rack_of(slot):
                    nodes.update(dict.fromkeys(rack.power_rivals()))
        return list(nodes)

    def has_free_hidden(self, slots: Slots, shape: Shape) -> bool:
        """Return whether these exact slots are free, on nodes that may be hidden but are up."""
        away = self._closed
        return not any(slot.node in away for slot in slots) and self.has_free(slots, shape)

    def is_closed(self, node_id: NodeId) -> bool:
        """Return whether a node is closed for another reason than a reservation."""
        return node_id in self._closed

    def could_hold(self, shape: Shape, without: Sequence[NodeId] = ()) -> bool:
        """Return whether the fleet could hold the shape if it were empty, without some nodes."""
        key = (shape.key, *without)
        could = self._could.get(key)
        if could is None:
            could = super().could_hold(shape)
            if could and (without or self._racks or _may_be_blocked_by_topology(shape)):
                could = self._tried(shape, without)
            self._could[key] = could
        return could

    def claim_in(self, shape: Shape, accelerator: str) -> Slots | None:
        """Claim slots as `claim` does, but only on one accelerator type."""
        splits = self.splits_in(shape, accelerator)
        if splits and shape.key in self._plain:
            return self.claim(shape)
        return self.claim_from(splits, shape)

    def splits_in(self, shape: Shape, accelerator: str) -> tuple[GangSplit, ...]:
        """Return how a shape could ever be split on nodes of one accelerator type."""
        key = (shape.key, accelerator)
        splits = self._splits_of.get(key)
        if splits is None:
            splits = self._splits_of[key] = tuple(
                split
                for split in self.splits(shape)
                if _node_index(split).accelerator == accelerator
            )
        return splits

    def accelerators_for(self, shape: Shape) -> tuple[str, ...]:
        """Return the accelerator types that could ever hold a shape, in order."""
        return tuple(dict.fromkeys(_node_index(split).accelerator for split in self.splits(shape)))

    def claim_from(self, splits: Sequence[GangSplit], shape: Shape) -> Slots | None:
        """Claim the best slots; a better strategy goes before an earlier kind of node."""
        if not any(split.members > 1 or split.rest for split in splits):
            return super().claim_from(splits, shape)
        for strategy in strategies(shape.where):
            for split in splits:
                if split.members > 1 or split.rest:
                    slots = self._claim_gang(strategy, split, shape)
                else:
                    slots = super().claim_from((split,), shape)
                if slots is not None:
                    return slots
        return None

    def has_free(self, slots: Slots, shape: Shape) -> bool:
        """Return whether these exact slots are free and their racks can power them."""
        if not super().has_free(slots, shape):
            return False
        drawn: dict[Rack, int] = {}
        for slot in slots if self._racks else ():
            node_index, number = self._position(slot.node)
            if rack := node_index.racks.get(number):
                shared = slot.milli and slot.device in node_index.given.get(number, {})
                gpus = 0 if shared else slot.gpus or int(slot.milli > 0)
                watts = drawn.get(rack, 0) + gpus * node_index.nodes[number].watts_per_gpu
                drawn[rack] = watts
                if gpus and watts > rack.left:
                    return False
        return True

    @property
    def limits_power(self) -> bool:
        """Whether the power limit of any rack matters."""
        return bool(self._racks)

    def free_on(self, holders: Iterable[HoldsSlots]) -> list[FreeOnNode]:
        """Return what is free on the nodes of these slots, in their order."""
        nodes = dict.fromkeys(slot.node for each in holders for slot in each.slots)
        found: list[FreeOnNode] = []
        for node_id in nodes:
            node_index, number = self.place[node_id]
            shares = node_index.given.get(number, {}).values()
            found.append(
                (
                    node_index.free[number],
                    -sum(shares),
                    node_index.cpus[number],
                    node_index.memory[number],
                )
            )
        return found

    def share_power(self, slots: Slots, others: Slots) -> bool:
        """Return whether slots share a power-limited rack with any of the others."""
        if not self._racks:
            return False
        racks = [self._rack_of(slot) for slot in others]
        return any((rack := self._rack_of(slot)) and rack in racks for slot in slots)

    def _rack_of(self, slot: Slot) -> Rack | None:
        node_index, number = self._position(slot.node)
        return node_index.racks.get(number)

    def most_free_after(self, slot: Slot) -> int:
        """Return the most GPUs that any node may have free because a slot was released.

        With a power-limited rack that may be another node of the rack.
        """
        node_index, number = self._position(slot.node)
        return node_index.size if number in node_index.racks else node_index.free[number]

    def domains(self, level: Level) -> Mapping[str, tuple[NodeId, ...]]:
        """Return the nodes of every domain of a level, in the order of nodes.

        A node without a name at this level is a domain of its own, under its own name.
        """
        domains = self._domains.get(level)
        if domains is None:
            members: dict[str, list[NodeId]] = {}
            for node_id in self.place:
                members.setdefault(self.domain_of(node_id, level), []).append(node_id)
            domains = {name: tuple(nodes) for name, nodes in members.items()}
            self._domains[level] = domains
        return domains

    def domain_of(self, node_id: NodeId, level: Level) -> str:
        """Return the name of a node's domain at a level."""
        node_index, number = self._position(node_id)
        groups = node_index.groups(level)
        return groups.names[groups.of[number]]

    def best_domain(self, shape: Shape) -> Nearest | None:
        """Return the domain closest to fitting a shape of whole GPUs; None if none ever could."""
        level = (shape.where and shape.where.within) or USUAL
        best: Nearest | None = None
        for split in self.splits(shape):
            node_index, needed = _node_index(split), split.members + (split.rest > 0)
            if not split.gpus:
                continue
            tally = node_index.tally(level, split.gpus)
            sizes, names = tally.groups.sizes, tally.groups.names
            for domain, with_free in enumerate(tally.counts):
                if sizes[domain] >= needed and (best is None or with_free > best.with_free):
                    best = Nearest(names[domain], with_free, needed, sizes[domain])
        return best

    def _position(self, node_id: NodeId) -> tuple[TopologyNodeIndex, int]:
        node_index, number = self.place[node_id]
        assert isinstance(node_index, TopologyNodeIndex)
        return node_index, number

    def _claim_gang(self, strategy: Strategy, split: GangSplit, shape: Shape) -> Slots | None:
        node_index = _node_index(split)
        if node_index.count_with_free(split.gpus) < split.members:
            return None
        gang = Gang(node_index, split, shape)
        if not strategy(gang):
            return None
        slots = gang.slots()
        self.take(slots, shape)
        return slots

    def _tried(self, shape: Shape, without: Sequence[NodeId]) -> bool:
        """Return whether an empty fleet of the same nodes fits the shape."""
        if self._whole is None:
            empty = Fleet()
            for node_index, number in self.place.values():
                assert isinstance(node_index, TopologyNodeIndex)
                empty.apply(NodeJoined(Millis(0), node_index.nodes[number]))
            self._whole = TopologyCapacity.of(empty)
        scratch = TopologyScratch(self._whole)
        with scratch.trial():
            scratch.hide(without)
            return scratch.claim(shape) is not None


class TopologyScratch(Scratch[TopologyCapacity]):
    """Tentative changes to an index with domains, and to which nodes are open."""

    def claim_in(self, shape: Shape, accelerator: str) -> Slots | None:
        """Claim slots on one accelerator type, or return None."""
        return self.claimed(self.capacity.claim_in(shape, accelerator), shape)

    def fits_in(self, shape: Shape, accelerator: str) -> bool:
        """Return whether a shape fits on one accelerator type; nothing is allocated."""
        slots = self.capacity.claim_in(shape, accelerator)
        if slots is not None:
            self.capacity.give(slots, shape)
        return slots is not None

    def hide(self, nodes: Sequence[NodeId]) -> int:
        """Hide nodes, one more reason for each, and return the number of the change."""
        self._hide(nodes)
        return self.record(self._unhide, nodes)

    def unhide(self, nodes: Sequence[NodeId]) -> int:
        """Remove one reason to hide from each of these nodes."""
        self._unhide(nodes)
        return self.record(self._hide, nodes)

    def open(self, nodes: Iterable[NodeId]) -> int:
        """Open those of these nodes that are closed."""
        closed = [node_id for node_id in nodes if self.capacity.is_closed(node_id)]
        for node_id in closed:
            self.capacity.set_open(node_id, True)
        return self.record(self._close, closed)

    @contextmanager
    def hiding(self, nodes: Sequence[NodeId]) -> Generator[None]:
        """Hide nodes during a search; changes made within it stay."""
        number = self.hide(nodes)
        try:
            yield
        finally:
            self._end(number)

    @contextmanager
    def opening(self, nodes: Iterable[NodeId]) -> Generator[None]:
        """Open closed nodes during a search; changes made within it stay."""
        number = self.open(nodes)
        try:
            yield
        finally:
            self._end(number)

    def _end(self, number: int) -> None:
        self.undo(number)
        if self.checkpoint() == number + 1:
            self.commit(number)

    def _hide(self, nodes: Sequence[NodeId]) -> None:
        for node_id in nodes:
            self.capacity.hide(node_id)

    def _unhide(self, nodes: Sequence[NodeId]) -> None:
        for node_id in nodes:
            self.capacity.unhide(node_id)

    def _close(self, nodes: Sequence[NodeId]) -> None:
        for node_id in nodes:
            self.capacity.set_open(node_id, False)


def _may_be_blocked_by_topology(shape: Shape) -> bool:
    """Return whether a gang may not fit although enough nodes have enough free."""
    where = shape.where
    return where is not None and bool(where.within) and where.how in ("required", "balanced")


def _node_index(split: GangSplit) -> TopologyNodeIndex:
    assert isinstance(split.node_index, TopologyNodeIndex)
    return split.node_index


def powered_capacity(view: FleetView) -> TopologyCapacity | None:
    """Return free capacity within the power limits of racks; None where no limit must hold."""
    limited = any(node.rack_watts_always is True for node in view.nodes.values())
    return TopologyCapacity.of(view) if limited else None
