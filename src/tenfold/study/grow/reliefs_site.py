"""What relieves the building: more power, other racks, switches and floor.

Nobody publishes what these cost, and it differs from place to place: their price is not known.
"""

from collections.abc import Callable
from math import ceil

import numpy as np
from msgspec.structs import replace

from tenfold.model.fleet_spec import FleetSpec
from tenfold.physics.growth.law import Law
from tenfold.report.figures import count
from tenfold.study.grow.laws_site import rack_class
from tenfold.study.grow.relief import NEARLY, Relief, lead_weeks, taken, up
from tenfold.study.grow.state import State, widen


def _site_power(law: Law, state: State, dose: float) -> list[Relief]:
    site = next(one for one in state.spec.sites if f"site {one.id}" == law.resource)
    wanted = up((site.power_kw_limit or 0.0) * dose, 10)

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
    new = carrier.rack_kw_max if law.layer == "cooling" else float(up(limit * dose, 1))
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
        more = up((used + free) * (dose - 1), 1)

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
    more = max(1, up(places * (dose - 1), 1))

    def apply(now: State) -> State:
        facility = replace(now.grow.facility, floor_racks=places + more)
        return replace(taken(now, law.layer), grow=replace(now.grow, facility=facility))

    text = f"room for {count(more, 'rack')} more, or another site"
    return [Relief("floor", text, None, lead_weeks(state, "floor"), apply)]


def _power_budget(law: Law, state: State, dose: float) -> list[Relief]:
    today = state.grow.limits.kw_most or 0.0
    wanted = up(today * dose, 10)

    def apply(now: State) -> State:
        limits = replace(now.grow.limits, kw_most=float(wanted))
        return replace(taken(now, law.layer), grow=replace(now.grow, limits=limits))

    text = f"allow all sites together {wanted:,} kW, {today:,.0f} today"
    return [Relief("power-budget", text, None, lead_weeks(state, "site-power"), apply)]


SITE_RELIEFS: dict[str, Callable[[Law, State, float], list[Relief]]] = {
    "site-power": _site_power,
    "power-budget": _power_budget,
    "rack-power": _racks,
    "cooling": _racks,
    "switch-ports": _ports,
    "floor": _floor,
}
