"""The settings among which the tournament chooses.

A candidate follows the forecast at one risk, or only the queue, and never goes below its floor.
Fixed numbers of replicas are floors that follow nothing.
"""

from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RISKS = (0.2, 0.08, 0.03, 0.012, 0.005, 0.002, 0.0006)
"""Chance that the forecast is too low, at the usual rate of requests; less at a higher rate. It is
the price of a replica over that of the requests that would miss without it."""
QUEUE, NOTHING = len(RISKS), len(RISKS) + 1
"""What stands for a risk: whoever follows the queue starts replicas when requests wait for them."""
HOLDS_S = (30.0, 300.0)
"""Seconds for which fewer replicas must have been enough before any is drained."""
FLOOR_RATIO, FLOORS = 4 / 3, 26
"""Ratio of neighbouring floors, and floors at most."""
FIXED_RATIO, FIXED = 1.12, 64
"""Ratio of neighbouring fixed numbers of replicas, and fixed numbers at most."""


class Candidates(NamedTuple):
    """One array per property; the position is the candidate."""

    window: NDArray[np.intp]
    """Index of the window that the level is taken over."""
    risk: NDArray[np.intp]
    """Index of the risk, `QUEUE` or `NOTHING`."""
    hold: Floats
    """Buckets."""
    floor: Floats


def candidates(windows: int, replicas_min: int, replicas_max: int, step_s: float) -> Candidates:
    """Return all candidates within the bounds of a service."""
    floors = _ladder(replicas_min, replicas_max, FLOOR_RATIO, FLOORS)
    fixed = _ladder(max(replicas_min, 1), replicas_max, FIXED_RATIO, FIXED)
    rows = [
        (window, risk, max(round(hold / step_s), 1), floor)
        for floor in floors
        for window, risk, hold in product(range(windows), range(len(RISKS)), HOLDS_S)
    ]
    rows += [
        (0, QUEUE, max(round(hold / step_s), 1), floor) for floor in floors for hold in HOLDS_S
    ]
    rows += [(0, NOTHING, 1, floor) for floor in fixed]
    window, risk, hold, floor = zip(*rows, strict=True)
    return Candidates(
        np.array(window, dtype=np.intp),
        np.array(risk, dtype=np.intp),
        np.array(hold, dtype=np.float64),
        np.array(floor, dtype=np.float64),
    )


def _ladder(least: int, most: int, ratio: float, steps: int) -> list[int]:
    """Return the small numbers of replicas, and of larger ones each by a ratio more."""
    found = [least]
    while found[-1] < most and len(found) < steps:
        found.append(max(found[-1] + 1, round(found[-1] * ratio)))
    return [one for one in found if one <= most]
