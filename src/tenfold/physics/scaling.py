"""How well a gang uses its GPUs, between the sizes at which that is known."""

from bisect import bisect_left
from collections.abc import Sequence
from math import log


def efficiency_at(scaling: Sequence[tuple[int, float]], gpus: float) -> float:
    """Return the efficiency at a size, from points that rise in GPUs.

    Between two points it runs straight over the logarithm of the size; beyond the ends it
    stays what it is there. Without points every GPU counts in full.
    """
    if not scaling:
        return 1.0
    sizes = [size for size, _ in scaling]
    right = bisect_left(sizes, gpus)
    if right == 0:
        return scaling[0][1]
    if right == len(sizes):
        return scaling[-1][1]
    (low, before), (high, after) = scaling[right - 1], scaling[right]
    return before + (after - before) * log(gpus / low) / log(high / low)
