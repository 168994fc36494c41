"""Does it fit? Worked out the slow way, from the view alone, to judge what an index says."""

from tenfold.fleet.fleet import FleetView
from tenfold.model.ids import NodeId
from tenfold.model.job import WHOLE, Shape, per_member
from tenfold.model.node import Node

Kind = tuple[str, str, int, int, int]
Gang = tuple[int, int, int]
"""So many members of so many GPUs, and the GPUs of one member more, or 0."""


def fits_now(view: FleetView, shape: Shape) -> bool:
    """Return whether nodes that are up and alike have room for the whole gang."""
    return any(_holds(view, members, shape, empty=False) for members in _kinds(view).values())


def fits_ever(view: FleetView, shape: Shape) -> bool:
    """Return whether nodes alike would hold the gang if all were up and empty."""
    return any(_holds(view, members, shape, empty=True) for members in _kinds(view).values())


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


def _kinds(view: FleetView) -> dict[Kind, list[Node]]:
    kinds: dict[Kind, list[Node]] = {}
    for node in view.nodes.values():
        kind = (node.site, node.accelerator, node.gpus, node.cpus_milli, node.memory_mib)
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
    free = [node.gpus if empty else view.gpus_free[node.id] for node in open_nodes]
    if shape.milli:
        return any(free) or any(_on_a_shared(view, node.id, shape.milli) for node in open_nodes)
    if sum(left >= gpus for left in free) < members:
        return False
    return not rest or sum(left >= rest for left in free) > members


def _cpus(view: FleetView, node: Node, empty: bool) -> int:
    return node.cpus_milli if empty else view.cpus_milli_free[node.id]


def _memory(view: FleetView, node: Node, empty: bool) -> int:
    return node.memory_mib if empty else view.memory_mib_free[node.id]


def _on_a_shared(view: FleetView, node_id: NodeId, milli: int) -> bool:
    return any(given + milli <= WHOLE for _, given in view.shares.get(node_id, ()))
