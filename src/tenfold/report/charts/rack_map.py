"""A map of racks and their nodes, as cells for a terminal or a picture.

For a fleet with many racks only the first are shown; a rack says how many are like it.
"""

import numpy as np
from msgspec import Struct

from tenfold.physics.layout import Layout

COLOURS = ("#3b82f6", "#10b981", "#f59e0b", "#ef4444", "#8b5cf6", "#14b8a6", "#ec4899", "#84cc16")


class RackView(Struct, frozen=True, kw_only=True):
    """One rack to draw. `cells` are (pool, GPUs) of its nodes, top to bottom."""

    name: str
    site: str
    power_kw: float
    power_kw_limit: float
    cells: tuple[tuple[int, int], ...]


def rack_views(layout: Layout, most: int) -> list[RackView]:
    """Return the first `most` racks that hold nodes."""
    spec = layout.spec
    kw = layout.per_node([pool.power_w_per_node / 1000 for pool in spec.pools])
    order = np.argsort(layout.rack_of, kind="stable")
    bounds = np.searchsorted(layout.rack_of[order], np.arange(len(layout.racks) + 1))
    views: list[RackView] = []
    for number, rack in enumerate(layout.racks):
        nodes = order[bounds[number] : bounds[number + 1]]
        if not len(nodes):
            continue
        if len(views) == most:
            break
        pools: list[int] = layout.pool_of[nodes].tolist()
        views.append(
            RackView(
                name=rack.name,
                site=spec.sites[rack.site].id,
                power_kw=float(kw[nodes].sum()),
                power_kw_limit=rack.power_kw_limit,
                cells=tuple((pool, spec.pools[pool].gpus_per_node) for pool in pools),
            )
        )
    return views
