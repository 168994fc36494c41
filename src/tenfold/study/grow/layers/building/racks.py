"""Rack power and cooling: what nodes draw against the limit of their racks.

If a rack limit equals that of a cooling class, cooling is the limit; otherwise it is rack power. So
one constraint serves two layers, each with the racks whose limit is of its kind.
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
    """Racks of a site with the same limit, and what each draws today."""

    site: Site
    limit_kw: float
    drawn_kw: tuple[float, ...]


class Racks(ComputedLayer):
    """Power draw of racks if all nodes went into the existing racks."""

    cause_rank = 22
    grows_with = ("nodes",)
    needs = "`[[rack]]` entries, or `nodes_per_rack` for pools"
    lead_times = ("rack-power", "rack")
    cooled: bool
    """Whether it covers the racks that are limited by cooling, or the others."""

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return a constraint for the racks of each site and limit."""
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
            what = "rack cooling" if self.cooled else "rack power"
            each = drawn(factor) / there
            return f"{what} in {site.id}: {each:,.1f} of {limit:g} kW, {count(there, 'rack')}"

        def relieve(multiple: float) -> list[Relief]:
            return [*self._denser(state, racks, multiple), self._more(state, racks, multiple)]

        pools = [pool for pool in state.spec.pools if pool.site == site.id]
        evidence = weakest(node_evidence(pools), DEFAULTED if self.cooled else STATED)
        return self.constraint(resource, drawn, limit * there, evidence, symptom, relieve)

    def _denser(self, state: State, racks: RackClass, multiple: float) -> Iterable[Relief]:
        """Yield a higher rack limit, as far as a cooling class supports it."""
        site, limit, _ = racks
        classes = sorted(state.inputs.fleet.catalogue.cooling, key=lambda one: one.rack_kw_max)
        required = limit * multiple * NEARLY
        carrier = next((one for one in classes if one.rack_kw_max >= required), None)
        if carrier is None:
            return
        new = carrier.rack_kw_max if self.cooled else float(round_up_to(limit * multiple, 1))

        def apply(now: State) -> State:
            # Racks that an earlier relief added are still there under the new limit.
            wide = now.capacity_scale(self.key(_resource(site, limit)))
            spec = _with_rack_limit(now.spec, site.id, limit, new)
            return scale_capacity(
                with_relief(now, "rack-power", spec), self.key(_resource(site, new)), wide
            )

        raised = f"raise the rack limit at {site.id} to {new:g} kW"
        text = f"{raised} with {carrier.name} cooling (up from {limit:g})"
        yield Relief("rack-power", text, None, lead_weeks(state, "rack-power"), apply)

    def _more(self, state: State, racks: RackClass, multiple: float) -> Relief:
        key = self.key(_resource(racks.site, racks.limit_kw))
        there = len(racks.drawn_kw) * state.capacity_scale(key)
        more = max(1, ceil(there * (multiple - 1) * NEARLY))

        def apply(now: State) -> State:
            return scale_capacity(with_relief(now, "more-racks"), key, 1 + more / there)

        text = f"spread the nodes over {count(more, 'more rack')} (in addition to {there:,.0f})"
        return Relief("more-racks", text, None, lead_weeks(state, "rack"), apply)


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
        if racks_unknown(state):
            return [self.unknown("racks")]
        return super().constraints(state, axis)


class Cooling(Racks):
    """Racks that are limited by their cooling."""

    name = "cooling"
    breaks = "the nodes of a rack draw more than its cooling class can remove"
    fixed_by = "a denser cooling class, or more racks"
    cooled = True


def racks_unknown(state: State) -> bool:
    """Return whether the file states neither racks nor nodes per rack."""
    spec = state.spec
    return not spec.racks and any("nodes_per_rack" in pool.defaulted for pool in spec.pools)


def rack_classes(state: State) -> list[RackClass]:
    """Return the racks with power draw, by site and limit; none if racks are unknown."""
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
