"""What a simulated run costs: dollars for holding the fleet, kilowatt-hours for running it.

GPUs are paid for from the first submission to the last end, idle or not, so a policy that
is done sooner is cheaper. Energy stands on its own, and is part of the dollars only where a
pool is owned: rents include it.
"""

from msgspec import Struct

from tenfold.model.fleet.facility import IDLE_POWER_SHARE
from tenfold.model.fleet.spec import FleetSpec
from tenfold.model.units import usd, usd_micros
from tenfold.sim.measure.meters import Summary

OWN_FIGURES = ("stated", "capex")
"""Bases of a price that the fleet file itself gives."""


class Bill(Struct, frozen=True, kw_only=True):
    """What a run takes. Dollars are None where no pool has a price."""

    usd: float | None
    usd_per_gpu_hour: float | None
    """Dollars for each GPU-hour of progress."""
    kwh: float
    """At the building's meter, cooling included."""
    assumed: tuple[str, ...]


def bill(spec: FleetSpec, summary: Summary) -> Bill:
    """Return what a fleet costs for the length of a run."""
    hours = summary.makespan_s / 3600
    busy = min(1.0, summary.gpu_utilization)
    sites = {site.id: site for site in spec.sites}
    micros, kwh, priced = 0, 0.0, False
    for pool in spec.pools:
        site = sites[pool.site]
        load = busy if pool.gpus else 1.0
        draw = IDLE_POWER_SHARE + (1 - IDLE_POWER_SHARE) * load
        energy = pool.nodes * pool.power_w_per_node / 1000 * site.pue * hours * draw
        kwh += energy
        if pool.price is None:
            continue
        priced = True
        micros += round(pool.price.usd_micros_per_hour * (pool.gpus or pool.nodes) * hours)
        if pool.price.kind == "owned":
            micros += usd_micros(energy * site.usd_per_kwh)
    progress = summary.gpu_hours - summary.gpu_hours_lost
    return Bill(
        usd=usd(micros) if priced else None,
        usd_per_gpu_hour=usd(micros) / progress if priced and progress > 0 else None,
        kwh=kwh,
        assumed=_assumed(spec),
    )


def _assumed(spec: FleetSpec) -> tuple[str, ...]:
    """Return what the figures rest on."""
    said = [
        f"an idle node draws {IDLE_POWER_SHARE:.0%} of its power, "
        "a node with all GPUs allocated 100%"
    ]
    if len(spec.pools) > 1:
        said.append("energy assumes that all pools are equally busy")
    for pool in spec.pools:
        if pool.price is not None and pool.price.basis not in OWN_FIGURES:
            hourly = usd(pool.price.usd_micros_per_hour)
            basis = pool.price.basis
            said.append(f"pool `{pool.id}` has no price: assumed ${hourly:,.2f} per hour ({basis})")
    without = [f"`{pool.id}`" for pool in spec.pools if pool.price is None]
    if without and len(without) < len(spec.pools):
        said.append(f"pools without a price count as free: {', '.join(without)}")
    return tuple(said)
