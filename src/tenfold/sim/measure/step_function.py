"""A count that changes in steps over time: jobs that wait, GPUs in use.

Means over a stretch are the area below the steps, not samples of them, so a short burst
between two points of a chart still counts.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


class StepFunction:
    """A count that is 0 before its first change."""

    def __init__(self, times: Iterable[float], changes: Iterable[float]) -> None:
        when = np.fromiter(times, dtype=np.float64)
        by = np.fromiter(changes, dtype=np.float64)
        order = np.argsort(when, kind="stable")
        self._times: Values = when[order]
        self._counts: Values = np.cumsum(by[order])
        spans = np.diff(self._times) * self._counts[:-1]
        self._areas: Values = np.concatenate([[0.0], np.cumsum(spans)])[: len(when)]

    def area(self, at: Values) -> Values:
        """Return count x time from the first change to each moment."""
        if not len(self._times):
            return np.zeros(len(at))
        place = np.searchsorted(self._times, at, side="right") - 1
        inside = np.maximum(place, 0)
        area = self._areas[inside] + self._counts[inside] * (at - self._times[inside])
        return np.where(place < 0, 0.0, area)

    def means(self, edges: Values) -> Values:
        """Return the mean count between each moment and the next."""
        return np.diff(self.area(edges)) / np.maximum(np.diff(edges), 1e-9)
