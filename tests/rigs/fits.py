"""Whether a shape fits, computed the slow way from the view alone, to check the index."""

from tenfold.fleet.fleet import FleetView
from tenfold.model.fleet.constraints import Level
from tenfold.model.fleet.node import Node
from tenfold.model.ids import NodeId
from tenfold.model.job.job import WHOLE, Shape, per_member

Kind = tuple[str, str, int, int, int, tuple[str, ...], str]
"""Site, accelerator, GPUs, CPUs, memory, tags, and the domain that a gang may not leave."""
Gang = tuple[int, int, int]
"""Number of members, GPUs of each, and GPUs of one more member, or 0."""


def fits_now(view: FleetView, shape: Shape) -> bool:
    """Return whether nodes that are up and alike have room for the whole gang."""
    return any(
        _holds(view, members, shape, empty=False) for members in _kinds(view, shape).values()
    )


def fits_ever(view: FleetView, shape: Shape) -> bool:
    """Return whether nodes alike would hold the gang if all were up and empty."""
    return any(_holds(view, members, shape, empty=True) for members in _kinds(view, shape).values())


def gang_on(node: Node, shape: Shape) -> Gang | None:
    """Return how a gang sits on nodes like this one; None where a member is too large."""
    if shape.accelerators and node.accelerator not in shape.accelerators:
        return None
    if shape.gpus == 0:
        return None if shape.milli and node.gpus == 0 else (1, 0, 0)
    if node.gpus == 0:
        return None
    each = min(shape.gpus_per_node or node.gpus, shape.gpus)
    if each > node.gpus:
        return None
    if shape.gpus_per_node is None:
        return -(-shape.gpus // each), each, 0
    return shape.gpus // each, each, shape.gpus % each


def admits(node: Node, shape: Shape) -> bool:
    """Return whether the tags of a node are those that a gang needs, and none that it avoids."""
    where = shape.where
    if where is None:
        return True
    lacks = any(tag not in node.tags for tag in where.needs)
    return not lacks and not any(tag in node.tags for tag in where.avoids)


def bound_to(node: Node, shape: Shape) -> str:
    """Return the domain that a gang with a member on this node may not leave, or nothing."""
    where = shape.where
    if where is None or where.how != "required" or not where.within:
        return ""
    # A node without a name at a level shares nothing with others there.
    return f"{where.within} {_domain(node, where.within) or node.id}"


def _domain(node: Node, level: Level) -> str:
    names = {"scale-up": node.scaleup, "rack": node.rack, "leaf": node.leaf, "pod": node.pod}
    return names[level]


def _kinds(view: FleetView, shape: Shape) -> dict[Kind, list[Node]]:
    """Return the nodes among which a gang must be, those alike together."""
    kinds: dict[Kind, list[Node]] = {}
    for node in view.nodes.values():
        if admits(node, shape):
            hardware = (node.site, node.accelerator, node.gpus, node.cpus_milli, node.memory_mib)
            kind = (*hardware, node.tags, bound_to(node, shape))
            kinds.setdefault(kind, []).append(node)
    return kinds


def _holds(view: FleetView, alike: list[Node], shape: Shape, *, empty: bool) -> bool:
    gang = gang_on(alike[0], shape)
    if gang is None:
        return False
    members, gpus, rest = gang
    cpus, memory = per_member(shape, members + (rest > 0))
    open_nodes = [
        node
        for node in alike
        if (empty or view.states[node.id] == "up")
        and (not node.cpus_milli or cpus <= _cpus(view, node, empty))
        and (not node.memory_mib or memory <= _memory(view, node, empty))
    ]
    if empty:
        open_nodes = _fed(view, open_nodes, gpus or bool(shape.milli))
    free = [node.gpus if empty else view.gpus_free[node.id] for node in open_nodes]
    if shape.milli:
        return any(free) or any(_on_a_shared(view, node.id, shape.milli) for node in open_nodes)
    if sum(left >= gpus for left in free) < members:
        return False
    return not rest or sum(left >= rest for left in free) > members


def _fed(view: FleetView, alike: list[Node], gpus: int) -> list[Node]:
    """Return as many of the nodes as their racks can feed with a member each, were all idle."""
    left: dict[tuple[str, str], int] = {}
    for node in view.nodes.values():
        if node.rack_watts:
            rack = (node.site, node.rack)
            left[rack] = left.get(rack, node.rack_watts) - node.watts_idle
    fed: list[Node] = []
    for node in alike:
        rack, watts = (node.site, node.rack), gpus * node.watts_per_gpu
        if node.rack_watts and watts:
            left[rack] -= watts
            if left[rack] < 0:
                continue
        fed.append(node)
    return fed


def _cpus(view: FleetView, node: Node, empty: bool) -> int:
    return node.cpus_milli if empty else view.cpus_milli_free[node.id]


def _memory(view: FleetView, node: Node, empty: bool) -> int:
    return node.memory_mib if empty else view.memory_mib_free[node.id]


def _on_a_shared(view: FleetView, node_id: NodeId, milli: int) -> bool:
    return any(given + milli <= WHOLE for _, given in view.shares.get(node_id, ()))
