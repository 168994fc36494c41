"""Fill in what a fleet file leaves out, from the node shape and then from the facts.

Every value filled in here is listed in `defaulted`, so that `fleet show` can tell stated
values from assumed ones.
"""

from collections.abc import Iterable
from statistics import median

from tenfold.files.fleet.rows import PoolRow, PriceRow, SiteRow, TierRow
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet import hostlist
from tenfold.model.fleet.facility import CoolingClass
from tenfold.model.fleet.hardware import Accelerator, NodeShape
from tenfold.model.fleet.spec import Pool, Price, Site, Tier
from tenfold.model.ids import FabricId, PoolId, SiteId, TierId
from tenfold.model.units import (
    HOURS_PER_YEAR,
    Bytes,
    bytes_from_gib,
    bytes_per_second_from_gb,
    bytes_per_second_from_gbit,
    usd_micros,
)
from tenfold.physics.network import ServerPorts, server_ports

GENERIC_GPU_NODE = "generic-gpu"
GENERIC_CPU_NODE = "generic-cpu"
DEFAULT_ENERGY = "default"
TYPICAL_NODES_PER_RACK = 4
"""Nodes in a typical rack of GPU servers (an assumption)."""


def fill_site(
    row: SiteRow | None, name: str, pools: Iterable[PoolRow], catalogue: Catalogue
) -> Site:
    """Return a site with its power, cooling and energy values."""
    row = row or SiteRow(name=name)
    needed_kw = max((_rack_kw(pool, catalogue) for pool in pools), default=0.0)
    cooling = (
        _least_cooling(needed_kw, catalogue)
        if row.cooling is None
        else catalogue.cooling.get(row.cooling)
    )
    energy = catalogue.energy.get(DEFAULT_ENERGY)
    return Site(
        id=SiteId(name),
        region=row.region,
        owner=row.owner,
        trust=row.trust,
        residency=tuple(row.residency),
        certifications=tuple(row.certifications),
        power_kw_limit=row.power_kw,
        rack_kw_limit=cooling.rack_kw_max if row.rack_kw is None else row.rack_kw,
        cooling="" if row.cooling is None else cooling.name,
        racks_per_pdu=row.racks_per_pdu,
        racks_per_cooling_zone=row.racks_per_cooling_zone,
        pue=cooling.pue if row.pue is None else row.pue,
        usd_per_kwh=energy.usd_per_kwh if row.usd_per_kwh is None else row.usd_per_kwh,
        co2_g_per_kwh=energy.co2_g_per_kwh if row.co2_g_per_kwh is None else row.co2_g_per_kwh,
    )


def _least_cooling(needed_kw: float, catalogue: Catalogue) -> CoolingClass:
    """Return the simplest cooling that supports racks of this power."""
    by_power = sorted(catalogue.cooling, key=lambda cooling: cooling.rack_kw_max)
    return next((one for one in by_power if one.rack_kw_max >= needed_kw), by_power[-1])


def _rack_kw(row: PoolRow, catalogue: Catalogue) -> float:
    """Return the power of a typical rack of these nodes, or of one scale-up domain."""
    part, gpus, typical, host = _hardware(row, catalogue)
    node_kw = row.power_kw_per_node or _power_kw(host, typical, part, gpus, catalogue)
    if typical is not None and typical.scaleup_gpus and gpus and typical.scaleup_gpus > gpus:
        return node_kw * typical.scaleup_gpus / gpus
    return node_kw * (row.nodes_per_rack or TYPICAL_NODES_PER_RACK)


