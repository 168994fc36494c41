"""Exact accounts: GPU time as integers, and dollars that add up to the micro-dollar.

An hour of one GPU is `GPU_HOUR` units. Money is rounded once, for the whole, and then divided by
largest remainder: parts never add up to more or less than what is billed.
"""

from collections.abc import Mapping
from typing import TypeVar

from tenfold.model.units import HOUR

MILLI = 1_000
GPU_HOUR = MILLI * HOUR
"""Thousandths of a GPU times milliseconds, in one GPU-hour."""
K = TypeVar("K")


def charges(units: Mapping[K, int], usd_micros_per_gpu_hour: Mapping[K, int]) -> dict[K, int]:
    """Return micro-dollars by key, whose sum is the rounded sum of units times price."""
    owed = {key: amount * usd_micros_per_gpu_hour[key] for key, amount in units.items()}
    total = _rounded(sum(owed.values()))
    return divided(total, owed)


def divided(total: int, weights: Mapping[K, int]) -> dict[K, int]:
    """Divide whole micro-dollars by weight, exactly; the largest remainders get the rest.

    Equal remainders are served in the order of the mapping. Without weight nothing is divided.
    """
    whole = sum(weights.values())
    if not whole:
        return dict.fromkeys(weights, 0)
    found = {key: total * weight // whole for key, weight in weights.items()}
    left = total - sum(found.values())
    by_remainder = sorted(weights, key=lambda key: -(total * weights[key] % whole))
    for key in by_remainder[:left]:
        found[key] += 1
    return found


def _rounded(owed: int) -> int:
    """Return whole micro-dollars, half up."""
    return (2 * owed + GPU_HOUR) // (2 * GPU_HOUR)
