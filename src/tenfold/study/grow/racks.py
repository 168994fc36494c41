"""Racks at a factor: the one place that says how many there are and how full each is.

New nodes bring racks as full as those of their pool today, after the last one is full. Spares
take positions like other nodes. So a larger fleet has more racks, and floor space ends; a rack
does not get fuller than its pool's pattern, unless it is the first and not yet full.
"""

from collections.abc import Callable
from math import ceil
from typing import NamedTuple

import numpy as np

from tenfold.model.fleet.spec import Pool, Site
from tenfold.model.growth.growth import Axis, grown_by
from tenfold.study.grow.relief import NEARLY
from tenfold.study.grow.state import State


class PoolRacks(NamedTuple):
    """How a pool fills racks."""

    pool: Pool
    per_rack: float
    """Nodes in a full rack; the mean of the stated racks if the file lists them."""
    loose: int
    """Nodes that are in no rack of the file."""

    @property
    def free(self) -> float:
        """Places left in its last rack."""
        return ceil(self.loose / self.per_rack) * self.per_rack - self.loose


class RackClass(NamedTuple):
    """Racks of a site with the same limit."""

    site: Site
    limit_kw: float
    cooled: bool
    """Whether the limit is that of a cooling class; otherwise it is one of power."""
    racks: int
    drawn_kw: float
    """What the fullest of them draws today."""
    filling: tuple[PoolRacks, ...]
    """Pools that put new nodes in racks of this class."""


def racks_stated(state: State) -> bool:
    """Return whether the file states racks, or nodes per rack for every pool."""
    spec = state.spec
    return bool(spec.racks) or not any("nodes_per_rack" in pool.defaulted for pool in spec.pools)


def spares_in(state: State, pool: Pool) -> float:
    """Return the spares that stand by for a pool: in proportion to its nodes."""
    return (state.grow.operations.spares or 0) * pool.nodes / max(1, state.spec.nodes)


def racks_at(state: State, axis: Axis) -> Callable[[float], float]:
    """Return the racks in use at a factor, those of spares included."""
    today, pools = len(state.layout.racks), state.once(pool_racks)
    spares = [spares_in(state, one.pool) for one in pools]

    def racks(factor: float) -> float:
        by = grown_by(axis, "nodes", factor)
        more = max(0.0, by - 1)
        added = (
            max(0.0, one.pool.nodes * more + extra - one.free) / one.per_rack
            for one, extra in zip(pools, spares, strict=True)
        )
        return today * min(1.0, by) + sum(ceil(each * NEARLY) for each in added)

    return racks


def fullest_rack_kw(state: State, axis: Axis, racks: RackClass) -> Callable[[float], float]:
    """Return what the fullest rack of a class draws at a factor."""

    def drawn(factor: float) -> float:
        by = max(1.0, grown_by(axis, "nodes", factor))
        filled = (
            min(one.per_rack, one.pool.nodes * by + spares_in(state, one.pool))
            * one.pool.power_w_per_node
            / 1_000
            for one in racks.filling
        )
        return max(racks.drawn_kw, *filled, 0.0)

    return drawn


def rack_classes(state: State) -> list[RackClass]:
    """Return the racks with power draw, by site and limit; none if the file states none."""
    if not racks_stated(state):
        return []
    spec, layout = state.spec, state.layout
    kw = layout.per_node([pool.power_w_per_node / 1000 for pool in spec.pools])
    drawn = np.bincount(layout.rack_of, weights=kw, minlength=len(layout.racks)).tolist()
    classes: dict[tuple[int, float], list[float]] = {}
    for rack, each in zip(layout.racks, drawn, strict=True):
        if each > 0:
            classes.setdefault((rack.site, rack.power_kw_limit), []).append(each)
    pools = state.once(pool_racks)
    found = list[RackClass]()
    for (place, limit), each in classes.items():
        site = spec.sites[place]
        filling = tuple(
            one
            for one in pools
            if one.loose and one.pool.site == site.id and limit == site.rack_kw_limit
        )
        found += [
            RackClass(site, kw, cooled, len(each), max(each), filling)
            for kw, cooled in _limits(state, site, limit)
        ]
    return found


def _limits(state: State, site: Site, limit: float) -> list[tuple[float, bool]]:
    """Return the limit of a rack, and that of its site's cooling class if that is lower."""
    classes = {one.name: one.rack_kw_max for one in state.inputs.fleet.catalogue.cooling}
    removed = classes.get(site.cooling, limit)
    own = (limit, limit in classes.values())
    return [own, (removed, True)] if removed < limit else [own]


def pool_racks(state: State) -> list[PoolRacks]:
    """Return how each pool with nodes fills racks."""
    layout, found = state.layout, list[PoolRacks]()
    for place, pool in enumerate(state.spec.pools):
        if not pool.nodes:
            continue
        numbers = layout.rack_of[layout.pool_start[place] : layout.pool_start[place + 1]]
        # Racks of the file come first in a layout.
        stated = [number for number in numbers.tolist() if number < len(state.spec.racks)]
        loose = pool.nodes - len(stated)
        per_rack = float(pool.nodes_per_rack) if loose else len(stated) / len(set(stated))
        found.append(PoolRacks(pool, per_rack, loose))
    return found