def fill_pool(row: PoolRow, names: str, site: Site, fabric: FabricId, catalogue: Catalogue) -> Pool:
    """Return a pool with all values filled in, stated or assumed."""
    part, gpus, typical, host = _hardware(row, catalogue)
    per_gpu = gpus / host.gpus if gpus and host.gpus else 1.0
    power_kw = row.power_kw_per_node or _power_kw(host, typical, part, gpus, catalogue)
    lanes = row.pcie_lanes if row.pcie_lanes is not None else host.pcie_lanes
    ports = _ports(part, gpus, typical, host, catalogue)
    return Pool(
        id=PoolId(row.name),
        site=site.id,
        fabric=fabric,
        accelerator=(part.name if part else row.accelerator) if gpus else None,
        shape=None if typical is None else typical.name,
        nodes=row.nodes or len(hostlist.expand(names)),
        node_names=names,
        gpus_per_node=gpus,
        cpus_per_node=row.cpus_per_node or max(1, round(host.cpus * per_gpu)),
        memory_bytes_per_node=bytes_from_gib(row.memory_gib_per_node or host.memory_gib * per_gpu),
        scaleup_gpus=row.scaleup_gpus or _scaleup_gpus(typical, part, gpus),
        nics_per_node=row.nics_per_node or ports.nics,
        nic_bandwidth=bytes_per_second_from_gbit(row.nic_gbps or ports.gbps),
        gpudirect=ports.gpudirect if row.gpudirect is None else row.gpudirect,
        pcie_lanes=lanes,
        pcie_switched=host.pcie_switched if row.pcie_switched is None else row.pcie_switched,
        nvme_drives=_stated(row.nvme_drives_per_node, host.nvme_drives),
        nvme_bandwidth=bytes_per_second_from_gb(row.nvme_gb_per_s_per_node or host.nvme_gb_per_s),
        power_w_per_node=round(power_kw * 1000),
        nodes_per_rack=row.nodes_per_rack or _nodes_per_rack(typical, gpus, power_kw, site),
        use=row.use,
        residency=tuple(row.residency) or site.residency,
        certifications=tuple(row.certifications) or site.certifications,
        labels=dict(sorted(row.labels.items())),
        price=_price(row.price, part, gpus, catalogue),
        defaulted=_defaulted(row),
    )


def _hardware(
    row: PoolRow, catalogue: Catalogue
) -> tuple[Accelerator | None, int, NodeShape | None, NodeShape]:
    """Return the accelerator, its count per node, the typical node shape and a host."""
    stated = None if row.shape is None else catalogue.nodes.get(row.shape)
    wanted = row.accelerator or (stated.accelerator if stated else None)
    part = None if wanted is None else catalogue.accelerators.find(wanted)
    gpus = _gpus_per_node(row, stated, part)
    typical = stated or (part and catalogue.default_shape(part.name, gpus))
    host = typical or catalogue.nodes.get(GENERIC_GPU_NODE if gpus else GENERIC_CPU_NODE)
    return part, gpus, typical, host


def _ports(
    part: Accelerator | None,
    gpus: int,
    typical: NodeShape | None,
    host: NodeShape,
    catalogue: Catalogue,
) -> ServerPorts:
    """Return the NICs of a node: those of its shape, or of servers with such accelerators."""
    if typical is None and part is not None and gpus:
        return server_ports(part, gpus, catalogue)
    share = gpus / host.gpus if gpus and host.gpus else 1.0
    nics = max(1, round(host.nics * share))
    return ServerPorts(gpus=gpus, nics=nics, gbps=host.nic_gbps, gpudirect=host.gpudirect)


def _defaulted(row: PoolRow) -> tuple[str, ...]:
    keys = (
        "cpus_per_node",
        "gpudirect",
        "memory_gib_per_node",
        "nic_gbps",
        "nics_per_node",
        "nodes_per_rack",
        "nvme_drives_per_node",
        "power_kw_per_node",
        "price",
        "scaleup_gpus",
    )
    return tuple(key for key in keys if getattr(row, key) is None)


def _stated(value: int | None, default: int) -> int:
    return default if value is None else value


def _gpus_per_node(row: PoolRow, shape: NodeShape | None, part: Accelerator | None) -> int:
    if row.gpus_per_node is not None:
        return row.gpus_per_node
    if shape is not None:
        return shape.gpus
    return 1 if part is not None and part.kind == "edge" else 8


