"""Rack power and cooling: what the fullest rack draws against the limit of its kind.

If a rack limit equals that of a cooling class, cooling is the limit; otherwise it is rack power. A
site whose class removes less than its racks may draw has both. So one constraint serves two layers,
each with the racks whose limit is of its kind. New nodes bring
racks, so a rack breaks if it is over its limit today, or once a first, partly filled one is full.
"""

from collections.abc import Iterable
from math import ceil, floor

from msgspec.structs import replace

from tenfold.model.fleet.spec import FleetSpec, Site
from tenfold.model.growth.growth import Axis
from tenfold.physics.growth.breaking import DEFAULTED, STATED, weakest
from tenfold.report.figures import count
from tenfold.study.grow.cost.prices import priced
from tenfold.study.grow.layer import ComputedLayer, Constraint
from tenfold.study.grow.layers.building.power import node_evidence
from tenfold.study.grow.racks import (
    PoolRacks,
    RackClass,
    fullest_rack_kw,
    rack_classes,
    racks_stated,
)
from tenfold.study.grow.relief import NEARLY, Relief, lead_weeks, round_up_to, with_relief
from tenfold.study.grow.state import State


class Racks(ComputedLayer):
    """Power draw of the fullest rack of each site and limit."""

    cause_rank = 22
    grows_with = ("nodes",)
    grows_by = "nodes in the first rack until it is full; after that, new nodes come with new racks"
    needs = "`[[rack]]` entries, or `nodes_per_rack` for pools"
    lead_times = ("rack-power", "rack")
    cooled: bool
    """Whether it covers the racks that are limited by cooling, or the others."""

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return a constraint for the racks of each site and limit."""
        for racks in state.once(rack_classes):
            if racks.cooled is self.cooled:
                yield self._class(state, axis, racks)

    def _class(self, state: State, axis: Axis, racks: RackClass) -> Constraint:
        site, limit = racks.site, racks.limit_kw
        drawn = fullest_rack_kw(state, axis, racks)

        def symptom(factor: float) -> str:
            what = "rack cooling" if self.cooled else "rack power"
            fullest = "" if racks.racks == 1 else f" in the fullest of {count(racks.racks, 'rack')}"
            return f"{what} in {site.id}: {drawn(factor):,.1f} of {limit:g} kW{fullest}"

        def relieve(multiple: float) -> list[Relief]:
            return [*self._denser(state, racks, multiple), *_fewer_per_rack(state, racks)]

        pools = [pool for pool in state.spec.pools if pool.site == site.id]
        evidence = weakest(node_evidence(pools), DEFAULTED if self.cooled else STATED)
        return self.constraint(_resource(site, limit), drawn, limit, evidence, symptom, relieve)

    def _denser(self, state: State, racks: RackClass, multiple: float) -> Iterable[Relief]:
        """Yield a higher rack limit, as far as a cooling class supports it."""
        site, limit = racks.site, racks.limit_kw
        classes = sorted(state.inputs.fleet.catalogue.cooling, key=lambda one: one.rack_kw_max)
        required = limit * multiple * NEARLY
        carrier = next((one for one in classes if one.rack_kw_max >= required), None)
        if carrier is None:
            return
        new = carrier.rack_kw_max if self.cooled else float(round_up_to(limit * multiple, 1))

        def apply(now: State) -> State:
            changed = _with_rack_limit(now.spec, site.id, limit, new)
            if self.cooled:
                changed = _with_cooling(changed, site.id, carrier.name)
            return with_relief(now, "rack-power", changed)

        raised = f"raise the rack limit at {site.id} to {new:g} kW"
        text = f"{raised} with {carrier.name} cooling (up from {limit:g})"
        relief = Relief("rack-power", text, None, lead_weeks(state, "rack-power"), apply)
        yield priced(state, relief, "power-kw", (new - limit) * racks.racks)


def _fewer_per_rack(state: State, racks: RackClass) -> Iterable[Relief]:
    """Yield fewer nodes per rack; the racks that this takes stand on the floor like others."""
    usable = racks.limit_kw * (1 - state.grow.limits.headroom_least)
    fewer = {
        one.pool.id: floor(usable * 1_000 / one.pool.power_w_per_node / NEARLY)
        for one in racks.filling
        if _full_kw(one) > usable
    }
    stated = racks.drawn_kw > max((_full_kw(one) for one in racks.filling), default=0.0) / NEARLY
    if stated or not fewer or not all(fewer.values()):
        # Racks that the file lists are not rearranged, and no node fits in less than a node.
        return

    def apply(now: State) -> State:
        pools = tuple(
            replace(pool, nodes_per_rack=fewer.get(pool.id, pool.nodes_per_rack))
            for pool in now.spec.pools
        )
        return with_relief(now, "more-racks", replace(now.spec, pools=pools))

    text = "; ".join(
        f"put at most {count(most, 'node')} of {pool} in a rack" for pool, most in fewer.items()
    )
    more = sum(
        ceil(one.loose / fewer[one.pool.id]) - ceil(one.loose / one.per_rack)
        for one in racks.filling
        if one.pool.id in fewer
    )
    relief = Relief("more-racks", text, None, lead_weeks(state, "rack"), apply)
    yield priced(state, relief, "rack-position", more)


def _full_kw(one: PoolRacks) -> float:
    return one.per_rack * one.pool.power_w_per_node / 1_000


class RackPower(Racks):
    """Racks with a power limit of their own."""

    name = "rack-power"
    breaks = "the nodes of a rack draw more than its `rack_kw`"
    fixed_by = "a higher limit per rack, or more racks"
    cooled = False

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return the constraints of racks; unknown if the file does not say how full they are.

        Racks that the file does not describe are derived from their power limit: a factor computed
        from that would only return the default.
        """
        if not racks_stated(state):
            return [self.unknown("racks", _unstated(state))]
        return super().constraints(state, axis)


def _unstated(state: State) -> str:
    """Name the pools whose racks are not described, if others are; else nothing."""
    pools = state.spec.pools
    names = [f"`{pool.id}`" for pool in pools if "nodes_per_rack" in pool.defaulted]
    if len(names) == len(pools):
        return ""
    return f"`nodes_per_rack` for {'pool' if len(names) == 1 else 'pools'} {', '.join(names)}"


class Cooling(Racks):
    """Racks that are limited by their cooling."""

    name = "cooling"
    breaks = "the nodes of a rack draw more than its cooling class can remove"
    fixed_by = "a denser cooling class, or more racks"
    cooled = True


def _resource(site: Site, limit: float) -> str:
    return f"racks of {site.id} at {limit:g} kW"


def _with_cooling(spec: FleetSpec, site_id: str, name: str) -> FleetSpec:
    """Return a fleet with another cooling class at a site that states one."""
    sites = (
        replace(one, cooling=name) if one.id == site_id and one.cooling else one
        for one in spec.sites
    )
    return replace(spec, sites=tuple(sites))


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
