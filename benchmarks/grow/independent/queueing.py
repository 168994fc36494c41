"""A second queue simulator: gangs on identical nodes, first come first, with or without EASY."""

import heapq
import random
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gang:
    submit_s: float
    duration_s: float
    nodes: int


def poisson_gangs(
    seed: int, per_s: float, until_s: float, sizes: Sequence[tuple[int, float, float]]
) -> list[Gang]:
    """Return Poisson arrivals; each size is (nodes, share of jobs, mean of exponential seconds)."""
    draw = random.Random(seed)
    gangs: list[Gang] = []
    now = draw.expovariate(per_s)
    while now < until_s:
        nodes, _, mean_s = draw.choices(sizes, [share for _, share, _ in sizes])[0]
        # Whole seconds from one up, as a job table has them.
        gangs.append(
            Gang(float(round(now)), float(max(1, round(draw.expovariate(1 / mean_s)))), nodes)
        )
        now += draw.expovariate(per_s)
    return gangs


def fifo_starts(gangs: Sequence[Gang], nodes: int) -> list[float]:
    """Return start times when a job that does not fit blocks every job behind it."""
    ends: list[tuple[float, int]] = []
    free, now = nodes, 0.0
    starts: list[float] = []
    for gang in gangs:
        now = max(now, gang.submit_s)
        while ends and ends[0][0] <= now:
            free += heapq.heappop(ends)[1]
        while free < gang.nodes:
            now, released = heapq.heappop(ends)
            free += released
        free -= gang.nodes
        heapq.heappush(ends, (now + gang.duration_s, gang.nodes))
        starts.append(now)
    return starts


def easy_starts(gangs: Sequence[Gang], nodes: int) -> list[float]:
    """Return start times under EASY: a job may pass the head if it does not delay its start."""
    starts = [0.0] * len(gangs)
    running: list[tuple[float, int]] = []
    queue: list[int] = []
    free, arrival = nodes, 0
    while arrival < len(gangs) or queue:
        now = gangs[arrival].submit_s if arrival < len(gangs) else running[0][0]
        if running:
            now = min(now, running[0][0])
        while running and running[0][0] <= now:
            free += heapq.heappop(running)[1]
        while arrival < len(gangs) and gangs[arrival].submit_s <= now:
            queue.append(arrival)
            arrival += 1
        for index in _easy_pass(gangs, queue, running, free, now):
            queue.remove(index)
            starts[index] = now
            free -= gangs[index].nodes
            heapq.heappush(running, (now + gangs[index].duration_s, gangs[index].nodes))
    return starts


def _easy_pass(
    gangs: Sequence[Gang],
    queue: Sequence[int],
    running: Sequence[tuple[float, int]],
    free: int,
    now: float,
) -> list[int]:
    started: list[int] = []
    ends = list(running)
    place = 0
    while place < len(queue) and gangs[queue[place]].nodes <= free:
        gang = gangs[queue[place]]
        free -= gang.nodes
        ends.append((now + gang.duration_s, gang.nodes))
        started.append(queue[place])
        place += 1
    if place == len(queue):
        return started
    head = gangs[queue[place]]
    available, reserved_s = free, now
    for end_s, released in sorted(ends):
        available += released
        reserved_s = end_s
        if available >= head.nodes:
            break
    extra = available - head.nodes
    for index in queue[place + 1 :]:
        gang = gangs[index]
        if gang.nodes > free:
            continue
        if now + gang.duration_s <= reserved_s:
            pass
        elif gang.nodes <= extra:
            extra -= gang.nodes
        else:
            continue
        free -= gang.nodes
        started.append(index)
    return started


def wait_quantile(
    gangs: Sequence[Gang],
    starts: Sequence[float],
    share: float = 0.9,
    *,
    by_gpu_time: bool = True,
    skip: float = 0.1,
) -> float:
    """Return a quantile of waits after a warm-up, weighted by GPU time or by job."""
    first = gangs[0].submit_s + skip * (gangs[-1].submit_s - gangs[0].submit_s)
    waits = sorted(
        (start - gang.submit_s, gang.nodes * gang.duration_s if by_gpu_time else 1.0)
        for gang, start in zip(gangs, starts, strict=True)
        if gang.submit_s >= first
    )
    left = share * sum(weight for _, weight in waits)
    for wait_s, weight in waits:
        left -= weight
        if left <= 0:
            return wait_s
    return waits[-1][0]


def worst_wait(gangs: Sequence[Gang], starts: Sequence[float]) -> float:
    """Return the largest P90 wait: by GPU time over all jobs, and by job for each size."""
    worst = wait_quantile(gangs, starts)
    for size in {gang.nodes for gang in gangs}:
        pairs = [
            (gang, start) for gang, start in zip(gangs, starts, strict=True) if gang.nodes == size
        ]
        if len(pairs) >= 20:
            of_size = [gang for gang, _ in pairs]
            worst = max(
                worst, wait_quantile(of_size, [start for _, start in pairs], by_gpu_time=False)
            )
    return worst
