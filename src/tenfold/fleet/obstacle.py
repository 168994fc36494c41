"""Why a shape does not fit: what it needs, how much is free, and what blocks it.

Every check uses the index that places jobs: constraints are dropped one at a time, and the first
without which the shape fits is the reason. Policies with and without quotas use this, so both
report the same cause with the same code.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tenfold.fleet.capacity import GangSplit
from tenfold.fleet.topology.node_index import TopologyNodeIndex
from tenfold.fleet.topology.topology import TopologyCapacity, TopologyScratch
from tenfold.model.fleet.constraints import PlacementConstraints
from tenfold.model.ids import NodeId
from tenfold.model.job.job import WHOLE, Shape, per_member
from tenfold.model.reason import Reason, Value


def with_where(shape: Shape, where: PlacementConstraints | None) -> Shape:
    """Return a shape with other placement constraints."""
    if where is not None and not where.key:
        where = None
    old = shape.where.key if shape.where else ""
    stem = shape.key.removesuffix(old).rstrip() if old else shape.key
    return replace(shape, key=f"{stem} {where.key}" if where else stem, where=where)


def without_topology(shape: Shape) -> Shape:
    """Return a shape without topology constraints; tags stay."""
    if shape.where is None:
        return shape
    return with_where(shape, replace(shape.where, within="", how="preferred"))


def without_tags(shape: Shape) -> Shape:
    """Return a shape without tag constraints; topology stays."""
    if shape.where is None:
        return shape
    return with_where(shape, replace(shape.where, needs=(), avoids=()))


def requires_topology(where: PlacementConstraints | None) -> bool:
    """Return whether topology constraints can keep a gang from starting."""
    return where is not None and bool(where.within) and where.how in ("required", "balanced")


class FreeCapacity(Struct, frozen=True, kw_only=True):
    """What a shape needs, and how much is free on the nodes that come closest."""

    nodes_needed: int
    gpus_per_node: float
    nodes_with_room: int
    nodes_alike: int
    """Nodes that it may use together, including closed and reserved ones."""
    nodes_away: int
    nodes_kept: int = 0
    """Nodes that are reserved."""
    nodes_in_window: int = 0
    """Nodes that a window blocks now."""
    gpus_needed: float
    gpus_free: int
    """Whole GPUs free on open nodes of that kind."""
    domain: str = ""
    """The domain that comes closest, where all members must share one."""
    domain_nodes: int = 0
    domain_nodes_with_room: int = 0


def free_capacity(
    capacity: TopologyCapacity,
    shape: Shape,
    accelerators: Sequence[str],
    kept: Iterable[NodeId] = (),
    in_window: Iterable[NodeId] = (),
) -> FreeCapacity:
    """Return the counts for the kind of node, among these types, that comes closest.

    A gang needs nodes of one kind; a job on one node may use any kind that can hold it.
    """
    splits = [split for name in accelerators for split in capacity.splits_in(shape, name)]
    assert splits, f"shape `{shape.key}` never fits and should have been refused"
    split = max(splits, key=lambda each: _with_room(each, shape) / members_of(each))
    counted = [split] if members_of(split) > 1 else [one for one in splits if members_of(one) == 1]
    indexes, place = [one.node_index for one in counted], capacity.place
    promised = dict.fromkeys(node for node in kept if place[node][0] in indexes)
    closed = 0
    for node in in_window:
        home, number = place[node]
        closed += home in indexes and node not in promised and not home.is_open[number]
    where = shape.where
    is_one = where is not None and where.how == "required" and where.within
    nearest = capacity.best_domain(shape) if is_one else None
    shut = sum(one.is_open.count(False) for one in indexes)
    return FreeCapacity(
        nodes_needed=members_of(split),
        gpus_per_node=shape.milli / WHOLE if shape.milli else split.gpus,
        nodes_with_room=sum(_with_room(one, shape) for one in counted),
        nodes_alike=sum(len(one.names) for one in indexes),
        nodes_away=shut - len(promised) - closed,
        nodes_kept=len(promised),
        nodes_in_window=closed,
        gpus_needed=shape.milli / WHOLE or shape.gpus,
        gpus_free=sum(free * count for one in indexes for free, count in enumerate(one.counts)),
        domain=nearest.domain if nearest else "",
        domain_nodes=nearest.nodes if nearest else 0,
        domain_nodes_with_room=nearest.with_free if nearest else 0,
    )


def fits(capacity: TopologyCapacity, shape: Shape, accelerators: Sequence[str]) -> bool:
    """Return whether a shape fits now; nothing is allocated."""
    scratch = TopologyScratch(capacity)
    return any(scratch.fits_in(shape, name) for name in accelerators)


def obstacle_to(
    capacity: TopologyCapacity, shape: Shape, accelerators: Sequence[str], room: FreeCapacity
) -> Reason:
    """Return the first thing that blocks a shape which does not fit."""
    splits = [
        (split.node_index, split)
        for name in accelerators
        for split in capacity.splits_in(shape, name)
        if isinstance(split.node_index, TopologyNodeIndex)
    ]
    where, fields = shape.where, needs(room)
    fields["with_room"], fields["alike"] = room.nodes_with_room, room.nodes_alike
    fields["away"], fields["in_window"] = room.nodes_away, room.nodes_in_window
    fields["free"] = room.gpus_free
    if where is not None and where.within and where.how != "preferred":
        fields["how"], fields["within"] = where.how, where.within
    tags = () if where is None else where.needs
    if tags and splits and not any(any(index.is_open) for index, _ in splits):
        fields["tags"] = tags
        fields["alike"] = sum(len(index.names) for index, _ in splits)
        return Reason("tagged-nodes-down", fields)
    if room.nodes_with_room < room.nodes_needed:
        return Reason(_too_few(shape, splits, room), fields)
    if where is not None and where.within and fits(capacity, without_topology(shape), accelerators):
        if where.how == "required":
            fields["domain"], fields["domain_nodes"] = room.domain, room.domain_nodes
            fields["domain_with_room"] = room.domain_nodes_with_room
        return Reason("wrong-domain", fields)
    power = any(node_index.racks for node_index, _ in splits)
    return Reason("rack-power" if power else "cpus-or-memory-short", fields)


def needs(room: FreeCapacity) -> dict[str, Value]:
    """Return what a shape needs, as the fields of a reason."""
    return {"gpus": room.gpus_needed, "nodes": room.nodes_needed, "per_node": room.gpus_per_node}


def members_of(split: GangSplit) -> int:
    """Return how many nodes a gang needs."""
    return split.members + (split.rest > 0)


def _too_few(
    shape: Shape, splits: Sequence[tuple[TopologyNodeIndex, GangSplit]], room: FreeCapacity
) -> str:
    """Return the reason code for too few nodes that fit."""
    if any(node_index.racks for node_index, _ in splits) and any(
        _is_unfed(node_index, split) for node_index, split in splits
    ):
        return "rack-power"
    if (shape.cpus_milli or shape.memory_mib) and any(
        node_index.count_with_free(max(1 if shape.milli else 0, split.gpus)) >= members_of(split)
        for node_index, split in splits
    ):
        return "cpus-or-memory-short"
    return "room-scattered" if room.gpus_free >= room.gpus_needed > 0 else "too-few-free"


def _is_unfed(node_index: TopologyNodeIndex, split: GangSplit) -> bool:
    """Return whether enough nodes would fit if their racks had the power."""
    least = split.gpus or 1
    with_gpus = sum(
        is_open and free >= least
        for is_open, free in zip(node_index.is_open, node_index.free, strict=True)
    )
    return with_gpus >= members_of(split)


def _with_room(split: GangSplit, shape: Shape) -> int:
    """Count open nodes that could hold one member now."""
    node_index = split.node_index
    if not (shape.milli or shape.cpus_milli or shape.memory_mib):
        return node_index.count_with_free(split.gpus)
    cpus, memory = per_member(shape, members_of(split))
    numbers = dict.fromkeys(node_index.each(1 if shape.milli else split.gpus))
    for number, given in node_index.given.items() if shape.milli else ():
        if node_index.is_open[number] and any(
            held + shape.milli <= WHOLE for held in given.values()
        ):
            numbers[number] = None
    return sum(
        (not node_index.counts_cpus or node_index.cpus[number] >= cpus)
        and (not node_index.counts_memory or node_index.memory[number] >= memory)
        for number in numbers
    )
