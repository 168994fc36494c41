"""Job streams whose breaking factor is known: from a very long run of a second simulator.

A stream is a law of arrivals, durations and sizes on a few nodes that serve in order of arrival.
The simulator here is twenty lines and shares no code with growth: a job starts once the job
before it has started and enough nodes are free.
"""

from collections.abc import Iterator
from functools import cache
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

DAY_S = 86_400.0
TRUTH_JOBS = 500_000
"""Jobs of a run that tells the truth: its error is about a percent of the factor."""
WARM_DAYS = 20.0
BISECTIONS = 9
FACTOR_MOST = 8.0
P90 = 0.9


class Stream(NamedTuple):
    """One law of jobs, and the limit of its waits."""

    name: str
    nodes: int
    load: float
    """Nodes asked for over nodes there, today."""
    mean_h: float
    wait_h: float
    """What one job in ten may wait."""
    days: int
    """Length of a history."""
    sigma: float = 0.0
    """Of lognormal durations; 0: exponential."""
    sizes: tuple[int, ...] = (1,)
    """Nodes of a job, all as likely."""
    batch: float = 1.0
    """Mean jobs of a submission."""
    swing: float = 0.0
    """How much busier the middle of the day is than its mean."""

    @property
    def wait_s(self) -> float:
        return self.wait_h * 3_600

    @property
    def jobs_per_day(self) -> float:
        return self.load * self.nodes * 24 / self.mean_h / float(np.mean(self.sizes))


class Drawn(NamedTuple):
    """Jobs of a stream, by time of submission."""

    at_s: np.ndarray
    runs_s: np.ndarray
    nodes: np.ndarray


STREAMS = (
    Stream("exponential", 8, 0.5, 2, 2, 14),
    Stream("exponential, small", 4, 0.4, 1, 2, 14),
    Stream("lognormal", 8, 0.45, 3, 4, 28, sigma=1.0),
    Stream("lognormal, wide", 16, 0.6, 2, 2, 14, sigma=1.4),
    Stream("gangs", 12, 0.4, 2, 4, 21, sizes=(1, 2, 4)),
    Stream("batches", 8, 0.4, 1, 2, 21, batch=4),
    Stream("days and nights", 10, 0.5, 2, 3, 14, swing=0.8),
    Stream("long jobs", 16, 0.5, 8, 6, 28, sigma=0.8),
)


def draw(stream: Stream, factor: float, days: float, seed: int) -> Drawn:
    """Return jobs of a stream at a multiple of its arrivals."""
    random = np.random.default_rng((seed, 7))
    expected = stream.jobs_per_day * factor * days / stream.batch
    at = np.sort(random.uniform(0, days * DAY_S, random.poisson(expected * (1 + stream.swing))))
    hour = 1 + stream.swing * np.cos(2 * np.pi * (at / DAY_S - 0.5))
    at = at[random.uniform(0, 1 + stream.swing, len(at)) < hour]
    if stream.batch > 1:
        at = np.repeat(at, random.geometric(1 / stream.batch, len(at)))
    mean_s = stream.mean_h * 3_600
    if stream.sigma:
        runs = random.lognormal(np.log(mean_s) - stream.sigma**2 / 2, stream.sigma, len(at))
    else:
        runs = random.exponential(mean_s, len(at))
    return Drawn(at, np.maximum(1.0, runs), random.choice(stream.sizes, len(at)))


def starts_s(drawn: Drawn, nodes: int) -> np.ndarray:
    """Return when jobs start that are served in order of arrival, none before the one ahead."""
    free = [0.0] * nodes
    heapify(free)
    last = 0.0
    found = np.empty(len(drawn.at_s))
    rows = zip(drawn.at_s.tolist(), drawn.runs_s.tolist(), drawn.nodes.tolist(), strict=True)
    for place, (at, runs, size) in enumerate(rows):
        ready = [heappop(free) for _ in range(size)][-1]
        last = max(last, at, ready)
        for _ in range(size):
            heappush(free, last + runs)
        found[place] = last
    return found


def _p90(waits: np.ndarray, weights: np.ndarray) -> float:
    order = np.argsort(waits)
    reached = np.cumsum(weights[order])
    return float(waits[order][np.searchsorted(reached, P90 * reached[-1])])


def wait_p90_s(stream: Stream, drawn: Drawn) -> float:
    """Return the longer P90 wait: by GPU time, or of the class of size that waits longest."""
    waits = starts_s(drawn, stream.nodes) - drawn.at_s
    kept = drawn.at_s > WARM_DAYS * DAY_S
    waits, sizes, runs = waits[kept], drawn.nodes[kept], drawn.runs_s[kept]
    return max(_waits(waits, sizes, runs))


def _waits(waits: np.ndarray, sizes: np.ndarray, runs: np.ndarray) -> Iterator[float]:
    yield _p90(waits, sizes * runs)
    for among in (sizes == 1, sizes > 1):
        if among.any():
            yield _p90(waits[among], np.ones(int(among.sum())))


@cache
def true_factor(stream: Stream) -> float:
    """Return the factor at which the P90 wait of a very long run reaches the limit."""
    low, high = 0.5, min(FACTOR_MOST, 1.1 / stream.load)
    for _ in range(BISECTIONS):
        middle = (low * high) ** 0.5
        days = WARM_DAYS + TRUTH_JOBS / (stream.jobs_per_day * middle)
        over = wait_p90_s(stream, draw(stream, middle, days, 1)) > stream.wait_s
        low, high = (low, middle) if over else (middle, high)
    return (low * high) ** 0.5
