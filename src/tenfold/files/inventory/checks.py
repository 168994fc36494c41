"""Check that an inventory can be written as a fleet file.

The bounds are those of the fleet file: an importer must not write what the reader rejects.
"""

from collections.abc import Sequence

from tenfold.model.errors import InputError
from tenfold.model.fleet import hostlist
from tenfold.model.fleet.inventory import InventoryNode
from tenfold.model.strings import is_one_line

NAME_MAX = 200
NODES_MAX = 1_000_000
GPUS_MAX = 1_024
CPUS_MAX = 100_000
MEMORY_GIB_MAX = 1_000_000


def check_inventory(nodes: Sequence[InventoryNode], file: str) -> None:
    """Raise for the first node with a bad name or value, or a duplicate name."""
    if not nodes:
        raise InputError(
            "no-nodes",
            f"`{file}` lists no nodes",
            "export it again on a host that can see the cluster's nodes",
            file=file,
        )
    seen: dict[str, None] = {}
    for number, node in enumerate(nodes, start=1):
        fault = name_fault(node.name) or _figure_fault(node)
        if fault:
            where = f"entry {number} of `{file}`"
            raise InputError(
                "bad-node",
                f"{where}: {fault}",
                "fix the entry, or export the file again",
                file=file,
            )
        if node.name in seen:
            raise InputError(
                "duplicate-name",
                f"node `{node.name}` appears twice in `{file}`",
                "import each cluster from its own file, then merge them",
                file=file,
            )
        seen[node.name] = None


def name_fault(name: str) -> str:
    """Return why a node cannot have this name, or an empty string."""
    if not name:
        return "the node has no name"
    if len(name) > NAME_MAX:
        return f"the node name has {len(name):,} characters; the limit is {NAME_MAX}"
    try:
        alone = hostlist.expand(hostlist.fold([name]))
    except hostlist.HostlistError:
        alone = []
    if alone != [name] or any(letter.isspace() for letter in name) or not is_one_line(name):
        return f"`{name}` cannot be a node name: it has spaces, commas, brackets or line breaks"
    return ""


def _figure_fault(node: InventoryNode) -> str:
    figures = (
        ("gpus", node.gpus, 0, GPUS_MAX),
        ("cpus", node.cpus, 1, CPUS_MAX),
        ("memory_gib", node.memory_gib, 0, MEMORY_GIB_MAX),
    )
    for field, value, low, high in figures:
        if not low <= value <= high:
            return f"node `{node.name}` has `{field}` {value:g}, expected {low} to {high:,}"
    for field in ("accelerator", "rack", "site"):
        text = getattr(node, field)
        if text is not None and not 0 < len(text) <= NAME_MAX:
            return (
                f"node `{node.name}` has a `{field}` of {len(text)} characters, "
                f"expected 1 to {NAME_MAX}"
            )
        if text is not None and not is_one_line(text):
            return f"node `{node.name}` has control characters in `{field}`"
    return ""
