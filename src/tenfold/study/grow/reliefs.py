"""What relieves a layer, in doses: enough for the layer to stand a target, and what that costs.

A relief is a change of the fleet, so all other laws feel it: shelves more draw power. Costs
are those that the fleet file or a fact states; one that nobody states stays unknown, and
such a relief is tried after all that have a price.
"""

from collections.abc import Callable
from math import ceil, isfinite

import numpy as np
from msgspec.structs import replace

from tenfold.model.fleet_spec import FleetSpec, Tier
from tenfold.model.units import Bytes, BytesPerSecond, usd
from tenfold.physics.growth.law import Law
from tenfold.report.figures import count
from tenfold.study.grow.laws_site import rack_class
from tenfold.study.grow.laws_storage import ASYNC_SAVES
from tenfold.study.grow.relief import Relief, lead_weeks, taken
from tenfold.study.grow.reliefs_work import work_reliefs
from tenfold.study.grow.state import State, widen

DOSE_MOST = 1_000.0
"""A layer that would need more than this many times its capacity is not relieved by more."""
WORK = ("queue", "fragmentation")
"""Layers of which only runs can tell."""
NEARLY = 1 - 1e-9
"""Keeps whole numbers whole that arithmetic has brought just above themselves."""


def reliefs_for(law: Law, state: State, target: float) -> list[Relief]:
    """Return what would let a layer stand `target`: free first, then priced, then unpriced."""
    dose = law.strain(target)
    if law.layer in WORK and dose > 1:
        return sorted(work_reliefs(law, state, target), key=_price_order)
    make = _RELIEFS.get(law.layer)
    if make is None or not isfinite(dose) or not 1 < dose <= DOSE_MOST:
        return []
    return sorted(make(law, state, dose), key=_price_order)


def _price_order(relief: Relief) -> tuple[bool, float]:
    return relief.usd_per_month is None, relief.usd_per_month or 0.0


def _site_power(law: Law, state: State, dose: float) -> list[Relief]:
    site = next(one for one in state.spec.sites if f"site {one.id}" == law.resource)
    wanted = _up((site.power_kw_limit or 0.0) * dose, 10)

    def apply(now: State) -> State:
        sites = tuple(
            replace(one, power_kw_limit=float(wanted)) if one.id == site.id else one
            for one in now.spec.sites
        )
        return taken(now, "site-power", replace(now.spec, sites=sites))

    text = f"feed site {site.id} with {wanted:,} kW, {site.power_kw_limit:,.0f} today"
    return [Relief("site-power", text, None, lead_weeks(state, "site-power"), apply)]


def _racks(law: Law, state: State, dose: float) -> list[Relief]:
    site, limit, racks = _rack_class(law, state)
    made = [_more_racks(law, state, dose, racks)]
    wanted = limit * dose * NEARLY
    classes = sorted(state.inputs.fleet.catalogue.cooling, key=lambda one: one.rack_kw_max)
    carrier = next((one for one in classes if one.rack_kw_max >= wanted), None)
    if carrier is None:
        return made
    new = carrier.rack_kw_max if law.layer == "cooling" else float(_up(limit * dose, 1))
    renamed = law.resource.replace(f"at {limit:g} kW", f"at {new:g} kW")
    text = f"{new:g} kW a rack at {site} under {carrier.name} cooling, {limit:g} today"

    def apply(now: State) -> State:
        # Racks that were added before are still there under the new limit.
        wide = now.widening(law.key)
        spec = _with_rack_limit(now.spec, site, limit, new)
        return widen(taken(now, "rack-power", spec), f"{law.layer}:{renamed}", wide)

    return [Relief("rack-power", text, None, lead_weeks(state, "rack-power"), apply), *made]


def _rack_class(law: Law, state: State) -> tuple[str, float, int]:
    """Return the site, the limit and the number of the racks that a law is about."""
    layout = state.layout
    held = np.bincount(layout.rack_of, minlength=len(layout.racks))
    ours = [
        rack
        for rack, nodes in zip(layout.racks, held.tolist(), strict=True)
        if nodes and rack_class(state.spec.sites[rack.site], rack.power_kw_limit) == law.resource
    ]
    return state.spec.sites[ours[0].site].id, ours[0].power_kw_limit, len(ours)


def _with_rack_limit(spec: FleetSpec, site_id: str, old: float, new: float) -> FleetSpec:
    sites = tuple(
        replace(one, rack_kw_limit=new) if (one.id, one.rack_kw_limit) == (site_id, old) else one
        for one in spec.sites
    )
    racks = tuple(
        replace(one, power_kw_limit=new)
        if (one.site, one.power_kw_limit) == (site_id, old)
        else one
        for one in spec.racks
    )
    return replace(spec, sites=sites, racks=racks)