def _scaleup_gpus(shape: NodeShape | None, part: Accelerator | None, gpus: int) -> int:
    if shape is not None and shape.scaleup_gpus:
        return shape.scaleup_gpus
    return max(1, min(part.scaleup_gpus, gpus)) if part and gpus else 1


def _power_kw(
    host: NodeShape,
    typical: NodeShape | None,
    part: Accelerator | None,
    gpus: int,
    catalogue: Catalogue,
) -> float:
    if typical is not None and typical.power_kw:
        return typical.power_kw
    if part is not None and part.tdp_w and gpus:
        overhead = catalogue.energy.get(DEFAULT_ENERGY).server_overhead
        return gpus * part.tdp_w * overhead / 1000
    generic = host.power_kw or 1.0
    return generic * gpus / host.gpus if gpus and host.gpus else generic


def _nodes_per_rack(shape: NodeShape | None, gpus: int, power_kw: float, site: Site) -> int:
    if shape is not None and shape.scaleup_gpus and shape.scaleup_gpus > gpus > 0:
        return shape.scaleup_gpus // gpus
    return max(1, int(site.rack_kw_limit / power_kw))


def _price(
    row: PriceRow | None, part: Accelerator | None, gpus: int, catalogue: Catalogue
) -> Price | None:
    """Return the stated price, or the median on-demand price over providers."""
    units = gpus or 1
    if row is not None and row.usd_per_gpu_hour is not None:
        return Price(
            kind=row.kind, usd_micros_per_hour=usd_micros(row.usd_per_gpu_hour), basis="stated"
        )
    if row is not None and row.usd_per_node_hour is not None:
        hourly = usd_micros(row.usd_per_node_hour / units)
        return Price(kind=row.kind, usd_micros_per_hour=hourly, basis="stated")
    if row is not None and row.capex_usd_per_node is not None:
        hours = row.lifetime_years * HOURS_PER_YEAR
        hourly = usd_micros(row.capex_usd_per_node / hours / units)
        return Price(kind=row.kind, usd_micros_per_hour=hourly, basis="capex")
    kind = row.kind if row is not None and row.kind == "spot" else "on-demand"
    facts = [] if part is None else catalogue.prices_of(part.name, kind)
    if row is not None and row.provider is not None:
        facts = [fact for fact in facts if fact.provider == row.provider]
    if not facts:
        return None
    basis = facts[0].name if len(facts) == 1 else f"median of {len(facts)} providers"
    middle = usd_micros(median(fact.usd_per_gpu_hour for fact in facts))
    return Price(kind=row.kind if row else kind, usd_micros_per_hour=middle, basis=basis)


def fill_tier(row: TierRow, site: SiteId, catalogue: Catalogue) -> Tier:
    """Return a tier with stated values, or those of its class times the number of shelves."""
    preset = catalogue.tiers.get(row.tier_class)
    shelves = row.shelves
    axes = ("capacity_tb", "read_gb_per_s", "write_gb_per_s", "iops", "streams", "latency_us")
    return Tier(
        id=TierId(row.name),
        site=site,
        role=preset.role,
        tier_class=preset.name,
        shelves=shelves,
        capacity=Bytes(round((row.capacity_tb or preset.capacity_tb * shelves) * 1e12)),
        read_bandwidth=bytes_per_second_from_gb(
            row.read_gb_per_s or preset.read_gb_per_s * shelves
        ),
        write_bandwidth=bytes_per_second_from_gb(
            row.write_gb_per_s or preset.write_gb_per_s * shelves
        ),
        iops=round(row.iops or preset.iops * shelves),
        streams=row.streams or preset.streams * shelves,
        latency_us=row.latency_us or preset.latency_us,
        usd_micros_per_tb_month=usd_micros(
            preset.usd_per_tb_month if row.usd_per_tb_month is None else row.usd_per_tb_month
        ),
        power_w=round((preset.power_kw or 0.0) * 1000 * shelves),
        residency=tuple(row.residency),
        defaulted=tuple(axis for axis in axes if getattr(row, axis) is None),
    )
