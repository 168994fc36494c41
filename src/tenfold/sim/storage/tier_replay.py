"""Replay accesses of a job against a fast tier and a slow one, and measure how long it waits.

The job reads one object after another and computes in between. One channel to the slow tier
carries misses, prefetches and the copies of what is written, in the order of their requests.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Protocol

from msgspec import Struct

from tenfold.model.objects.tiering import Access


class Cache(Protocol):
    """What the fast tier keeps."""

    def begin_epoch(self, order: Sequence[tuple[str, int]]) -> None:
        """Learn what the next epoch reads, in order."""
        ...

    def holds(self, key: str) -> bool:
        """Return whether a key is in the fast tier."""
        ...

    def next_fetch(self) -> tuple[str, int] | None:
        """Return what to fetch next, or None."""
        ...

    def has_read(self, key: str, size_bytes: int) -> None:
        """Record a read."""
        ...

    def has_written(self, key: str, size_bytes: int) -> None:
        """Record a write."""
        ...


class Speed(Struct, frozen=True):
    """What a tier delivers to this job."""

    bytes_per_s: float
    latency_s: float

    def seconds(self, size_bytes: int) -> float:
        """Return how long a transfer takes."""
        return self.latency_s + size_bytes / self.bytes_per_s


class Replayed(Struct):
    """What a replay measured."""

    wall_s: float = 0.0
    compute_s: float = 0.0
    stall_s: float = 0.0
    """Time that reads took beyond reading everything from the fast tier."""
    reads: int = 0
    hits: int = 0
    slow_bytes: int = 0


class TierReplay:
    """One job on one fast and one slow tier."""

    def __init__(self, cache: Cache, fast: Speed, slow: Speed, fetches_at_once: int = 16) -> None:
        self._cache = cache
        self._fast = fast
        self._slow = slow
        self._fetches_at_once = fetches_at_once
        self._now = 0.0
        self._channel_free = 0.0
        self._arriving: dict[str, float] = {}
        self.measured = Replayed()

    def run(self, accesses: Sequence[Access]) -> Replayed:
        """Replay all accesses."""
        for epoch, group in groupby(accesses, key=lambda one: one.epoch):
            planned = list(group)
            if epoch >= 0:
                self._cache.begin_epoch(
                    [(one.key, one.size_bytes) for one in planned if one.op == "read"]
                )
            for access in planned:
                self._access(access)
        self.measured.wall_s = self._now
        return self.measured

    def _access(self, access: Access) -> None:
        self._fetch_ahead()
        if access.op == "read":
            self._read(access)
        else:
            self._now += self._fast.seconds(access.size_bytes)
            self._cache.has_written(access.key, access.size_bytes)
            self._send(access.size_bytes)
        self._now += access.compute_s
        self.measured.compute_s += access.compute_s

    def _read(self, access: Access) -> None:
        measured = self.measured
        measured.reads += 1
        began = self._now
        if self._cache.holds(access.key):
            measured.hits += 1
            ready = self._arriving.pop(access.key, 0.0)
        else:
            ready = self._send(access.size_bytes)
        measured.stall_s += max(0.0, ready - began)
        self._now = max(began, ready) + self._fast.seconds(access.size_bytes)
        self._cache.has_read(access.key, access.size_bytes)

    def _fetch_ahead(self) -> None:
        in_flight = sum(ready > self._now for ready in self._arriving.values())
        while in_flight < self._fetches_at_once:
            fetch = self._cache.next_fetch()
            if fetch is None:
                return
            self._arriving[fetch[0]] = self._send(fetch[1])
            in_flight += 1

    def _send(self, size_bytes: int) -> float:
        """Occupy the channel to the slow tier; return when the transfer is complete."""
        start = max(self._channel_free, self._now)
        self._channel_free = start + size_bytes / self._slow.bytes_per_s
        self.measured.slow_bytes += size_bytes
        return self._channel_free + self._slow.latency_s