def _more_racks(law: Law, state: State, dose: float, racks: int) -> Relief:
    there = racks * state.widening(law.key)
    more = max(1, ceil(there * (dose - 1) * NEARLY))

    def apply(now: State) -> State:
        return widen(taken(now, "more-racks"), law.key, 1 + more / there)

    text = f"spread the nodes over {count(more, 'rack')} more than the {there:,.0f} there are"
    return Relief("more-racks", text, None, lead_weeks(state, "rack"), apply)


def _ports(law: Law, state: State, dose: float) -> list[Relief]:
    weeks = lead_weeks(state, "switch")
    free = state.grow.facility.ports_free
    if free is not None:
        used = sum(pool.nodes * pool.nics_per_node for pool in state.spec.pools)
        more = _up((used + free) * (dose - 1), 1)

        def plug(now: State) -> State:
            facility = replace(now.grow.facility, ports_free=free + more)
            return replace(taken(now, "switches"), grow=replace(now.grow, facility=facility))

        return [Relief("switches", f"switches with {more:,} ports more", None, weeks, plug)]
    fabric = next(one for one in state.spec.fabrics if f"fabric {one.id}" == law.resource)
    times = max(2, fabric.switch_ports // 2)

    def layer(now: State) -> State:
        return widen(taken(now, "switch-layer"), law.key, float(times))

    text = f"another layer of switches above {fabric.id}: {times} times the nodes"
    return [Relief("switch-layer", text, None, weeks, layer)]


def _floor(law: Law, state: State, dose: float) -> list[Relief]:
    places = state.grow.facility.floor_racks or 0
    more = max(1, _up(places * (dose - 1), 1))

    def apply(now: State) -> State:
        facility = replace(now.grow.facility, floor_racks=places + more)
        return replace(taken(now, law.layer), grow=replace(now.grow, facility=facility))

    text = f"room for {count(more, 'rack')} more, or another site"
    return [Relief("floor", text, None, lead_weeks(state, "floor"), apply)]


def _shelves(law: Law, state: State, dose: float) -> list[Relief]:
    tier = next(one for one in state.spec.tiers if f"tier {one.id}" == law.resource)
    more = max(1, ceil(tier.shelves * (dose - 1) * NEARLY))
    bought = _with_shelves(tier, tier.shelves + more)
    added_tb = (bought.capacity - tier.capacity) / 1e12
    price = added_tb * usd(tier.usd_micros_per_tb_month)

    def apply(now: State) -> State:
        tiers = tuple(bought if one.id == tier.id else one for one in now.spec.tiers)
        return taken(now, "shelves", replace(now.spec, tiers=tiers))

    text = f"{count(more, 'shelf').replace('shelfs', 'shelves')} more on tier {tier.id}"
    known = price if tier.usd_micros_per_tb_month else None
    return [Relief("shelves", text, known, lead_weeks(state, "storage"), apply)]


def _with_shelves(tier: Tier, shelves: int) -> Tier:
    """Return a tier of more shelves: capacity, rates, streams and power grow with them."""
    by = shelves / max(1, tier.shelves)
    return replace(
        tier,
        shelves=shelves,
        capacity=Bytes(round(tier.capacity * by)),
        read_bandwidth=BytesPerSecond(round(tier.read_bandwidth * by)),
        write_bandwidth=BytesPerSecond(round(tier.write_bandwidth * by)),
        iops=round(tier.iops * by),
        streams=round(tier.streams * by),
        power_w=round(tier.power_w * by),
    )


def _saves(law: Law, state: State, dose: float) -> list[Relief]:
    """Saves beside training are free; more shelves shorten what is left."""
    made = _shelves(law, state, dose)
    if ASYNC_SAVES in state.reliefs:
        return made

    def apply(now: State) -> State:
        return taken(now, ASYNC_SAVES)

    return [Relief(ASYNC_SAVES, "save beside training, not between steps", 0.0, 0.0, apply), *made]


def _up(value: float, step: int) -> int:
    """Return a value rounded up to whole steps."""
    return ceil(value / step * NEARLY) * step


_RELIEFS: dict[str, Callable[[Law, State, float], list[Relief]]] = {
    "site-power": _site_power,
    "rack-power": _racks,
    "cooling": _racks,
    "switch-ports": _ports,
    "floor": _floor,
    "storage-capacity": _shelves,
    "storage-read": _shelves,
    "storage-streams": _shelves,
    "checkpoint-burst": _shelves,
    "checkpoint-saves": _saves,
}
