"""The nodes of a Ray cluster, as an inventory."""

from tenfold.live.ray.api import RayApi
from tenfold.model.fleet.inventory import Inventory, InventoryNode

ACCELERATOR = "accelerator_type:"
GIB = 1 << 30


def ray_inventory(api: RayApi, address: str) -> Inventory:
    """Return the nodes that are alive, with what Ray counts on them."""
    nodes: dict[str, InventoryNode] = {}
    for row in api.nodes():
        if not row.is_alive:
            continue
        total = row.raylet.resources_total
        kinds = [name.removeprefix(ACCELERATOR) for name in total if name.startswith(ACCELERATOR)]
        nodes[row.name] = InventoryNode(
            name=row.name,
            accelerator=kinds[0] if kinds else None,
            gpus=int(total.get("GPU", 0)),
            cpus=max(int(total.get("CPU", 0)), 1),
            memory_gib=int(total.get("memory", 0)) // GIB,
        )
    return Inventory(source=address, name="ray", nodes=tuple(nodes.values()), format="Ray")
