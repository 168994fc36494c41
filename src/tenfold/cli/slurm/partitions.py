"""Which nodes `-p NAME` means: those of a pool or with a tag, as for `tenfold sbatch`."""

from collections.abc import Sequence

from msgspec import UNSET

from tenfold.files.sbatch.site import NodeKind
from tenfold.model.api.nodes import Node
from tenfold.model.errors import InputError


def in_partition(nodes: Sequence[Node], names: str | None) -> tuple[Node, ...]:
    """Return the nodes of pools and tags that are named, with commas; all if none is named."""
    if names is None:
        return tuple(nodes)
    wanted = dict.fromkeys(name.strip() for name in names.split(","))
    kinds = {node.id: _kind(node) for node in nodes}
    for name in wanted:
        if any(kind.is_named(name) for kind in kinds.values()):
            continue
        known = dict.fromkeys(one for kind in kinds.values() for one in (kind.pool, *kind.tags))
        raise InputError(
            "unknown-partition",
            f"no partition `{name}`: no pool and no tag of nodes has this name",
            f"valid: {', '.join(known) or 'none'}; leave out -p for all nodes",
            field="--partition",
        )
    return tuple(node for node in nodes if any(kinds[node.id].is_named(name) for name in wanted))


def _kind(node: Node) -> NodeKind:
    return NodeKind(node.pool, tags=() if node.tags is UNSET else node.tags)
