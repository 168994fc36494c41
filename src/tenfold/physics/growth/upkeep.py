"""Nodes down at the same time, and how many spares cover them.

Independent failures make the number of nodes down Poisson, whatever the distribution of repair
times: only its mean counts. Failures in bursts need more spares than this; a simulation shows how
many more.
"""

from tenfold.physics.operations.faults import poisson_share

HOURS_PER_DAY = 24.0
_BISECTIONS = 60


def down_mean(faults_per_day: float, down_h: float) -> float:
    """Return the mean number of nodes down, by Little's law."""
    return faults_per_day * down_h / HOURS_PER_DAY


def shortfall_share(mean: float, spares: int) -> float:
    """Return the share of time in which more nodes are down than there are spares."""
    return max(0.0, 1.0 - sum(poisson_share(mean, count) for count in range(spares + 1)))


def mean_covered_by(spares: int, share_most: float) -> float:
    """Return the mean number of nodes down that spares cover for all but a share of the time."""
    assert 0.0 < share_most <= 1.0, "a share of time is above 0 and at most 1"
    low, high = 0.0, float(spares + 1)
    while shortfall_share(high, spares) < share_most and high < 1e6:
        high *= 2.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        if shortfall_share(middle, spares) > share_most:
            high = middle
        else:
            low = middle
    return low
