"""Turn a described fleet into the nodes of a running one."""

from collections.abc import Iterator

from tenfold.model import hostlist
from tenfold.model.events import NodeJoined
from tenfold.model.fleet_spec import FleetSpec, Pool
from tenfold.model.ids import DomainId, NodeId, PoolId, SiteId
from tenfold.model.node import Node
from tenfold.model.units import Millis
from tenfold.physics.layout import Layout, lay_out

MIB = 1024 * 1024
START = Millis(0)


def nodes_of(spec: FleetSpec, layout: Layout | None = None) -> Iterator[Node]:
    """Yield every node of a fleet with its place, pool by pool in the order of the file."""
    layout = layout or lay_out(spec)
    number = 0
    for pool in spec.pools:
        for name in hostlist.expand(pool.node_names):
            rack = layout.racks[int(layout.rack_of[number])].name
            leaf_number = int(layout.leaf_of[number])
            leaf = layout.leaves[leaf_number].name if leaf_number >= 0 else ""
            yield Node(
                id=NodeId(name),
                pool=PoolId(pool.id),
                site=SiteId(pool.site),
                accelerator=pool.accelerator or "",
                gpus=pool.gpus_per_node,
                cpus_milli=0 if _supposed(pool, "cpus_per_node") else pool.cpus_per_node * 1_000,
                memory_mib=(
                    0
                    if _supposed(pool, "memory_gib_per_node")
                    else pool.memory_bytes_per_node // MIB
                ),
                rack=rack,
                leaf=leaf,
                domains=tuple(DomainId(d) for d in (rack, leaf) if d),
            )
            number += 1


def _supposed(pool: Pool, figure: str) -> bool:
    """CPUs and memory that the file does not state are supposed, and so never bind a job."""
    return figure in pool.defaulted


def joined(spec: FleetSpec, at_ms: Millis = START) -> list[NodeJoined]:
    """Return the facts that bring a described fleet into being."""
    return [NodeJoined(at_ms, node) for node in nodes_of(spec)]
