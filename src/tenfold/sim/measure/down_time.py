"""How long how many nodes were down at once: quantiles over time, not over faults."""

from collections.abc import Sequence

import numpy as np

from tenfold.model.fault import Fault
from tenfold.model.units import Millis
from tenfold.physics.arrays import Floats


def time_by_count(faults: Sequence[Fault], from_ms: Millis, to_ms: Millis) -> Floats:
    """Return the milliseconds in which exactly 0, 1, 2 ... nodes were down."""
    starts = np.array([fault.at_ms for fault in faults], np.int64).clip(from_ms, to_ms)
    ends = np.array([fault.until_ms for fault in faults], np.int64).clip(from_ms, to_ms)
    moments = np.concatenate([starts, ends, np.array([from_ms, to_ms], np.int64)])
    changes = np.concatenate(
        [np.ones(len(starts), int), -np.ones(len(ends), int), np.zeros(2, int)]
    )
    order = np.argsort(moments, kind="stable")
    counts = np.cumsum(changes[order])[:-1]
    spans = np.diff(moments[order])
    lasting = spans > 0
    times = np.zeros(int(counts[lasting].max(initial=0)) + 1)
    np.add.at(times, counts[lasting], spans[lasting])
    return times


def sum_tables(one: Floats, other: Floats) -> Floats:
    """Return the sum of two such tables, of which one may be longer."""
    whole = np.zeros(max(len(one), len(other)))
    whole[: len(one)] += one
    whole[: len(other)] += other
    return whole


def quantile(times: Floats, share: float) -> int:
    """Return the least count that was not exceeded for this share of the time."""
    # A part in a billion of the time is no reason for another spare.
    left = share * float(times.sum()) * (1 - 1e-9)
    for count, time in enumerate(times.tolist()):
        left -= time
        if left <= 0:
            return count
    return max(0, len(times) - 1)


def mean_count(times: Floats) -> float:
    """Return how many nodes were down on average."""
    whole = float(times.sum())
    return float(times @ np.arange(len(times))) / whole if whole else 0.0
