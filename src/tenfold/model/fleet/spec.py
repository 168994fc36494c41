"""The description of a fleet, as written in a fleet file.

This is the inventory, not the running state (that is `Fleet`). A pool names its nodes as a
host list (`n[1-4]`), so a hundred thousand nodes take a few records.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from tenfold.model.fleet.facility import PriceKind
from tenfold.model.fleet.storage import TierRole
from tenfold.model.ids import (
    DomainId,
    FabricId,
    PoolId,
    RackId,
    SiteId,
    TeamId,
    TierId,
)
from tenfold.model.market.offer import Trust
from tenfold.model.strings import Name
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
"""Racks that the file does not declare are named `<pool>-rack-1`, `<pool>-rack-2` ..."""
PoolUse = Literal["any", "production", "experiments"]


class Site(Struct, frozen=True, kw_only=True):
    """A data centre or region: its power, energy price, residency and certifications."""

    id: SiteId
    region: str = ""
    owner: str = ""
    """Whose hardware it is, where not yours: its use is metered and owed to them."""
    trust: Trust | None = None
    """How far its operator is trusted; a job may require a level."""
    residency: tuple[str, ...] = ()
    certifications: tuple[str, ...] = ()
    power_kw_limit: float | None = None
    rack_kw_limit: float
    cooling: str = ""
    """The cooling class that the file states; empty if it states none."""
    racks_per_pdu: int | None = None
    racks_per_cooling_zone: int | None = None
    pue: float
    usd_per_kwh: float
    co2_g_per_kwh: float


class SiteLink(Struct, frozen=True, kw_only=True):
    """A link between two sites; both directions are equal."""

    a: SiteId
    b: SiteId
    bandwidth: BytesPerSecond
    latency_us: float
    egress_usd_micros_per_gb: UsdMicros


class Fabric(Struct, frozen=True, kw_only=True):
    """The network that connects the nodes of a site.

    `oversubscription` is the downlink over the uplink bandwidth of a leaf (in a dragonfly: of
    a group); `core_oversubscription` is the same for a pod of leaves. 1.0 is non-blocking.
    Without `adaptive_routing`, flows are hashed to uplinks and some uplinks get too many.
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
    adaptive_routing: bool = True
    defaulted: bool = False


class Price(Struct, frozen=True, kw_only=True):
    """The price of one GPU-hour (of one node-hour in a CPU pool)."""

    kind: PriceKind
    usd_micros_per_hour: UsdMicros
    basis: str
    """The source of the price: `stated`, `capex` or the name of a price fact."""


class Pool(Struct, frozen=True, kw_only=True):
    """Identical nodes in one site; `defaulted` lists the keys that the file does not state."""

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
        """GPUs in the pool."""
        return self.nodes * self.gpus_per_node


class Rack(Struct, frozen=True, kw_only=True):
    """A rack declared in the file; other racks are derived from the pools."""

    id: RackId
    site: SiteId
    nodes: str
    hall: str = ""
    power_kw_limit: float | None = None


class Domain(Struct, frozen=True, kw_only=True):
    """A failure domain declared in the file: things that fail together.

    `members` names racks, pools, tiers or other domains; `nodes` is a host list.
    """

    id: DomainId
    kind: DomainKind
    members: tuple[str, ...] = ()
    nodes: str = ""


class Tier(Struct, frozen=True, kw_only=True):
    """A storage tier: capacity, throughput and concurrent streams."""

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


class Dataset(Struct, frozen=True, kw_only=True):
    """Data that jobs name: its size, and the sites that hold it."""

    name: str
    bytes: Bytes
    sites: tuple[SiteId, ...]


class Team(Struct, frozen=True, kw_only=True):
    """A team that shares the fleet; teams form a tree through `parent`."""

    id: TeamId
    parent: TeamId | None = None
    weight: float = 1.0
    quota_gpus: dict[str, int] = {}
    residency: tuple[str, ...] = ()


class Expectation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The workload that the fleet is built for; some checks use it."""

    model: Name | None = None
    gpus: Annotated[int, Meta(ge=1, le=100_000_000)] | None = None
    nodes: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None


class LintPolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which warnings to ignore, and thresholds that override the defaults."""

    ignore: tuple[Name, ...] = ()
    host_memory_ratio: Annotated[float, Meta(gt=0, le=100)] = 2.0
    host_memory_gib: Annotated[float, Meta(gt=0, le=1_000_000)] = 256.0
    cpus_per_gpu: Annotated[float, Meta(gt=0, le=1_000)] = 6.0
    nvme_gb_per_s_per_drive: Annotated[float, Meta(gt=0, le=1_000)] = 3.0
    single_shelf_tb: Annotated[float, Meta(gt=0, le=1e9)] = 1000.0
    domain_share: Annotated[float, Meta(gt=0, le=1)] = 0.5


class FleetSpec(Struct, frozen=True, kw_only=True):
    """A complete fleet description, with all defaults filled in."""

    name: str
    sites: tuple[Site, ...]
    pools: tuple[Pool, ...]
    fabrics: tuple[Fabric, ...] = ()
    links: tuple[SiteLink, ...] = ()
    racks: tuple[Rack, ...] = ()
    domains: tuple[Domain, ...] = ()
    tiers: tuple[Tier, ...] = ()
    teams: tuple[Team, ...] = ()
    data: tuple[Dataset, ...] = ()
    expects: Expectation = Expectation()
    lint: LintPolicy = LintPolicy()

    @property
    def nodes(self) -> int:
        """Nodes in all pools."""
        return sum(pool.nodes for pool in self.pools)

    @property
    def gpus(self) -> int:
        """GPUs in all pools."""
        return sum(pool.gpus for pool in self.pools)
