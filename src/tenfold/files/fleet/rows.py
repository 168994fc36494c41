"""The schema of a fleet file: one struct per table, in the units of the file.

Bounds are wide: they catch wrong units (bits for Gbit/s, bytes for GiB), not unusual fleets.
Defaults for missing keys are in `defaults`.
"""

from typing import Annotated

from msgspec import Meta, Struct

from tenfold.model.fleet.facility import PriceKind
from tenfold.model.fleet.spec import DomainKind, Expectation, FabricKind, LintPolicy, PoolUse
from tenfold.model.market.offer import Trust
from tenfold.model.strings import ARGUMENT, Line, Name, PlainName

HostList = Annotated[str, Meta(min_length=1, max_length=20_000_000, pattern=ARGUMENT)]
Nodes = Annotated[int, Meta(ge=1, le=1_000_000)]
Gpus = Annotated[int, Meta(ge=0, le=1_024)]
Small = Annotated[int, Meta(ge=1, le=100_000)]
Gbps = Annotated[float, Meta(gt=0, le=100_000)]
GbPerS = Annotated[float, Meta(gt=0, le=1_000_000)]
Gib = Annotated[float, Meta(gt=0, le=1_000_000)]
Tb = Annotated[float, Meta(gt=0, le=100_000_000)]
Kw = Annotated[float, Meta(gt=0, le=10_000_000)]
NodeKw = Annotated[float, Meta(gt=0, le=2_000)]
Usd = Annotated[float, Meta(ge=0, le=1e12)]
HourlyUsd = Annotated[float, Meta(ge=0, le=10_000)]
Ratio = Annotated[float, Meta(ge=1, le=1_000)]
Micros = Annotated[float, Meta(gt=0, le=1e9)]


