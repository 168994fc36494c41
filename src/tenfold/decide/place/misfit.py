"""Why a shape can never run on this fleet, even when the fleet is empty.

Rack power, required topology and tags are dropped one at a time, then in combination; the first
combination without which the shape fits is the cause. Otherwise the shape is too large.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from tenfold.fleet.capacity import Capacity, GangSplit
from tenfold.fleet.obstacle import members_of, requires_topology, without_tags, without_topology
from tenfold.fleet.topology import plans
from tenfold.fleet.topology.domains import Tally
from tenfold.fleet.topology.node_index import Rack, TopologyNodeIndex
from tenfold.model.fleet.constraints import PlacementConstraints
from tenfold.model.job.job import Shape
from tenfold.model.reason import Reason, Value, first_names

Cause = Literal["tags", "place", "power"]
CAUSES: tuple[tuple[Cause, ...], ...] = (
    ("power",),
    ("place",),
    ("tags",),
    ("place", "power"),
    ("tags", "power"),
    ("tags", "place"),
    ("tags", "place", "power"),
)
"""What to drop, in this order. Power comes before topology: a rack that is large enough is not
the cause if its power is. Topology comes before tags for the same reason.
"""
CODES = (
    "no-such-accelerator",
    "no-node-with-tags",
    "too-few-with-tags",
    "larger-than-a-domain",
    "more-than-racks-feed",
    "larger-than-a-node",
    "larger-than-the-fleet",
)
"""Codes of refusals that mean that a shape never fits."""


def never_fits(capacity: Capacity, shape: Shape) -> tuple[Reason, ...]:
    """Return why a shape never fits; several reasons where only their combination prevents it."""
    kinds = capacity.node_indexes
    if shape.accelerators and not any(kind[1] in shape.accelerators for kind in kinds):
        return (Reason("no-such-accelerator", first_names("accelerators", shape.accelerators)),)
    for causes in CAUSES:
        if _fits_without(capacity, shape, causes):
            return tuple(_reason(capacity, shape, causes, cause) for cause in causes)
    return (_too_large(capacity, shape),)


def _fits_without(capacity: Capacity, shape: Shape, causes: Sequence[Cause]) -> bool:
    """Return whether an empty fleet holds a shape without these constraints."""
    relaxed = _without(shape, causes)
    if "power" not in causes:
        return relaxed is not shape and capacity.could_hold(relaxed)
    return any(_would_fit(split, relaxed.where) for split in capacity.splits(relaxed))


def _without(shape: Shape, causes: Sequence[Cause]) -> Shape:
    """Return a shape without the constraints behind these causes."""
    where = shape.where
    if "tags" in causes and where is not None and (where.needs or where.avoids):
        shape = without_tags(shape)
    return (
        without_topology(shape) if "place" in causes and requires_topology(shape.where) else shape
    )


def _would_fit(split: GangSplit, where: PlacementConstraints | None) -> bool:
    """Return whether the nodes of an index, idle and with enough power, could hold a gang."""
    members, node_index = members_of(split), split.node_index
    if members > len(node_index.names):
        return False
    if (
        members == 1
        or where is None
        or not requires_topology(where)
        or not isinstance(node_index, TopologyNodeIndex)
    ):
        return True
    groups = node_index.groups(where.within)
    if where.how == "required" or groups.largest >= members:
        return groups.largest >= members
    for plan in plans.balanced(Tally(groups, range(len(node_index.names))), split.members):
        smallest = min(count for _, count in plan)
        if not split.rest or any(
            groups.sizes[domain] > count for domain, count in plan if count == smallest
        ):
            return True
    return False


def _reason(capacity: Capacity, shape: Shape, causes: Sequence[Cause], cause: Cause) -> Reason:
    """Return one cause with its counts, with the other causes dropped."""
    relaxed = _without(shape, [each for each in causes if each != cause])
    if cause == "tags":
        return _tags_reason(capacity, relaxed)
    if cause == "place":
        return _place_reason(capacity, relaxed)
    return _power_reason(capacity, relaxed)


def _tags_reason(capacity: Capacity, shape: Shape) -> Reason:
    assert shape.where is not None, "only shapes with tag constraints fail on tags"
    splits, fields = capacity.splits(shape), dict[str, Value]()
    if shape.where.needs:
        fields |= first_names("tags", shape.where.needs)
    if shape.where.avoids:
        fields |= first_names("avoided", shape.where.avoids)
    fields["of"] = _nodes_in(capacity.splits(without_tags(shape)))
    if not splits:
        return Reason("no-node-with-tags", fields)
    (fields["nodes"], alike), tagged = _nearest(splits), _nodes_in(splits)
    fields["tagged"] = tagged
    if tagged > alike:
        fields["alike"] = alike
    return Reason("too-few-with-tags", fields)


def _place_reason(capacity: Capacity, shape: Shape) -> Reason:
    assert shape.where is not None, "only shapes with topology constraints fail on topology"
    level, splits = shape.where.within, capacity.splits(shape)
    largest = max(
        split.node_index.groups(level).largest
        for split in splits
        if isinstance(split.node_index, TopologyNodeIndex)
    )
    needed = min(map(members_of, splits))
    fields = {"nodes": needed, "how": shape.where.how, "within": level, "largest": largest}
    return Reason("larger-than-a-domain", fields)


def _power_reason(capacity: Capacity, shape: Shape) -> Reason:
    where = shape.where
    level = where.within if where is not None and where.how == "required" else ""
    best: tuple[float, int, int, GangSplit] | None = None
    for split in capacity.splits(shape):
        if isinstance(split.node_index, TopologyNodeIndex) and _would_fit(split, where):
            fed = _fed(capacity, split.node_index, split.gpus or 1)
            of = split.node_index.groups(level).of if level else [0] * len(split.node_index.names)
            counts = [0] * (max(of) + 1)
            for number in fed:
                counts[of[number]] += 1
            most = max(counts)
            size = of.count(counts.index(most))
            found = (most / members_of(split), most, size, split)
            best = found if best is None or found[:2] > best[:2] else best
    assert best is not None, "power is the cause only where the nodes would fit"
    _, most, size, split = best
    fields: dict[str, Value] = {"nodes": members_of(split), "per_node": max(split.gpus, 1)}
    fields["fed"], fields["of"], fields["within"] = most, size, level
    return Reason("more-than-racks-feed", fields)


def _fed(capacity: Capacity, node_index: TopologyNodeIndex, gpus: int) -> Iterator[int]:
    """Yield nodes of an index that racks could power with `gpus` each, if all were idle."""
    left: dict[int, int] = {}
    for other, number in capacity.place.values():
        rack = _rack(other, number)
        if rack is not None and isinstance(other, TopologyNodeIndex):
            node = other.nodes[number]
            left[id(rack)] = left.get(id(rack), node.rack_watts) - node.watts_idle
    for number, node in enumerate(node_index.nodes):
        rack, watts = _rack(node_index, number), gpus * node.watts_per_gpu
        if rack is not None and watts:
            if left[id(rack)] < watts:
                continue
            left[id(rack)] -= watts
        yield number


def _rack(node_index: object, number: int) -> Rack | None:
    return node_index.racks.get(number) if isinstance(node_index, TopologyNodeIndex) else None


def _too_large(capacity: Capacity, shape: Shape) -> Reason:
    splits = capacity.splits(shape)
    if splits:
        needed, alike = _nearest(splits)
        return Reason("larger-than-the-fleet", {"nodes": needed, "alike": alike})
    kinds = [
        kind
        for kind in capacity.node_indexes
        if not shape.accelerators or kind[1] in shape.accelerators
    ]
    each, most = shape.gpus_per_node or 0, max((kind[2] for kind in kinds), default=0)
    each = min(each, shape.gpus) or int(shape.gpus + shape.milli > 0)
    if each > most:
        return Reason("larger-than-a-node", {"per_node": each, "largest": most})
    return Reason("larger-than-a-node")


def _nearest(splits: Sequence[GangSplit]) -> tuple[int, int]:
    """Return (nodes needed, nodes of that kind) for the kind of node that comes closest."""
    split = max(splits, key=lambda each: len(each.node_index.names) / members_of(each))
    return members_of(split), len(split.node_index.names)


def _nodes_in(splits: Sequence[GangSplit]) -> int:
    return sum(len(split.node_index.names) for split in splits)
