"""Turn a described fleet into the nodes of a running one."""

from collections.abc import Iterator

import numpy as np
from msgspec import UNSET

from tenfold.model.events import NodeJoined
from tenfold.model.fleet import hostlist
from tenfold.model.fleet.facility import IDLE_POWER_SHARE
from tenfold.model.fleet.node import Node
from tenfold.model.fleet.spec import FleetSpec, Pool, Site
from tenfold.model.ids import DomainId, NodeId, PoolId, SiteId
from tenfold.model.market.offer import TRUST
from tenfold.model.units import Millis
from tenfold.physics.layout import Layout, lay_out

MIB = 1024 * 1024
START = Millis(0)


def nodes_of(spec: FleetSpec, layout: Layout | None = None) -> Iterator[Node]:
    """Yield every node of a fleet with its place, pool by pool in the order of the file."""
    layout = layout or lay_out(spec)
    sites = {site.id: site for site in spec.sites}
    rack_watts = _rack_watts(layout)
    scaleups = _ScaleUps()
    number = 0
    for pool in spec.pools:
        tags = _tags(pool, sites[pool.site])
        watts_idle, watts_per_gpu = _watts(pool)
        for name in hostlist.expand(pool.node_names):
            rack_number = int(layout.rack_of[number])
            rack = layout.racks[rack_number].name
            leaf, pod = _leaf_and_pod(layout, number)
            yield Node(
                id=NodeId(name),
                pool=PoolId(pool.id),
                site=SiteId(pool.site),
                accelerator=pool.accelerator or "",
                gpus=pool.gpus_per_node,
                cpus_milli=0 if _assumed(pool, "cpus_per_node") else pool.cpus_per_node * 1_000,
                memory_mib=(
                    0
                    if _assumed(pool, "memory_gib_per_node")
                    else pool.memory_bytes_per_node // MIB
                ),
                rack=rack,
                leaf=leaf,
                pod=pod,
                scaleup=scaleups.name(pool, rack),
                tags=tags,
                watts_idle=watts_idle,
                watts_per_gpu=watts_per_gpu,
                rack_watts=rack_watts[rack_number],
                rack_watts_always=True if rack_watts[rack_number] else UNSET,
                domains=tuple(DomainId(d) for d in (rack, leaf) if d),
            )
            number += 1


class _ScaleUps:
    """Names for the scale-up domains of several nodes: neighbours of one pool in one rack."""

    def __init__(self) -> None:
        self._met: dict[tuple[str, str], int] = {}
        """Nodes met so far, by pool and rack."""
        self._begun: dict[str, int] = {}
        """Domains begun so far, by rack."""

    def name(self, pool: Pool, rack: str) -> str:
        """Return the domain of the next node of a pool in a rack; empty where it is the node."""
        size = pool.scaleup_gpus // pool.gpus_per_node if pool.gpus_per_node else 1
        if size <= 1:
            return ""
        met = self._met.get((pool.id, rack), 0)
        self._met[pool.id, rack] = met + 1
        if met % size == 0:
            self._begun[rack] = self._begun.get(rack, 0) + 1
        return f"{rack}-scale-up-{self._begun[rack]}"


def _leaf_and_pod(layout: Layout, number: int) -> tuple[str, str]:
    """A fabric without pods counts as one pod."""
    leaf_number = int(layout.leaf_of[number])
    if leaf_number < 0:
        return "", ""
    leaf = layout.leaves[leaf_number]
    return leaf.name, f"{layout.spec.fabrics[leaf.fabric].id}-pod-{leaf.pod + 1}"


def _tags(pool: Pool, site: Site) -> tuple[str, ...]:
    """Return the tags that jobs may require or avoid, sorted so that equal pools stay equal."""
    labels = (*(pool.residency or site.residency), *(pool.certifications or site.certifications))
    use = () if pool.use == "any" else (pool.use,)
    return tuple(sorted(dict.fromkeys((*labels, *use, *_trusted_for(site)))))


def _trusted_for(site: Site) -> tuple[str, ...]:
    """Return a tag for each level of trust that a site meets: its own, and the looser ones."""
    return (
        ()
        if site.trust is None
        else tuple(f"trust-{one}" for one in TRUST[TRUST.index(site.trust) :])
    )


def _watts(pool: Pool) -> tuple[int, int]:
    """Return the idle power of a node, and the extra power per busy GPU."""
    watts = pool.power_w_per_node
    if not pool.gpus_per_node:
        return watts, 0
    idle = round(watts * IDLE_POWER_SHARE)
    return idle, (watts - idle) // pool.gpus_per_node


def _rack_watts(layout: Layout) -> list[int]:
    """Return the limit of every rack, 0 where all its nodes at full load stay within it."""
    watts = layout.per_node([float(pool.power_w_per_node) for pool in layout.spec.pools])
    drawn = np.bincount(layout.rack_of, weights=watts, minlength=len(layout.racks))
    limits = [round(rack.power_kw_limit * 1000) for rack in layout.racks]
    return [
        limit if full > limit else 0 for limit, full in zip(limits, drawn.tolist(), strict=True)
    ]


def _assumed(pool: Pool, figure: str) -> bool:
    """CPUs and memory that are not in the file are assumed, so they never limit a job."""
    return figure in pool.defaulted


def joined(spec: FleetSpec, at_ms: Millis = START) -> list[NodeJoined]:
    """Return the facts that bring a described fleet into being."""
    return [NodeJoined(at_ms, node) for node in nodes_of(spec)]
