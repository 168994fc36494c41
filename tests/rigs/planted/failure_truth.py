"""How many nodes are down at once, in closed form, and how many spares that takes.

Written a second time from what a failure law says; nothing of the simulator is imported. Bursts
are a Poisson process and each lasts as long as its one repair, so those that last at a moment are
a Poisson count of mean rate times duration, whatever the distribution of repairs. Each takes down
a random number of nodes, so nodes down are a compound Poisson count (Panjer's recursion).
"""

from math import exp, log

from tenfold.model.facts.failure_law import FailureLaw

_HALVINGS = 60
_COUNTS_MOST = 4_000


def spares_break(law: FailureLaw, nodes: int, spares: int, share: float) -> float:
    """Return the multiple of the nodes beyond which spares fall short for more than a share."""

    def enough(factor: float) -> bool:
        # Spares are among the nodes that fail.
        return _quantile(law, nodes * factor + spares, share) <= spares

    low, high = 0.0, 1.0
    while enough(high) and high < 1e4:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    return low


def spares_needed(law: FailureLaw, nodes: float, share: float) -> int:
    """Return the spares for all but a share of the time; they are among the nodes that fail."""
    spares = 0
    while _quantile(law, nodes + spares, share) > spares and spares < nodes:
        spares += 1
    return spares


def _quantile(law: FailureLaw, nodes: float, share: float) -> int:
    """Return the nodes down that are not exceeded but for a share of the time."""
    sizes = burst_shares(law, max(1, int(nodes)))
    mean_size = sum(size * part for size, part in enumerate(sizes, start=1))
    bursts = law.faults_per_1000_node_days / 1_000 * nodes * law.away_h_mean / 24 / mean_size
    chances = [exp(-bursts)]
    reached = chances[0]
    while reached < 1 - share and len(chances) < _COUNTS_MOST:
        at = len(chances)
        # Panjer: P(n) = (mean / n) * sum of j * share(j) * P(n - j).
        chances.append(
            bursts
            / at
            * sum(size * part * chances[at - size] for size, part in enumerate(sizes[:at], start=1))
        )
        reached += chances[-1]
    return len(chances) - 1


def burst_shares(law: FailureLaw, nodes: int) -> list[float]:
    """Return how often a burst takes 1, 2, ... nodes: a power law with the mean that gaps tell.

    A gap is zero within a burst and exponential between two, so cv^2 = 2 * mean - 1.
    """
    most = min(law.burst_nodes_max, nodes)
    mean = min(max(1.0, (law.arrival_cv**2 + 1) / 2), (1 + most) / 2)
    if mean <= 1 or most == 1:
        return [1.0]
    low, high = 0.0, 40.0
    for _ in range(_HALVINGS):
        power = (low + high) / 2
        weights = [exp(-power * log(size)) for size in range(1, most + 1)]
        found = sum(size * one for size, one in enumerate(weights, start=1)) / sum(weights)
        low, high = (power, high) if found > mean else (low, power)
    weights = [exp(-low * log(size)) for size in range(1, most + 1)]
    return [one / sum(weights) for one in weights]
