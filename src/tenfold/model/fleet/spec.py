"""The description of a fleet: what one has, as one document.

This is the frozen wish and inventory that people write down; the running state is
another thing (`Fleet`). Nodes are not listed one by one: a pool names them as a
host list (`n[1-4]`), so a hundred thousand nodes are a few records.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from tenfold.model.fleet.facility import PriceKind
from tenfold.model.fleet.storage import TierRole
from tenfold.model.ids import (
    DomainId,
    FabricId,
    Name,
    PoolId,
    RackId,
    SiteId,
    TeamId,
    TierId,
)
from tenfold.model.units import Bytes, BytesPerSecond, UsdMicros

FabricKind = Literal["fat-tree", "rail-optimised", "dragonfly"]
DomainKind = Literal[
    "gpu",
    "node",
    "rack",
    "leaf",
    "pdu",
    "cooling-zone",
    "spine",
    "hall",
    "site",
    "shelf",
]
GENERATED_RACK = "-rack-"
"""Racks that the file does not state are called `<pool>-rack-1`, `<pool>-rack-2` ..."""
PoolUse = Literal["any", "production", "experiments"]


class Site(Struct, frozen=True, kw_only=True):
    """A place with its own power, network and law."""

    id: SiteId
    region: str = ""
    residency: tuple[str, ...] = ()
    certifications: tuple[str, ...] = ()
    power_kw_limit: float | None = None
    rack_kw_limit: float
    racks_per_pdu: int | None = None
    racks_per_cooling_zone: int | None = None
    pue: float
    usd_per_kwh: float
    co2_g_per_kwh: float


class SiteLink(Struct, frozen=True, kw_only=True):
    """A connection between two sites; both directions alike."""

    a: SiteId
    b: SiteId
    bandwidth: BytesPerSecond
    latency_us: float
    egress_usd_micros_per_gb: UsdMicros


class Fabric(Struct, frozen=True, kw_only=True):
    """The network that joins the nodes of a site.

    `oversubscription` is what enters a leaf (in a dragonfly: a group) over what leaves
    it upwards; `core_oversubscription` the same for a pod of leaves. 1.0 is non-blocking.
    """

    id: FabricId
    site: SiteId
    kind: FabricKind
    link: str
    switch_ports: int
    oversubscription: float = 1.0
    core_oversubscription: float = 1.0
    nodes_per_leaf: int | None = None
    leaves_per_pod: int | None = None
    spines: int | None = None
    switches_per_group: int = 8
    defaulted: bool = False


class Price(Struct, frozen=True, kw_only=True):
    """What an hour of one GPU (or, on a CPU pool, of one node) costs to hold."""

    kind: PriceKind
    usd_micros_per_hour: UsdMicros
    basis: str
    """Where the figure comes from: `stated`, `capex` or the name of a price fact."""


class Pool(Struct, frozen=True, kw_only=True):
    """Nodes alike in one site. `defaulted` names what the file did not say."""

    id: PoolId
    site: SiteId
    fabric: FabricId | None
    accelerator: str | None
    shape: str | None
    nodes: int
    node_names: str
    gpus_per_node: int
    cpus_per_node: int
    memory_bytes_per_node: Bytes
    scaleup_gpus: int
    nics_per_node: int
    nic_bandwidth: BytesPerSecond
    gpudirect: bool
    pcie_lanes: int | None
    pcie_switched: bool
    nvme_drives: int
    nvme_bandwidth: BytesPerSecond
    power_w_per_node: int
    nodes_per_rack: int
    use: PoolUse = "any"
    residency: tuple[str, ...] = ()
    certifications: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    price: Price | None = None
    defaulted: tuple[str, ...] = ()

    @property
    def gpus(self) -> int:
        """Accelerators in the whole pool."""
        return self.nodes * self.gpus_per_node


class Rack(Struct, frozen=True, kw_only=True):
    """A rack whose place or power the file states; other racks follow from pools."""

    id: RackId
    site: SiteId
    nodes: str
    hall: str = ""
    power_kw_limit: float | None = None


class Domain(Struct, frozen=True, kw_only=True):
    """Things that fail together because the file says so.

    `members` are names of racks, pools, tiers or other domains; `nodes` a host list.
    """

    id: DomainId
    kind: DomainKind
    members: tuple[str, ...] = ()
    nodes: str = ""


class Tier(Struct, frozen=True, kw_only=True):
    """A storage tier on its three axes: capacity, throughput, concurrent streams."""

    id: TierId
    site: SiteId
    role: TierRole
    tier_class: str
    shelves: int
    capacity: Bytes
    read_bandwidth: BytesPerSecond
    write_bandwidth: BytesPerSecond
    iops: int
    streams: int
    latency_us: float
    usd_micros_per_tb_month: UsdMicros
    power_w: int
    residency: tuple[str, ...] = ()
    defaulted: tuple[str, ...] = ()


class Team(Struct, frozen=True, kw_only=True):
    """Who shares the fleet; teams form a tree through `parent`."""

    id: TeamId
    parent: TeamId | None = None
    weight: float = 1.0
    quota_gpus: dict[str, int] = {}
    residency: tuple[str, ...] = ()


class Expectation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the fleet is meant to carry; checks that need a workload use it."""

    model: Name | None = None
    gpus: Annotated[int, Meta(ge=1, le=100_000_000)] | None = None
    nodes: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None


class LintPolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which warnings to leave out, and the house's own thresholds."""

    ignore: tuple[Name, ...] = ()
    host_memory_ratio: Annotated[float, Meta(gt=0, le=100)] = 2.0
    host_memory_gib: Annotated[float, Meta(gt=0, le=1_000_000)] = 256.0
    nvme_gb_per_s_per_drive: Annotated[float, Meta(gt=0, le=1_000)] = 3.0
    domain_share: Annotated[float, Meta(gt=0, le=1)] = 0.5


class FleetSpec(Struct, frozen=True, kw_only=True):
    """A whole fleet, every default filled in."""

    name: str
    sites: tuple[Site, ...]
    pools: tuple[Pool, ...]
    fabrics: tuple[Fabric, ...] = ()
    links: tuple[SiteLink, ...] = ()
    racks: tuple[Rack, ...] = ()
    domains: tuple[Domain, ...] = ()
    tiers: tuple[Tier, ...] = ()
    teams: tuple[Team, ...] = ()
    expects: Expectation = Expectation()
    lint: LintPolicy = LintPolicy()

    @property
    def nodes(self) -> int:
        """Nodes in all pools."""
        return sum(pool.nodes for pool in self.pools)

    @property
    def gpus(self) -> int:
        """Accelerators in all pools."""
        return sum(pool.gpus for pool in self.pools)
