"""What the network gives a job: the rate of each GPU and the delay of a hop, by how far it spreads.

The formulas of collectives were fitted to clusters with RDMA links, GPUDirect and three switches
between nodes. Here other networks are put beside that reference: the slower of NIC, port and PCIe,
the share of its rate that a class of links reaches, longer paths, and static routing.
"""

from math import exp, lgamma, log

from msgspec import Struct

from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet.hardware import Accelerator
from tenfold.model.fleet.spec import Fabric, Pool
from tenfold.physics.fabric import FabricPlan
from tenfold.physics.layout import Layout
from tenfold.physics.path import Leg, Path, Relation, pool_paths, port_bytes_per_s

REFERENCE_SHARE = 0.96
"""Share of its rate that an RDMA link reaches with the largest messages (SimAI NIC table)."""
REFERENCE_DELAY_US = 4.3
"""One way through two PCIe 5 slots, an RDMA port and three switches."""
FLOWS_PER_PORT = 16
"""Flows that a port keeps open during a collective; an assumption."""
MICROSECOND = 1e-6
PORT_GBPS = (100.0, 200.0, 400.0, 800.0)
"""Rates of ports that servers of accelerators are built with, in Gbit/s."""
DEFAULT_PORT_GBPS = 400.0
"""Of accelerators whose PCIe slot is not known; an assumption."""
EDGE_GBPS = 10.0
"""Of a board without a fabric of its own, as the Jetson development kits; an assumption."""
CARDS_PER_PORT = 4
"""Cards without a scale-up link that share a port, as in servers of L40S; an assumption."""


class ServerPorts(Struct, frozen=True, kw_only=True):
    """The NICs of a server, where neither a file nor a fact describes it."""

    gpus: int
    nics: int
    gbps: float
    """Of each, in Gbit/s."""
    gpudirect: bool
    like: str = ""
    """The server in the facts whose NICs per accelerator these are."""


def server_ports(part: Accelerator, gpus: int | None, catalogue: Catalogue) -> ServerPorts:
    """Return the NICs of a server with some accelerators of a kind.

    They are those of the server in the facts with the nearest number of them, in proportion. Where
    there is none, a part with a scale-up link has a port of its own, at the highest rate that its
    PCIe slot carries; other cards share one.
    """
    shapes = [shape for shape in catalogue.nodes if shape.accelerator == part.name and shape.gpus]
    count = gpus or (8 if part.scaleup_gpus != 1 or part.kind == "gpu" else 1)
    if shapes:
        like = min(
            shapes,
            key=lambda one: (one.gpus != count, bool(one.provider), abs(one.gpus - count)),
        )
        total = like.nics * like.nic_gbps * count / like.gpus
        nics = max(1, round(like.nics * count / like.gpus))
        return ServerPorts(
            gpus=count, nics=nics, gbps=total / nics, gpudirect=like.gpudirect, like=like.name
        )
    if part.kind == "edge":
        return ServerPorts(gpus=count, nics=1, gbps=EDGE_GBPS, gpudirect=False)
    slot = (part.pcie_gb_per_s or 0.0) * 8
    rate = max((rate for rate in PORT_GBPS if rate <= slot), default=DEFAULT_PORT_GBPS)
    joined = part.scaleup_gpus > 1
    nics = count if joined else max(1, count // CARDS_PER_PORT)
    return ServerPorts(gpus=count, nics=nics, gbps=rate, gpudirect=joined)


class PoolNetwork(Struct, frozen=True, kw_only=True):
    """The network of a pool, as its collectives see it. Delays are over the reference."""

    bytes_per_s: float
    """Per GPU and direction, between nodes of one leaf."""
    spine_share: float
    """Share of that rate that is left beyond a leaf, apart from oversubscription."""
    leaf_delay_s: float
    pod_delay_s: float
    far_delay_s: float


def pool_network(layout: Layout, pool: Pool, catalogue: Catalogue) -> PoolNetwork:
    """Return what the network of a pool gives each of its GPUs."""
    fabric = next((one for one in layout.spec.fabrics if one.id == pool.fabric), None)
    plan = next((one for one in layout.fabrics if one.name == pool.fabric), None)
    gpus = max(1, pool.gpus_per_node)
    if fabric is None or plan is None:
        rate = pool.nics_per_node * pool.nic_bandwidth / gpus
        return PoolNetwork(
            bytes_per_s=rate, spine_share=1.0, leaf_delay_s=0.0, pod_delay_s=0.0, far_delay_s=0.0
        )
    paths: dict[Relation, Path] = {
        path.relation: path for path in pool_paths(layout, pool, catalogue)
    }
    near = _delay_s(paths, "same-leaf", "other-leaf")
    middle = _delay_s(paths, "other-leaf", "same-leaf")
    port = pool.nics_per_node * port_bytes_per_s(pool, fabric, catalogue) / gpus
    host = min((leg.bytes_per_s for leg in _host_legs(paths)), default=port)
    return PoolNetwork(
        bytes_per_s=min(port, host) * _class_share(fabric, catalogue),
        spine_share=1.0 if fabric.adaptive_routing else static_share(uplinks(fabric, plan)),
        leaf_delay_s=near,
        pod_delay_s=middle,
        far_delay_s=_delay_s(paths, "other-pod", "other-leaf", "same-leaf"),
    )


def uplinks(fabric: Fabric, plan: FabricPlan) -> int:
    """Return the ports of a leaf switch that lead up."""
    ports_down = plan.nodes_per_leaf * (1 if fabric.kind == "rail-optimised" else plan.rails)
    return max(1, round(ports_down / fabric.oversubscription))


def static_share(links: int, flows_per_link: int = FLOWS_PER_PORT) -> float:
    """Return the rate of the slowest of some flows that are hashed to links, over an even spread.

    All of a collective waits for the link with the most flows. Their number is Poisson; the most
    of `links` such numbers is taken where fewer than one link is expected to have more.
    """
    if links <= 1:
        return 1.0
    most = flows_per_link
    while links * _poisson_tail(most, flows_per_link) > 1.0:
        most += 1
    return flows_per_link / most


def _poisson_tail(more_than: int, mean: float) -> float:
    """Return the probability of more than a number of events."""
    below = sum(exp(k * log(mean) - mean - lgamma(k + 1)) for k in range(more_than + 1))
    return max(0.0, 1.0 - below)


def _delay_s(paths: dict[Relation, Path], *relations: Relation) -> float:
    """Return the delay of the first relation that exists, over the reference."""
    found = next((paths[one] for one in relations if one in paths), None)
    return 0.0 if found is None else (found.latency_us - REFERENCE_DELAY_US) * MICROSECOND


def _host_legs(paths: dict[Relation, Path]) -> list[Leg]:
    far = next((path for path in paths.values() if path.relation in _BETWEEN_NODES), None)
    return [] if far is None else [far.legs[0], far.legs[-1]]


def _class_share(fabric: Fabric, catalogue: Catalogue) -> float:
    """Return what a class of links reaches with large messages, over the reference."""
    link = catalogue.links.find(fabric.link)
    if link is None or not link.efficiency:
        return 1.0
    return min(1.0, link.efficiency[-1][1] / REFERENCE_SHARE)


_BETWEEN_NODES: tuple[Relation, ...] = ("same-leaf", "other-leaf", "other-pod")
