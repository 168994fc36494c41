"""Spare nodes as a quantile of simulated failures, as a straight line above it.

The quantile grows more slowly than the fleet, and a linear program needs a line. The line passes
above every size that was simulated, so a plan never has fewer spares than the simulation asks for.
"""

import numpy as np

from tenfold.study.grow.layers.upkeep.faults import faults_of
from tenfold.study.grow.state import State

SIZES = 7


def spares_line(state: State, most: float, notes: list[str]) -> tuple[float, float]:
    """Return spares for today's nodes at no growth and spares per node, up to a factor `most`."""
    share = state.grow.limits.spare_shortfall_share_most
    if faults_of(state) is None:
        notes.append("no failures assumed: no spares are planned; set `--failures`")
        return 0.0, 0.0
    nodes = max(1, state.spec.nodes)
    sizes = np.geomspace(1.0, max(1.01, most), SIZES)
    needed = np.array([float(state.nodes_down.spares(float(size), share).needed) for size in sizes])
    slope = max(0.0, float((needed[-1] - needed[0]) / ((sizes[-1] - sizes[0]) * nodes)))
    fixed = float(max(needed - slope * nodes * sizes))
    notes.append(
        f"spares: {needed[0]:,.0f} today and {needed[-1]:,.0f} at {sizes[-1]:.2g}x cover failures "
        f"{1 - share:.1%} of the time, in simulation"
    )
    return fixed, slope