class Row(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table in which unknown keys are errors."""


class SiteRow(Row, frozen=True, kw_only=True):
    """`[[site]]`."""

    name: Name
    region: Line = ""
    owner: Line = ""
    trust: Trust | None = None
    residency: list[Name] = []
    certifications: list[Name] = []
    cooling: Name | None = None
    power_kw: Kw | None = None
    rack_kw: NodeKw | None = None
    racks_per_pdu: Small | None = None
    racks_per_cooling_zone: Small | None = None
    pue: Annotated[float, Meta(ge=1, le=5)] | None = None
    usd_per_kwh: Annotated[float, Meta(ge=0, le=10)] | None = None
    co2_g_per_kwh: Annotated[float, Meta(ge=0, le=2_000)] | None = None


class LinkRow(Row, frozen=True, kw_only=True):
    """`[[link]]` between two sites."""

    between: Annotated[list[Name], Meta(min_length=2, max_length=2)]
    gbps: Gbps
    latency_ms: Annotated[float, Meta(ge=0, le=10_000)]
    usd_per_gb: Annotated[float, Meta(ge=0, le=100)] = 0.0


class FabricRow(Row, frozen=True, kw_only=True):
    """`[[fabric]]` of a site."""

    name: Name
    site: Name | None = None
    kind: FabricKind = "fat-tree"
    link: Name | None = None
    switch_ports: Annotated[int, Meta(ge=4, le=4_096)] = 64
    oversubscription: Ratio = 1.0
    core_oversubscription: Ratio = 1.0
    adaptive_routing: bool = True
    nodes_per_leaf: Small | None = None
    leaves_per_pod: Small | None = None
    spines: Small | None = None
    switches_per_group: Small = 8


class PriceRow(Row, frozen=True, kw_only=True):
    """`price = { ... }` of a pool."""

    kind: PriceKind
    usd_per_gpu_hour: HourlyUsd | None = None
    usd_per_node_hour: HourlyUsd | None = None
    capex_usd_per_node: Usd | None = None
    lifetime_years: Annotated[float, Meta(gt=0, le=50)] = 4.0
    provider: Name | None = None


class PoolRow(Row, frozen=True, kw_only=True):
    """`[[pool]]`: identical nodes in one site."""

    name: PlainName
    accelerator: Name | None = None
    nodes: Nodes | None = None
    gpus_per_node: Gpus | None = None
    node_names: HostList | None = None
    shape: Name | None = None
    site: Name | None = None
    fabric: Name | None = None
    cpus_per_node: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    memory_gib_per_node: Gib | None = None
    scaleup_gpus: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    nics_per_node: Annotated[int, Meta(ge=1, le=256)] | None = None
    nic_gbps: Gbps | None = None
    gpudirect: bool | None = None
    pcie_lanes: Annotated[int, Meta(ge=1, le=4_096)] | None = None
    pcie_switched: bool | None = None
    nvme_drives_per_node: Annotated[int, Meta(ge=0, le=1_024)] | None = None
    nvme_gb_per_s_per_node: Annotated[float, Meta(gt=0, le=10_000)] | None = None
    power_kw_per_node: NodeKw | None = None
    nodes_per_rack: Small | None = None
    use: PoolUse = "any"
    residency: list[Name] = []
    certifications: list[Name] = []
    labels: dict[str, str] = {}
    price: PriceRow | None = None


class RackRow(Row, frozen=True, kw_only=True):
    """`[[rack]]`: a rack with a known location or power limit."""

    name: Name
    nodes: HostList | None = None
    site: Name | None = None
    hall: Line = ""
    power_kw: NodeKw | None = None


class NodeRow(Row, frozen=True, kw_only=True):
    """`[[node]]`: one node by name, where a host list does not work."""

    name: Name
    pool: Name
    rack: Name | None = None


class DomainRow(Row, frozen=True, kw_only=True):
    """`[[domain]]`: things that fail together."""

    name: Name
    kind: DomainKind
    members: list[Name] = []
    nodes: HostList | None = None


class TierRow(Row, frozen=True, kw_only=True, rename={"tier_class": "class"}):
    """`[[tier]]` of storage; `class` names a tier of the facts."""

    name: Name
    tier_class: Name
    site: Name | None = None
    shelves: Small = 1
    capacity_tb: Tb | None = None
    read_gb_per_s: GbPerS | None = None
    write_gb_per_s: GbPerS | None = None
    iops: Annotated[float, Meta(gt=0, le=1e12)] | None = None
    streams: Annotated[int, Meta(ge=1, le=1_000_000_000)] | None = None
    latency_us: Micros | None = None
    usd_per_tb_month: HourlyUsd | None = None
    residency: list[Name] = []


class TeamRow(Row, frozen=True, kw_only=True):
    """`[[team]]`: a team that shares the fleet."""

    name: Name
    parent: Name | None = None
    weight: Annotated[float, Meta(gt=0, le=1_000_000)] = 1.0
    quota_gpus: dict[str, Annotated[int, Meta(ge=0, le=100_000_000)]] = {}
    residency: list[Name] = []


class DataRow(Row, frozen=True, kw_only=True):
    """`[[data]]`: data that jobs name, at some of the sites."""

    name: Name
    gb: Annotated[float, Meta(gt=0, le=1e9)]
    sites: Annotated[list[Name], Meta(min_length=1)]


class FleetRows(Struct, frozen=True, kw_only=True):
    """All valid tables of a file, by position."""

    name: str = ""
    site: dict[int, SiteRow] = {}
    link: dict[int, LinkRow] = {}
    fabric: dict[int, FabricRow] = {}
    pool: dict[int, PoolRow] = {}
    rack: dict[int, RackRow] = {}
    node: dict[int, NodeRow] = {}
    domain: dict[int, DomainRow] = {}
    tier: dict[int, TierRow] = {}
    team: dict[int, TeamRow] = {}
    data: dict[int, DataRow] = {}
    expects: Expectation = Expectation()
    lint: LintPolicy = LintPolicy()


SINGLE_TABLES: dict[str, type[Struct]] = {"expects": Expectation, "lint": LintPolicy}
TABLES: dict[str, type[Row]] = {
    "site": SiteRow,
    "link": LinkRow,
    "fabric": FabricRow,
    "pool": PoolRow,
    "rack": RackRow,
    "node": NodeRow,
    "domain": DomainRow,
    "tier": TierRow,
    "team": TeamRow,
    "data": DataRow,
}
