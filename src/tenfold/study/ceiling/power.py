"""Ceilings of power: what the existing racks and the site can feed."""

import numpy as np

from tenfold.report.figures import count
from tenfold.study.ceiling.design import Design
from tenfold.study.ceiling.layers import CeilingGrade, LayerBuilder, LayerCeiling


def rack_power(design: Design) -> LayerCeiling:
    """Return how many GPUs the racks in use today could power.

    Racks that the file does not describe are derived from their power limit: a ceiling computed
    from that would only return the default.
    """
    layout, spec = design.fleet.layout, design.fleet.spec
    if not spec.racks and any("nodes_per_rack" in pool.defaulted for pool in design.pools):
        name = LayerBuilder("rack-power", "racks", design.gpus_today)
        return name.unknown("the fleet file states neither racks nor `nodes_per_rack`")
    ours = np.asarray([pool.id in design.train.pools for pool in spec.pools])[layout.pool_of]
    kw = layout.per_node([pool.power_w_per_node / 1000 for pool in spec.pools])
    limit = np.asarray([rack.power_kw_limit for rack in layout.racks])
    total = len(layout.racks)
    others_kw = np.bincount(layout.rack_of, weights=np.where(ours, 0.0, kw), minlength=total)
    held = np.bincount(layout.rack_of, weights=ours, minlength=total) > 0
    node_kw = _node_kw(design)
    room = np.floor((limit - others_kw)[held] / node_kw + 1e-9)
    nodes = int(np.maximum(room, 0.0).sum())
    racks = int(held.sum())
    name = LayerBuilder("rack-power", count(racks, "rack"), design.gpus_today)
    each = float(limit[held].min())
    text = (
        f"{_node_power(node_kw)} per node and {each:g} kW per rack: "
        f"{'one rack' if racks == 1 else f'the {racks:,} racks'} can power {count(nodes, 'node')}"
    )
    return name.binds(nodes * design.target.gpus_per_node, _rack_grade(design), text)


def site_power(design: Design) -> LayerCeiling:
    """Return how many GPUs the site can power, after everything else there."""
    spec = design.fleet.spec
    site = next(one for one in spec.sites if one.id == design.site)
    name = LayerBuilder("site-power", f"site {site.id}", design.gpus_today)
    if site.power_kw_limit is None:
        return name.unknown(f"no `power_kw` for site `{site.id}`")
    others = [pool for pool in spec.pools if pool.site == site.id and pool not in design.pools]
    others_kw = sum(pool.nodes * pool.power_w_per_node for pool in others) / 1000
    others_kw += sum(tier.power_w for tier in design.tiers) / 1000
    node_kw = _node_kw(design)
    left_kw = site.power_kw_limit / site.pue - others_kw
    nodes = max(0, int(left_kw / node_kw + 1e-9))
    text = (
        f"{site.power_kw_limit:,.0f} kW at PUE {site.pue:g} leave {max(left_kw, 0):,.0f} kW "
        f"for {count(nodes, 'node')} of {_node_power(node_kw)}"
    )
    return name.binds(nodes * design.target.gpus_per_node, _node_grade(design), text)


def _node_kw(design: Design) -> float:
    """Return the mean power draw of a node over the pools."""
    nodes = sum(pool.nodes for pool in design.pools)
    watts = sum(pool.nodes * pool.power_w_per_node for pool in design.pools) / nodes
    return max(watts, 1.0) / 1000


def _node_power(kw: float) -> str:
    """Return the power draw of a node; small boards draw a few watts."""
    return f"{kw:.1f} kW" if kw >= 0.1 else f"{kw * 1000:.0f} W"


def _node_grade(design: Design) -> CeilingGrade:
    supposed = any("power_kw_per_node" in pool.defaulted for pool in design.pools)
    return "supposed" if supposed else "stated"


def _rack_grade(design: Design) -> CeilingGrade:
    """A limit equal to that of a cooling class counts as a default, not as stated."""
    usual = [cooling.rack_kw_max for cooling in design.fleet.catalogue.cooling]
    site = next(one for one in design.fleet.spec.sites if one.id == design.site)
    return "supposed" if site.rack_kw_limit in usual else _node_grade(design)
