"""Racks: what their nodes draw against the rack's limit, or against what its cooling carries.

A limit that a class of cooling has is what the cooling carries; others are the rack's own. So one
law serves two layers, and each has the racks whose limit is of its kind.
"""

from collections.abc import Iterable
from math import ceil
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from tenfold.model.fleet.spec import FleetSpec, Site
from tenfold.model.growth.growth import Axis, grown_by
from tenfold.physics.growth.breaking import DEFAULTED, STATED, weakest
from tenfold.report.figures import count
from tenfold.study.grow.layer import ComputedLayer, Constraint
from tenfold.study.grow.layers.building.power import node_evidence
from tenfold.study.grow.relief import NEARLY, Relief, lead_weeks, round_up_to, with_relief
from tenfold.study.grow.state import State, scale_capacity


class RackClass(NamedTuple):
    """Racks of a site that may draw as much as each other, and what each draws today."""

    site: Site
    limit_kw: float
    drawn_kw: tuple[float, ...]


class Racks(ComputedLayer):
    """What racks draw, were all nodes put in the racks there are."""

    cause_rank = 22
    grows_with = ("nodes",)
    needs = "racks, or `nodes_per_rack` of pools"
    lead_times = ("rack-power", "rack")
    cooled: bool
    """Whether it has the racks whose limit is that of a class of cooling, or the others."""

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return a law for the racks of each site and limit."""
        usual = [cooling.rack_kw_max for cooling in state.inputs.fleet.catalogue.cooling]
        for racks in state.once(rack_classes):
            if (racks.limit_kw in usual) is self.cooled:
                yield self._class(state, axis, racks)

    def _class(self, state: State, axis: Axis, racks: RackClass) -> Constraint:
        site, limit, kw = racks
        resource = _resource(site, limit)
        total, there = sum(kw), round(len(kw) * state.capacity_scale(self.key(resource)))

        def drawn(factor: float) -> float:
            return total * grown_by(axis, "nodes", factor)

        def symptom(factor: float) -> str:
            what = "their cooling carries" if self.cooled else "they may draw"
            each = drawn(factor) / there
            return (
                f"{count(there, 'rack')} of {site.id} draw {each:,.1f} of the {limit:g} kW {what}"
            )

        def relieve(multiple: float) -> list[Relief]:
            return [*self._denser(state, racks, multiple), self._more(state, racks, multiple)]

        pools = [pool for pool in state.spec.pools if pool.site == site.id]
        evidence = weakest(node_evidence(pools), DEFAULTED if self.cooled else STATED)
        return self.constraint(resource, drawn, limit * there, evidence, symptom, relieve)

    def _denser(self, state: State, racks: RackClass, multiple: float) -> Iterable[Relief]:
        """Yield racks that may draw more, as far as a class of cooling carries it."""
        site, limit, _ = racks
        classes = sorted(state.inputs.fleet.catalogue.cooling, key=lambda one: one.rack_kw_max)
        wanted = limit * multiple * NEARLY
        carrier = next((one for one in classes if one.rack_kw_max >= wanted), None)
        if carrier is None:
            return
        new = carrier.rack_kw_max if self.cooled else float(round_up_to(limit * multiple, 1))

        def apply(now: State) -> State:
            # Racks that were added before are still there under the new limit.
            wide = now.capacity_scale(self.key(_resource(site, limit)))
            spec = _with_rack_limit(now.spec, site.id, limit, new)
            return scale_capacity(
                with_relief(now, "rack-power", spec), self.key(_resource(site, new)), wide
            )

        text = f"{new:g} kW a rack at {site.id} under {carrier.name} cooling, {limit:g} today"
        yield Relief("rack-power", text, None, lead_weeks(state, "rack-power"), apply)

    def _more(self, state: State, racks: RackClass, multiple: float) -> Relief:
        key = self.key(_resource(racks.site, racks.limit_kw))
        there = len(racks.drawn_kw) * state.capacity_scale(key)
        more = max(1, ceil(there * (multiple - 1) * NEARLY))

        def apply(now: State) -> State:
            return scale_capacity(with_relief(now, "more-racks"), key, 1 + more / there)

        text = f"spread the nodes over {count(more, 'rack')} more than the {there:,.0f} there are"
        return Relief("more-racks", text, None, lead_weeks(state, "rack"), apply)


class RackPower(Racks):
    """Racks with a limit of their own."""

    name = "rack-power"
    breaks = "the nodes of a rack draw more than its `rack_kw`"
    fixed_by = "racks that may draw more, or more racks"
    cooled = False

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return the laws of racks; unknown where nobody said how full these are.

        Racks that the file neither states nor fills are a guess made from their power: a
        factor from that would only give the guess back.
        """
        if racks_unknown(state):
            return [self.unknown("racks")]
        return super().constraints(state, axis)


class Cooling(Racks):
    """Racks whose limit is what their cooling carries."""

    name = "cooling"
    breaks = "the nodes of a rack draw more than its class of cooling carries"
    fixed_by = "a denser class of cooling, or more racks"
    cooled = True


def racks_unknown(state: State) -> bool:
    """Return whether the file neither states racks nor how many nodes stand in one."""
    spec = state.spec
    return not spec.racks and any("nodes_per_rack" in pool.defaulted for pool in spec.pools)


def rack_classes(state: State) -> list[RackClass]:
    """Return the racks that draw anything, by site and limit; none where racks are unknown."""
    if racks_unknown(state):
        return []
    spec, layout = state.spec, state.layout
    kw = layout.per_node([pool.power_w_per_node / 1000 for pool in spec.pools])
    drawn = np.bincount(layout.rack_of, weights=kw, minlength=len(layout.racks))
    classes: dict[tuple[int, float], list[float]] = {}
    for place, rack in enumerate(layout.racks):
        if drawn[place] > 0:
            key = (rack.site, rack.power_kw_limit)
            classes.setdefault(key, []).append(float(drawn[place]))
    return [
        RackClass(spec.sites[site], limit, tuple(each)) for (site, limit), each in classes.items()
    ]


def _resource(site: Site, limit: float) -> str:
    return f"racks of {site.id} at {limit:g} kW"


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
