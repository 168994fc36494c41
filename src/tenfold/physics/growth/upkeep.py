"""What keeping nodes up takes: how many are down at once, and how many one may expect.

Faults that come alone are plain chance, and so is the number of nodes under repair, however
long a repair takes: only its mean counts. Faults that come in bursts ask for more spares than
this; a draw of the fleet tells how many more.
"""

from tenfold.physics.operations.faults import poisson_share

HOURS_PER_DAY = 24.0
_BISECTIONS = 60


def down_mean(faults_per_day: float, down_h: float) -> float:
    """Return how many nodes are down at once on average, by Little's law."""
    return faults_per_day * down_h / HOURS_PER_DAY


def shortfall_share(mean: float, spares: int) -> float:
    """Return the share of time in which more nodes are down than spares stand in for."""
    return max(0.0, 1.0 - sum(poisson_share(mean, count) for count in range(spares + 1)))


def mean_covered_by(spares: int, share_most: float) -> float:
    """Return the mean number of nodes down that so many spares carry for all but a share."""
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
