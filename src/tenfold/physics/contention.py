"""Share contended resources: max-min fair rates by progressive filling.

All rates rise together until a flow is satisfied or a resource is full; flows on a full
resource stop there, and the others continue to rise. A flow is a whole gang: its rate is
per GPU, and it uses a resource with as many units as it has GPUs behind it. So a link
gives every sender the same rate, and a gang runs at the speed of its slowest part.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple


class Flow(NamedTuple):
    """A rate that is wanted, and the resources that it draws from.

    At rate `r` the flow takes `r * units[k]` of resource `uses[k]`. Units are positive.
    """

    rate_max: float
    uses: tuple[int, ...]
    units: tuple[float, ...]


def max_min(flows: Sequence[Flow], capacity: Mapping[int, float]) -> list[float]:
    """Return the max-min fair rate of each flow, in order.

    A resource that is not in `capacity` is unlimited.
    """
    rates = [flow.rate_max for flow in flows]
    settled = [False] * len(flows)
    filling = _filling(flows, capacity)
    heap = [(one.level, resource) for resource, one in filling.items()]
    heapify(heap)
    modest = sorted(range(len(flows)), key=rates.__getitem__)
    served = 0
    while heap:
        level, resource = heap[0]
        one = filling[resource]
        # Levels only rise, so what the heap says may be too low and is never too high.
        if _leave(one, settled, rates):
            if one.rising:
                heapreplace(heap, (one.level, resource))
            else:
                heappop(heap)
            continue
        before = served
        while served < len(modest) and rates[modest[served]] <= level:
            settled[modest[served]] = True
            served += 1
        if served > before:
            continue
        heappop(heap)
        for place, _ in one.rising:
            rates[place] = level
            settled[place] = True
    return rates


@dataclass(slots=True)
class _Filling:
    """A resource as it fills: what is left, and the flows on it that still rise."""

    room: float
    rising: list[tuple[int, float]]
    level: float
    """The rate of each at which the flows that still rise would fill it."""


def _filling(flows: Sequence[Flow], capacity: Mapping[int, float]) -> dict[int, _Filling]:
    """Return the resources that may bind, each with its flows and their units."""
    found: dict[int, _Filling] = {}
    for place, flow in enumerate(flows):
        for resource, units in zip(flow.uses, flow.units, strict=True):
            if resource in found:
                one = found[resource]
                one.rising.append((place, units))
                one.level += units
            elif resource in capacity:
                found[resource] = _Filling(capacity[resource], [(place, units)], units)
    for one in found.values():
        one.level = one.room / one.level
    return found


def _leave(one: _Filling, settled: Sequence[bool], rates: Sequence[float]) -> bool:
    """Take settled flows and their rates off a resource; tell whether there were any."""
    left: list[tuple[int, float]] = []
    taken = wanted = 0.0
    for user in one.rising:
        place, units = user
        if settled[place]:
            taken += rates[place] * units
        else:
            left.append(user)
            wanted += units
    if len(left) == len(one.rising):
        return False
    one.rising = left
    one.room = max(0.0, one.room - taken)
    if left:
        # Rounding alone could lower it, and a level that falls would not be met again.
        one.level = max(one.level, one.room / wanted)
    return True


def speed(waits: Iterable[tuple[float, float]]) -> float:
    """Return how fast a job runs, 1 being undisturbed.

    A wait is the share of an undisturbed step that a kind of traffic takes, and the part
    of the wanted bandwidth that it was granted: at half the bandwidth the share doubles.
    """
    step = 1.0
    for share, granted in waits:
        if granted < 1.0:
            step += share * (1.0 / granted - 1.0)
    return 1.0 / step


def throttled(limit: float, drawn: float) -> float:
    """Return the part of their speed that a rack leaves to its jobs under its power limit."""
    return 1.0 if drawn <= limit else limit / drawn
