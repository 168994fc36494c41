"""Closed forms: waits of M/M/c and M/D/1, counts of nodes down, and where a value crosses."""

import math
from collections.abc import Callable, Iterable


def erlang_c(servers: int, load: float) -> float:
    """Return the share of arrivals that wait in M/M/c; `load` is in servers."""
    if load >= servers:
        return 1.0
    blocked = 1.0
    for count in range(1, servers + 1):
        blocked = load * blocked / (count + load * blocked)
    return blocked / (1 - load / servers * (1 - blocked))


def mmc_waits_longer(servers: int, load: float, service_s: float, wait_s: float) -> float:
    """Return the share of arrivals that wait longer than `wait_s` in M/M/c, first come first."""
    if load >= servers:
        return 1.0
    return erlang_c(servers, load) * math.exp(-(servers - load) * wait_s / service_s)


def mmc_mean_wait(servers: int, load: float, service_s: float) -> float:
    return erlang_c(servers, load) * service_s / (servers - load)


def mmc_queue_occupied(servers: int, load: float) -> float:
    """Return the share of time in which at least one arrival waits in M/M/c."""
    return 1.0 if load >= servers else erlang_c(servers, load) * load / servers


def md1_mean_wait(load: float, service_s: float) -> float:
    """Return the mean wait before service in M/D/1 (Pollaczek-Khinchine)."""
    return math.inf if load >= 1 else load * service_s / (2 * (1 - load))


def poisson_longer(mean: float, count: int) -> float:
    """Return the chance that a Poisson count exceeds `count`."""
    term = math.exp(-mean)
    below = term
    for value in range(1, count + 1):
        term *= mean / value
        below += term
    return max(0.0, 1 - below)


def any_of(chances: Iterable[float]) -> list[float]:
    """Return the distribution of how many independent events happen (Poisson binomial)."""
    shares = [1.0]
    for chance in chances:
        spread = [0.0] * (len(shares) + 1)
        for count, share in enumerate(shares):
            spread[count] += share * (1 - chance)
            spread[count + 1] += share * chance
        shares = spread
    return shares


def longer_than(shares: list[float], count: int) -> float:
    """Return the part of a distribution above `count`."""
    return sum(shares[count + 1 :])


def crossing(
    value: Callable[[float], float],
    limit: float,
    low: float = 0.05,
    high: float = 64.0,
    steps: int = 60,
) -> float:
    """Return the factor at which a rising value exceeds its limit, or infinity."""
    if value(high) <= limit:
        return math.inf
    for _ in range(steps):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if value(middle) > limit else (middle, high)
    return high


def least(holds: Callable[[int], bool], start: int, most: int = 100_000) -> int:
    """Return the least whole number from `start` for which a condition holds."""
    return next(count for count in range(start, most) if holds(count))
