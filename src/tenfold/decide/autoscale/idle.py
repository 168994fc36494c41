"""How soon a request comes after a time without any, learned from the history."""

from math import log2

AGES = 24
"""Idle times of one octave of buckets each."""
ASSUMED = 0.5
"""Requests that each octave of idle time is assumed to have seen."""
BURST = 0.9
"""How much the mean burst keeps of itself when another is seen."""


class Idle:
    """Idle times that were seen, and how they ended."""

    def __init__(self, start: int, keep: float) -> None:
        """Begin with nothing seen; `start` is the number of buckets that a cold start takes."""
        self._start = start
        self._keep = keep
        self._ended = [0.0] * AGES
        self._passed = [0.0] * AGES
        self._requests = [0]
        self._bursts: list[int] = []
        self._burst = 1.0
        self.buckets = 0
        """Buckets since the last request."""

    def add(self, arrived: int) -> None:
        """Add a closed bucket."""
        age = _age(self.buckets)
        self._passed[age] = self._passed[age] * self._keep + 1
        self._ended[age] = self._ended[age] * self._keep + (arrived > 0)
        self._requests.append(self._requests[-1] + arrived)
        seen = len(self._requests) - 1
        if arrived and self.buckets:
            self._bursts.append(seen - 1)
        if self._bursts and seen - self._bursts[0] >= self._start:
            began = self._bursts.pop(0)
            many = self._requests[-1] - self._requests[began]
            self._burst = self._burst * BURST + many * (1 - BURST)
        self.buckets = 0 if arrived else self.buckets + 1

    def requests_per_bucket(self) -> float:
        """Return the requests expected to begin a burst in the next bucket, times its size."""
        age = _age(self.buckets)
        chance = (self._ended[age] + ASSUMED) / (self._passed[age] + ASSUMED * 2.0 ** (age + 1))
        return chance * max(self._burst, 1.0)


def _age(buckets: int) -> int:
    return min(int(log2(buckets + 1)), AGES - 1)
