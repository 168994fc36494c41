"""Order statistics for noisy timings: medians, their spread, and exact tests of a shift.

Timings have long tails and no known distribution, so none is assumed. The rank test is exact,
including ties: it counts the ways in which the values could be divided between the two samples.
Neighbouring steps are not independent (a busy disk slows several in a row), and a rank test on
single steps would raise false alarms. `blocks` therefore makes one value of each block of steps.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import comb

import numpy as np

BLOCKS_MAX = 30
"""Two samples of this size have at most C(60, 30) divisions, which fits an int64."""
DEVIATIONS_PER_MAD = 1.4826
"""Scales the median absolute deviation of normal noise to its standard deviation."""
Ranks = np.ndarray[tuple[int], np.dtype[np.int64]]


def median(values: Sequence[float]) -> float:
    """Return the median."""
    return float(np.median(np.asarray(values, dtype=np.float64)))


def noise(values: Sequence[float]) -> float:
    """Return the spread about the median as a standard deviation, robust to outliers."""
    array = np.asarray(values, dtype=np.float64)
    return float(np.median(np.abs(array - np.median(array)))) * DEVIATIONS_PER_MAD


def blocks(values: Sequence[float]) -> list[float]:
    """Return the medians of at most 30 blocks of a run, in order."""
    count = min(BLOCKS_MAX, len(values))
    edges = [at * len(values) // count for at in range(count + 1)] if count else []
    return [median(values[start:end]) for start, end in pairwise(edges)]


def chance_of_larger(before: Sequence[float], now: Sequence[float]) -> float:
    """Return the probability that `now` ranks as high or higher if nothing had changed.

    The exact one-sided rank-sum test, by permutation.
    """
    assert max(len(before), len(now)) <= BLOCKS_MAX, "counts must fit an int64"
    if not before or not now:
        return 1.0
    ranks = _doubled_ranks(np.asarray([*before, *now], dtype=np.float64))
    # Without ties all doubled ranks are even.
    ranks //= np.gcd.reduce(ranks)
    drawn = len(now)
    seen = int(ranks[len(before) :].sum())
    # ways[k, s]: how many choices of k values have ranks that sum to s. From the smallest rank on,
    # so that few sums are within reach at first.
    ways = np.zeros((drawn + 1, int(ranks.sum()) + 1), dtype=np.int64)
    ways[0, 0] = 1
    reach = 1
    for taken, rank in enumerate(np.sort(ranks).tolist(), 1):
        most = min(taken, drawn)
        ways[1 : most + 1, rank : rank + reach] += ways[:most, :reach].copy()
        reach += rank
    return float(ways[drawn, seen:].sum()) / comb(len(ranks), drawn)


def chance_of_signs(larger: int, smaller: int) -> float:
    """Return the probability that this many pairs or more grew by chance alone."""
    pairs = larger + smaller
    return sum(comb(pairs, count) for count in range(larger, pairs + 1)) / 2**pairs


def _doubled_ranks(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Ranks:
    """Return twice the rank of each value; equal values share their mean rank."""
    ordered = np.sort(values)
    first = np.searchsorted(ordered, values, side="left")
    last = np.searchsorted(ordered, values, side="right")
    return (first + last + 1).astype(np.int64)
