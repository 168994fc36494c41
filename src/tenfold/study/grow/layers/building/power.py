"""Power: what nodes, spares and tiers draw with cooling, against the feed of a site and a budget.

Added nodes are counted at full power: nodes that idle today will be busy when the fleet is full.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from tenfold.model.fleet.spec import Pool, Site
from tenfold.model.growth.growth import Axis, grown_by
from tenfold.physics.growth.breaking import DEFAULTED, STATED, Evidence
from tenfold.study.grow.cost.prices import priced
from tenfold.study.grow.layer import ComputedLayer, Constraint
from tenfold.study.grow.racks import spares_in
from tenfold.study.grow.relief import Relief, lead_weeks, round_up_to, with_relief
from tenfold.study.grow.state import State

KW_STEP = 10


class SitePower(ComputedLayer):
    """Power draw of a site against its feed."""

    name = "site-power"
    breaks = "nodes, storage and cooling of a site draw more than its `power_kw`"
    cause_rank = 20
    grows_with = ("nodes",)
    grows_by = "power of the nodes; power of spares and storage stays the same"
    needs = "`power_kw` for every site"
    fixed_by = "a larger power feed"
    lead_times = ("site-power",)

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return a constraint for each site with pools."""
        for site in state.spec.sites:
            pools = [pool for pool in state.spec.pools if pool.site == site.id]
            if pools:
                yield self._site(state, axis, site, pools)

    def _site(self, state: State, axis: Axis, site: Site, pools: Sequence[Pool]) -> Constraint:
        resource, limit = f"site {site.id}", site.power_kw_limit
        if limit is None:
            return self.unknown(resource, f"`power_kw` for site `{site.id}`")

        def drawn(factor: float) -> float:
            return site_kw(state, site, grown_by(axis, "nodes", factor))

        def symptom(factor: float) -> str:
            return f"site power at {site.id}: {drawn(factor):,.0f} of {limit:,.0f} kW"

        def relieve(multiple: float) -> list[Relief]:
            return [_feed(state, site, limit, multiple)]

        return self.constraint(resource, drawn, limit, node_evidence(pools), symptom, relieve)


def _feed(state: State, site: Site, today: float, multiple: float) -> Relief:
    required = round_up_to(today * multiple, KW_STEP)

    def apply(now: State) -> State:
        sites = tuple(
            replace(one, power_kw_limit=float(required)) if one.id == site.id else one
            for one in now.spec.sites
        )
        return with_relief(now, "site-power", replace(now.spec, sites=sites))

    text = f"raise the power feed of {site.id} to {required:,} kW (up from {today:,.0f})"
    relief = Relief("site-power", text, None, lead_weeks(state, "site-power"), apply)
    return priced(state, relief, "power-kw", required - today)


class PowerBudget(ComputedLayer):
    """Power draw of all sites against a total limit."""

    name = "power-budget"
    title = "Total power"
    breaks = "all sites together draw more than `kw_most`"
    cause_rank = 21
    grows_with = ("nodes",)
    grows_by = "power of the nodes; power of spares and storage stays the same"
    needs = "`kw_most` under `[limits]` in the grow file; without it there is no limit"
    fixed_by = "a higher total limit"

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return the constraint on total power, if a limit is stated."""
        limit = state.grow.limits.kw_most
        if limit is None:
            return

        def drawn(factor: float) -> float:
            by = grown_by(axis, "nodes", factor)
            return sum(site_kw(state, site, by) for site in state.spec.sites)

        def symptom(factor: float) -> str:
            return f"total power: {drawn(factor):,.0f} of {limit:,.0f} kW"

        def relieve(multiple: float) -> list[Relief]:
            return [self._allow(state, limit, multiple)]

        yield self.constraint(
            "all sites", drawn, limit, node_evidence(state.spec.pools), symptom, relieve
        )

    def _allow(self, state: State, today: float, multiple: float) -> Relief:
        required = round_up_to(today * multiple, KW_STEP)

        def apply(now: State) -> State:
            limits = replace(now.grow.limits, kw_most=float(required))
            return replace(with_relief(now, self.name), grow=replace(now.grow, limits=limits))

        text = f"raise the total power limit to {required:,} kW (up from {today:,.0f})"
        weeks = lead_weeks(state, "site-power")
        if all(site.power_kw_limit is not None for site in state.spec.sites):
            # The feeds are limits of their own, and what they cost is in their rows.
            return Relief("power-budget", text, 0.0, weeks, apply)
        relief = Relief("power-budget", text, None, weeks, apply)
        return priced(state, relief, "power-kw", required - today)


def site_kw(state: State, site: Site, factor: float) -> float:
    """Return the power draw of a site at a multiple of its nodes.

    Spares, storage and cooling are included; spares stay as many as there are.
    """
    nodes_w = sum(
        (pool.nodes * factor + spares_in(state, pool)) * pool.power_w_per_node
        for pool in state.spec.pools
        if pool.site == site.id
    )
    tiers_w = sum(tier.power_w for tier in state.spec.tiers if tier.site == site.id)
    return (nodes_w + tiers_w) * site.pue / 1000


def node_evidence(pools: Sequence[Pool]) -> Evidence:
    """Return how well the power draw of nodes is known."""
    defaulted = any("power_kw_per_node" in pool.defaulted for pool in pools)
    return DEFAULTED if defaulted else STATED
