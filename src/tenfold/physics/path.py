"""The path of a message from one GPU to another: its legs, rate and latency.

Without GPUDirect a message is copied through host memory at both ends, which costs
another crossing of PCIe each time and halves what PCIe can carry.
"""

from typing import Literal

from msgspec import Struct

from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet.spec import Fabric, FleetSpec, Pool
from tenfold.physics.fabric import FabricPlan
from tenfold.physics.layout import Layout

Relation = Literal[
    "same-scale-up", "same-node", "same-leaf", "other-leaf", "other-pod", "other-site"
]
SWITCH_HOP = "switch-hop"
HOST_COPY = "host-copy"
DEFAULT_PCIE = "PCIe4-x16"


class Leg(Struct, frozen=True):
    """One part of a path."""

    name: str
    bytes_per_s: float
    latency_us: float


class Path(Struct, frozen=True, kw_only=True):
    """A path between two GPUs that have it to themselves."""

    relation: Relation
    legs: tuple[Leg, ...]
    switches: int
    site: str = ""
    """The site at the other end, where that is another one."""

    @property
    def bytes_per_s(self) -> float:
        """The slowest leg."""
        return min((leg.bytes_per_s for leg in self.legs), default=0.0)

    @property
    def latency_us(self) -> float:
        """All delays added up."""
        return sum(leg.latency_us for leg in self.legs)


def pool_paths(layout: Layout, pool: Pool, catalogue: Catalogue) -> list[Path]:
    """Return the paths from a GPU of a pool, nearest first."""
    spec = layout.spec
    paths: list[Path] = []
    part = None if pool.accelerator is None else catalogue.accelerators.find(pool.accelerator)
    link = (
        None if part is None or not part.scaleup_link else catalogue.links.find(part.scaleup_link)
    )
    if part is not None and pool.scaleup_gpus > 1 and part.scaleup_gb_per_s:
        delay = link.latency_us if link else 0.0
        leg = Leg(part.scaleup_link or "scale-up", part.scaleup_gb_per_s * 1e9, delay)
        paths.append(Path(relation="same-scale-up", legs=(leg,), switches=0))
    pcie = _pcie(pool, catalogue)
    if pool.gpus_per_node > 1 and pool.scaleup_gpus < pool.gpus_per_node:
        paths.append(Path(relation="same-node", legs=(pcie, pcie), switches=0))
    fabric = next((one for one in spec.fabrics if one.id == pool.fabric), None)
    plan = next((one for one in layout.fabrics if one.name == pool.fabric), None)
    if fabric is not None and plan is not None:
        paths.extend(_fabric_paths(pool, fabric, plan, pcie, catalogue))
    paths.extend(_site_paths(spec, pool, pcie))
    return paths


def _pcie(pool: Pool, catalogue: Catalogue) -> Leg:
    part = None if pool.accelerator is None else catalogue.accelerators.find(pool.accelerator)
    generation = f"PCIe{part.pcie_gen}-x16" if part and part.pcie_gen else DEFAULT_PCIE
    link = catalogue.links.find(generation) or catalogue.links.get(DEFAULT_PCIE)
    rate = (part.pcie_gb_per_s if part and part.pcie_gb_per_s else link.gb_per_s) * 1e9
    if pool.gpudirect:
        return Leg(link.name, rate, link.latency_us)
    copy_us = catalogue.links.get(HOST_COPY).latency_us
    return Leg(f"{link.name} through host memory", rate / 2, link.latency_us + copy_us)


def port_bytes_per_s(pool: Pool, fabric: Fabric, catalogue: Catalogue) -> float:
    """Return the rate of a node's port: the slower of the NIC and the fabric's link."""
    link = catalogue.links.find(fabric.link)
    if link is None or not link.gb_per_s:
        return float(pool.nic_bandwidth)
    return min(float(pool.nic_bandwidth), link.gb_per_s * 1e9)


def _fabric_paths(
    pool: Pool, fabric: Fabric, plan: FabricPlan, pcie: Leg, catalogue: Catalogue
) -> list[Path]:
    link = catalogue.links.find(fabric.link)
    port = link.latency_us if link else 0.0
    hop_us = catalogue.links.get(SWITCH_HOP).latency_us
    gpus = max(1, pool.gpus_per_node)
    rate = pool.nics_per_node * port_bytes_per_s(pool, fabric, catalogue) / gpus
    nic = Leg(f"NIC {fabric.link}".rstrip(), rate, port)
    hops: list[tuple[Relation, int, float]] = []
    if plan.nodes_per_leaf > 1 and plan.nodes > 1:
        hops.append(("same-leaf", 1, 1.0))
    if plan.leaves > 1:
        blocked = 1.0 if plan.kind == "dragonfly" else plan.oversubscription
        hops.append(("other-leaf", 2 if plan.kind == "dragonfly" else 3, blocked))
    if plan.pods > 1:
        share = plan.oversubscription * (
            1.0 if plan.kind == "dragonfly" else plan.core_oversubscription
        )
        hops.append(("other-pod", 4 if plan.kind == "dragonfly" else 5, share))
    return [
        Path(
            relation=relation,
            switches=switches,
            legs=(pcie, nic, Leg("switches", rate / share, switches * hop_us), pcie),
        )
        for relation, switches, share in hops
    ]


def _site_paths(spec: FleetSpec, pool: Pool, pcie: Leg) -> list[Path]:
    return [
        Path(
            relation="other-site",
            switches=0,
            site=link.b if pool.site == link.a else link.a,
            legs=(pcie, Leg(f"link {link.a} - {link.b}", link.bandwidth, link.latency_us), pcie),
        )
        for link in spec.links
        if pool.site in (link.a, link.b)
    ]
