"""Max-min shares of a storage tier, and the share of GPU time that its readers lose."""

import heapq
from collections.abc import Sequence


def max_min(demands: Sequence[float], capacity: float) -> list[float]:
    """Return what each demand gets when all rise together until met or until nothing is left."""
    granted = [0.0] * len(demands)
    left, waiting = capacity, sorted(range(len(demands)), key=lambda index: demands[index])
    while waiting:
        fair = left / len(waiting)
        index = waiting[0]
        if demands[index] > fair:
            for other in waiting:
                granted[other] = fair
            return granted
        granted[index] = demands[index]
        left -= demands[index]
        waiting.pop(0)
    return granted


def readers_lose(
    readers: Sequence[tuple[float, float]],
    gpus_each: int,
    gb_per_s_each: float,
    tier_gb_per_s: float,
) -> float:
    """Return the share of allocated GPU time lost by equal readers, each (start, work seconds).

    All readers are alike, so max-min is an equal part: with n readers, each runs at
    min(1, tier / (n x demand)) of full speed. Virtual work time makes it exact.
    """
    demand = gpus_each * gb_per_s_each
    coming = sorted(readers)
    now = done = allocated = work = 0.0
    running: list[float] = []
    place = 0
    while place < len(coming) or running:
        speed = min(1.0, tier_gb_per_s / (len(running) * demand)) if running else 1.0
        until_end = (running[0] - done) / speed if running else float("inf")
        until_start = coming[place][0] - now if place < len(coming) else float("inf")
        passed = min(until_end, until_start)
        allocated += passed * len(running)
        now += passed
        done += passed * speed
        if until_start <= until_end:
            heapq.heappush(running, done + coming[place][1])
            work += coming[place][1]
            place += 1
        else:
            heapq.heappop(running)
    return 1 - work / allocated if allocated else 0.0
