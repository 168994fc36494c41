"""What a fleet adds up to: GPUs, arithmetic, memory, network, power and money."""

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet.spec import FleetSpec, Pool
from tenfold.model.units import HOURS_PER_MONTH, UsdMicros, usd_micros
from tenfold.physics.fabric import FabricPlan, bisection
from tenfold.physics.layout import Layout


class PoolTotals(Struct, frozen=True, kw_only=True):
    """The sums of one pool."""

    pool: str
    accelerator: str | None
    nodes: int
    gpus: int
    pflops: float
    memory_bytes: int
    power_kw: float
    usd_micros_per_hour: UsdMicros
    price_basis: str


class FabricTotals(Struct, frozen=True, kw_only=True):
    """The bisection bandwidth of one fabric."""

    fabric: str
    kind: str
    nodes: int
    leaves: int
    pods: int
    bisection_bytes_per_s: float
    injection_bytes_per_s: float


class FleetTotals(Struct, frozen=True, kw_only=True):
    """The sums of a fleet. `power_kw` is the machines', `facility_kw` includes the PUE."""

    nodes: int
    gpus: int
    racks: int
    pflops: float
    memory_bytes: int
    power_kw: float
    facility_kw: float
    usd_micros_per_hour: UsdMicros
    energy_usd_micros_per_hour: UsdMicros
    storage_usd_micros_per_hour: UsdMicros
    pools: tuple[PoolTotals, ...]
    fabrics: tuple[FabricTotals, ...]
    unpriced: tuple[str, ...]
    """Pools without a price: they are in no sum of money."""


def pool_totals(pool: Pool, catalogue: Catalogue) -> PoolTotals:
    """Return the sums of one pool."""
    part = None if pool.accelerator is None else catalogue.accelerators.find(pool.accelerator)
    units = pool.gpus or pool.nodes
    hourly = 0 if pool.price is None else pool.price.usd_micros_per_hour * units
    return PoolTotals(
        pool=pool.id,
        accelerator=pool.accelerator,
        nodes=pool.nodes,
        gpus=pool.gpus,
        pflops=pool.gpus * (part.training_tflops if part else 0.0) / 1000,
        memory_bytes=pool.gpus * (part.memory_bytes if part else 0),
        power_kw=pool.nodes * pool.power_w_per_node / 1000,
        usd_micros_per_hour=UsdMicros(hourly),
        price_basis="" if pool.price is None else pool.price.basis,
    )


def fleet_totals(layout: Layout, catalogue: Catalogue) -> FleetTotals:
    """Return the sums of a fleet, pool by pool and fabric by fabric."""
    spec = layout.spec
    pools = tuple(pool_totals(pool, catalogue) for pool in spec.pools)
    facility_kw, energy_usd = _facility(spec, pools)
    tier_kw = sum(tier.power_w for tier in spec.tiers) / 1000
    storage = sum(tier.usd_micros_per_tb_month * tier.capacity / 1e12 for tier in spec.tiers)
    return FleetTotals(
        nodes=spec.nodes,
        gpus=spec.gpus,
        racks=len(layout.racks),
        pflops=sum(pool.pflops for pool in pools),
        memory_bytes=sum(pool.memory_bytes for pool in pools),
        power_kw=sum(pool.power_kw for pool in pools) + tier_kw,
        facility_kw=facility_kw,
        usd_micros_per_hour=UsdMicros(sum(pool.usd_micros_per_hour for pool in pools)),
        energy_usd_micros_per_hour=usd_micros(energy_usd),
        storage_usd_micros_per_hour=UsdMicros(round(storage / HOURS_PER_MONTH)),
        pools=pools,
        fabrics=tuple(
            FabricTotals(
                fabric=plan.name,
                kind=plan.kind,
                nodes=plan.nodes,
                leaves=plan.leaves,
                pods=plan.pods,
                bisection_bytes_per_s=bisection(plan),
                injection_bytes_per_s=float(np.sum(plan.leaf_hosts)),
            )
            for plan in (_among_gpus(layout, place) for place in range(len(layout.fabrics)))
        ),
        unpriced=tuple(pool.id for pool in spec.pools if pool.price is None),
    )


def _among_gpus(layout: Layout, place: int) -> FabricPlan:
    """Return a fabric with its GPU nodes only; CPU nodes would distort its bandwidth."""
    plan = layout.fabrics[place]
    pools = layout.spec.pools
    gpus = layout.per_node([float(pool.gpus_per_node) for pool in pools])
    nodes = np.flatnonzero((layout.fabric_of == place) & (gpus > 0))
    if len(nodes) in (0, plan.nodes):
        return plan
    rate = layout.per_node([float(pool.nics_per_node * pool.nic_bandwidth) for pool in pools])
    first = int(layout.leaf_of[layout.fabric_of == place].min())
    leaves = layout.leaf_of[nodes] - first
    hosts = np.bincount(leaves, weights=rate[nodes], minlength=plan.leaves).astype(np.float64)
    used = np.flatnonzero(hosts)
    return replace(plan, nodes=len(nodes), leaf_hosts=hosts[used], leaf_up=plan.leaf_up[used])


def _facility(spec: FleetSpec, pools: tuple[PoolTotals, ...]) -> tuple[float, float]:
    """Return facility kW, and what energy costs an hour where the fleet is owned.

    Rented and reserved capacity has its energy in its price, and so has storage.
    """
    sites = {site.id: site for site in spec.sites}
    facility_kw = 0.0
    energy_usd = 0.0
    for pool, sums in zip(spec.pools, pools, strict=True):
        site = sites[pool.site]
        facility_kw += sums.power_kw * site.pue
        if pool.price is not None and pool.price.kind == "owned":
            energy_usd += sums.power_kw * site.pue * site.usd_per_kwh
    for tier in spec.tiers:
        site = sites[tier.site]
        facility_kw += tier.power_w / 1000 * site.pue
    return facility_kw, energy_usd
