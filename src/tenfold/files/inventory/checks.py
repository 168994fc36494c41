"""Refuse an inventory that no fleet file could hold, naming the node at fault.

The bounds are those of the fleet file: an importer must not write what the reader
then refuses.
"""

from collections.abc import Sequence

from tenfold.model.errors import InputError
from tenfold.model.fleet import hostlist
from tenfold.model.fleet.inventory import InventoryNode

NAME_MAX = 200
NODES_MAX = 1_000_000
GPUS_MAX = 1_024
CPUS_MAX = 100_000
MEMORY_GIB_MAX = 1_000_000


def check_inventory(nodes: Sequence[InventoryNode], file: str) -> None:
    """Raise for the first node that has an unusable name or figure, or stands twice."""
    if not nodes:
        raise InputError(
            "no-nodes",
            f"`{file}` lists no node",
            "save it again where the cluster's nodes can be seen",
            file=file,
        )
    seen: dict[str, None] = {}
    for node in nodes:
        fault = name_fault(node.name) or _figure_fault(node)
        if fault:
            raise InputError("bad-node", fault, "mend that entry", file=file)
        if node.name in seen:
            raise InputError(
                "duplicate-name",
                f"node `{node.name}` stands twice in `{file}`",
                "import each cluster from its own file, then merge them",
                file=file,
            )
        seen[node.name] = None


def name_fault(name: str) -> str:
    """Return why a node cannot be called this, or nothing."""
    if not 0 < len(name) <= NAME_MAX:
        return f"a node name has {len(name)} letters; 1 to {NAME_MAX} are read"
    try:
        alone = hostlist.expand(hostlist.fold([name]))
    except hostlist.HostlistError:
        alone = []
    if alone != [name] or any(letter.isspace() for letter in name):
        return f"`{name}` cannot be a node name: it does not survive a host list"
    return ""


def _figure_fault(node: InventoryNode) -> str:
    figures = (
        ("gpus", node.gpus, 0, GPUS_MAX),
        ("cpus", node.cpus, 1, CPUS_MAX),
        ("memory_gib", node.memory_gib, 0, MEMORY_GIB_MAX),
    )
    for field, value, low, high in figures:
        if not low <= value <= high:
            return f"node `{node.name}` has {field} {value:g}; {low} to {high:,} are read"
    for field in ("accelerator", "rack", "site"):
        text = getattr(node, field)
        if text is not None and not 0 < len(text) <= NAME_MAX:
            return f"node `{node.name}` has a {field} of {len(text)} letters"
    return ""
