"""From published summaries of a fault trace to the parts of a law, in closed form.

Faults come in bursts: moments are plain chance (Poisson), and at each a few nodes are lost
together. A gap between two faults is then zero inside a burst and exponential between two,
so the spread of gaps says how large bursts are on average: cv^2 = 2 * mean - 1, whatever
their sizes. Sizes follow a power law that is cut where a domain ends, the usual finding
for failures that are correlated in space, with the exponent that gives that mean.
"""

from math import ceil, exp, lgamma, log, sqrt
from statistics import NormalDist

import numpy as np

from tenfold.physics.arrays import Floats

_EXPONENT_MAX = 40.0
_TURNS = 80
_FLAT_MEAN = 700.0


def burst_mean(arrival_cv: float, nodes_max: int) -> float:
    """Return the average faults of a burst; a power law that rises is not believed."""
    return min(max(1.0, (arrival_cv**2 + 1.0) / 2.0), (1.0 + nodes_max) / 2.0)


def burst_sizes(mean: float, nodes_max: int) -> Floats:
    """Return the probability of a burst of 1, 2, ... `nodes_max` nodes with this mean size."""
    if nodes_max == 1 or mean <= 1.0:
        return np.ones(1)
    sizes = np.arange(1.0, nodes_max + 1.0)
    low, high = 0.0, _EXPONENT_MAX
    for _ in range(_TURNS):
        middle = (low + high) / 2.0
        weights = sizes**-middle
        if float(weights @ sizes) > mean * float(weights.sum()):
            low = middle
        else:
            high = middle
    weights = sizes**-low
    return weights / weights.sum()


def repair_sigma(median: float, mean: float) -> float:
    """Return the sigma of a lognormal with this median and mean."""
    return sqrt(2.0 * log(mean / median)) if mean > median > 0 else 0.0


def poisson_quantile(mean: float, share: float) -> int:
    """Return the given quantile of a Poisson distribution with this mean."""
    if mean <= 0:
        return 0
    if mean > _FLAT_MEAN:
        # Beyond this the bell curve is within one count, and e^-mean is no float.
        return max(0, round(mean + NormalDist().inv_cdf(share) * sqrt(mean) - 0.5))
    term = reached = exp(-mean)
    count = 0
    while reached < share and count < 10 * _FLAT_MEAN:
        count += 1
        term *= mean / count
        reached += term
    return count


def poisson_spares(mean_of_a_node: float, keep: int, share: float) -> int:
    """Return the spares that keep nodes up for a share of the time if nodes fail one by one.

    Spares fail as the others do. If hardly a node is up, no number is enough; as many as nodes
    are said.
    """
    spares = 0
    while (spares < keep or spares < 1) and (
        poisson_quantile(mean_of_a_node * (keep + spares), share) > spares
    ):
        spares += 1
    return spares


def poisson_share(mean: float, count: int) -> float:
    """Return the Poisson probability of exactly `count` at this mean."""
    if mean <= 0:
        return 1.0 if count == 0 else 0.0
    return exp(count * log(mean) - mean - lgamma(count + 1.0))


def spares_for(down: float, nodes: int, keep: int) -> int:
    """Return the spares needed to keep `keep` nodes up, if `down` of `nodes` are down on average.

    Spares fail as the others do, so the share that is away counts, not the number. If all are
    away, no number is enough; as many are said as if one were not.
    """
    if nodes <= 0 or down >= nodes == 1:
        return keep
    away = min(down, max(1, nodes - 1)) / nodes
    return ceil(keep / (1.0 - away) - 1e-9) - keep
