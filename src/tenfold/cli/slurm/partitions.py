"""Which nodes `-p NAME` means: those of a pool or with a tag, as for `tenfold sbatch`."""

from collections.abc import Sequence

from msgspec import UNSET

from tenfold.model.api.nodes import Node
from tenfold.model.errors import InputError


def in_partition(nodes: Sequence[Node], names: str | None) -> tuple[Node, ...]:
    """Return the nodes of pools and tags that are named, with commas; all if none is named."""
    if names is None:
        return tuple(nodes)
    wanted = {name.strip() for name in names.split(",")}
    known = dict.fromkeys(name for node in nodes for name in _names(node))
    for name in wanted - known.keys():
        raise InputError(
            "unknown-partition",
            f"no partition `{name}`: no pool and no tag of nodes has this name",
            f"valid: {', '.join(known) or 'none'}; leave out -p for all nodes",
            field="--partition",
        )
    return tuple(node for node in nodes if wanted.intersection(_names(node)))


def _names(node: Node) -> tuple[str, ...]:
    return (node.pool, *(() if node.tags is UNSET else node.tags))
