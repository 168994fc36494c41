"""Requests in progress by chance, and the slots that hold all but a small share of them.

Requests arrive by chance, so their number in progress is Poisson, whatever their lengths. By the
normal approximation, `mean + z * sqrt(mean)` slots hold them for a given share of the time.
"""

from math import sqrt
from statistics import NormalDist


def slots_for(mean: float, share: float) -> float:
    """Return the slots that a mean number of requests in progress needs for a share of time."""
    return mean + _z(share) * sqrt(mean)


def mean_within(slots: float, share: float) -> float:
    """Return the mean number in progress that some slots hold for a share of the time."""
    z = _z(share)
    return ((sqrt(z * z + 4 * slots) - z) / 2) ** 2


def _z(share: float) -> float:
    assert 0.5 <= share < 1, "no number of slots is always enough"
    return NormalDist().inv_cdf(share)
