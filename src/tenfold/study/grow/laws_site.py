"""Laws of the building: power of sites and racks, what cooling carries, ports and floor.

All of these grow with the nodes alone. A node more is a node that draws its full power: what
idles today will work when the fleet is full.
"""

import numpy as np

from tenfold.model.fleet_spec import Fabric, Pool, Site
from tenfold.model.growth import Axis, grown_by, moves
from tenfold.physics.fabric import FabricPlan
from tenfold.physics.growth.law import ASSUMED, STATED, SUPPOSED, Evidence, Law, Named, weakest
from tenfold.report.figures import count
from tenfold.study.grow.state import State

PORTS, SITE, BUDGET, RACK, FLOOR = 10, 20, 21, 22, 23
"""Of layers that break at one factor the lowest is named."""


def site_laws(state: State, axis: Axis) -> list[Law]:
    """Return the laws of every site, of its racks, of every fabric's ports, and of the floor."""
    laws = [
        *(_site_power(state, axis, site) for site in state.spec.sites),
        _power_budget(state, axis),
        *_rack_power(state, axis),
        *_ports(state, axis),
        _floor(state, axis),
    ]
    grows = moves(axis, "nodes")
    return [law for law in laws if law is not None and (grows or not law.needs)]


def _site_power(state: State, axis: Axis, site: Site) -> Law | None:
    pools = [pool for pool in state.spec.pools if pool.site == site.id]
    name = Named("site-power", f"site {site.id}", SITE)
    limit = site.power_kw_limit
    if not pools:
        return None
    if limit is None:
        return name.unknown(f"`power_kw` of site `{site.id}`")

    def drawn(factor: float) -> float:
        return _site_kw(state, site, grown_by(axis, "nodes", factor))

    def seen(factor: float) -> str:
        return f"site {site.id} draws {drawn(factor):,.0f} of {limit:,.0f} kW"

    return name.law(drawn, limit, _node_evidence(pools), seen)


def _site_kw(state: State, site: Site, factor: float) -> float:
    """Return what a site draws with so many times its nodes, cooling and storage included."""
    nodes_w = sum(
        pool.nodes * pool.power_w_per_node for pool in state.spec.pools if pool.site == site.id
    )
    tiers_w = sum(tier.power_w for tier in state.spec.tiers if tier.site == site.id)
    return (nodes_w * factor + tiers_w) * site.pue / 1000


def _power_budget(state: State, axis: Axis) -> Law | None:
    limit = state.grow.limits.kw_most
    if limit is None:
        return None

    def drawn(factor: float) -> float:
        by = grown_by(axis, "nodes", factor)
        return sum(_site_kw(state, site, by) for site in state.spec.sites)

    def seen(factor: float) -> str:
        return f"the fleet draws {drawn(factor):,.0f} of the {limit:,.0f} kW allowed"

    name = Named("power-budget", "all sites", BUDGET)
    return name.law(drawn, limit, _node_evidence(state.spec.pools), seen)


def _node_evidence(pools: list[Pool] | tuple[Pool, ...]) -> Evidence:
    supposed = any("power_kw_per_node" in pool.defaulted for pool in pools)
    return SUPPOSED if supposed else STATED


def _rack_power(state: State, axis: Axis) -> list[Law]:
    """Return one law for the racks of a site with one limit, were the nodes put in those racks.

    Racks that the file neither states nor fills are a guess made from their power: a factor
    from that would only give the guess back.
    """
    spec, layout = state.spec, state.layout
    if not spec.racks and any("nodes_per_rack" in pool.defaulted for pool in spec.pools):
        return [Named("rack-power", "racks", RACK).unknown("racks, or `nodes_per_rack` of pools")]
    kw = layout.per_node([pool.power_w_per_node / 1000 for pool in spec.pools])
    drawn = np.bincount(layout.rack_of, weights=kw, minlength=len(layout.racks))
    classes: dict[tuple[int, float], list[int]] = {}
    for place, rack in enumerate(layout.racks):
        if drawn[place] > 0:
            classes.setdefault((rack.site, rack.power_kw_limit), []).append(place)
    return [
        _rack_class(state, axis, spec.sites[site], limit, [float(drawn[at]) for at in places])
        for (site, limit), places in classes.items()
    ]


def rack_class(site: Site, limit: float) -> str:
    """Return the name of the racks of a site that may draw as much as each other."""
    return f"racks of {site.id} at {limit:g} kW"


def _rack_class(state: State, axis: Axis, site: Site, limit: float, kw: list[float]) -> Law:
    """A limit that a class of cooling has is what the cooling carries; others are the rack's."""
    usual = [cooling.rack_kw_max for cooling in state.inputs.fleet.catalogue.cooling]
    cooled = limit in usual
    layer = "cooling" if cooled else "rack-power"
    named = Named(layer, rack_class(site, limit), RACK)
    total, racks = sum(kw), round(len(kw) * state.widening(named.key))

    def drawn(factor: float) -> float:
        return total * grown_by(axis, "nodes", factor)

    def seen(factor: float) -> str:
        what = "their cooling carries" if cooled else "they may draw"
        each = drawn(factor) / racks
        return f"{count(racks, 'rack')} of {site.id} draw {each:,.1f} of the {limit:g} kW {what}"

    pools = [pool for pool in state.spec.pools if pool.site == site.id]
    evidence = weakest(_node_evidence(pools), SUPPOSED if cooled else STATED)
    return named.law(drawn, limit * racks, evidence, seen)


def _ports(state: State, axis: Axis) -> list[Law]:
    free = state.grow.facility.ports_free
    if free is not None:
        return [_free_ports(state, axis, free)]
    laws: list[Law] = []
    for fabric, plan in zip(state.spec.fabrics, state.layout.fabrics, strict=True):
        if plan.nodes:
            laws.append(_fabric_ports(state, axis, fabric, plan))
    if not laws:
        return [Named("switch-ports", "fabrics", PORTS).unknown("a fabric that joins the nodes")]
    return laws


def _free_ports(state: State, axis: Axis, free: int) -> Law:
    used = sum(pool.nodes * pool.nics_per_node for pool in state.spec.pools)
    name = Named("switch-ports", "all fabrics", PORTS)
    there = used + free

    def wanted(factor: float) -> float:
        return used * grown_by(axis, "nodes", factor)

    def seen(factor: float) -> str:
        return f"nodes want {wanted(factor):,.0f} of {there:,} ports"

    return name.law(wanted, float(there), STATED, seen)


def _fabric_ports(state: State, axis: Axis, fabric: Fabric, plan: FabricPlan) -> Law:
    """Ports hold nodes until the fabric needs another layer of switches.

    A fabric that the file does not state is supposed to be what the fleet needs today, and
    so says little about more.
    """
    name = Named("switch-ports", f"fabric {fabric.id}", PORTS)
    # A larger fleet would be planned with more layers; the switches there are have theirs.
    there = next(one for one in state.inputs.fleet.layout.fabrics if one.name == fabric.id)
    most = there.nodes_max * state.widening(name.key)

    def wanted(factor: float) -> float:
        return plan.nodes * grown_by(axis, "nodes", factor)

    def seen(factor: float) -> str:
        return f"{wanted(factor):,.0f} nodes want ports of {fabric.id}, which has {most:,.0f}"

    stated = not fabric.defaulted and fabric.nodes_per_leaf is not None
    evidence = ASSUMED if fabric.defaulted else STATED if stated else SUPPOSED
    return name.law(wanted, float(most), evidence, seen)


def _floor(state: State, axis: Axis) -> Law:
    name = Named("floor", "places for racks", FLOOR)
    places, racks = state.grow.facility.floor_racks, len(state.layout.racks)
    if places is None:
        return name.unknown("`floor_racks`: how many racks the building holds")

    def wanted(factor: float) -> float:
        return racks * grown_by(axis, "nodes", factor)

    def seen(factor: float) -> str:
        return f"{wanted(factor):,.1f} racks stand on {places:,} places"

    return name.law(wanted, float(places), STATED, seen)
