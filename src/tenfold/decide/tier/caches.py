"""Which objects a fast tier keeps in front of a slow one: by epoch order, or least recently used.

A training epoch reads everything once. LRU then evicts each object just before it is read again;
the epoch cache evicts what will be read last, and fetches ahead what will be read next.
"""

import heapq
from collections import OrderedDict
from collections.abc import Sequence
from math import inf

Item = tuple[str, int]
"""A key and its size in bytes."""
_LRU_AHEAD = 16


class EpochCache:
    """Keeps what the known order reads soonest; what is in no order goes first."""

    def __init__(self, capacity_bytes: int) -> None:
        self._free = capacity_bytes
        self._sizes: dict[str, int] = {}
        self._order: Sequence[Item] = ()
        self._next: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        self._at = 0
        self._fetched_to = 0

    def begin_epoch(self, order: Sequence[Item]) -> None:
        """Learn what the next epoch reads, in order."""
        self._order = order
        self._next = {key: float(position) for position, (key, _) in enumerate(order)}
        self._at = self._fetched_to = 0
        self._heap = [(-self._next.get(key, inf), key) for key in sorted(self._sizes)]
        heapq.heapify(self._heap)

    def holds(self, key: str) -> bool:
        """Return whether a key is in the fast tier."""
        return key in self._sizes

    def next_fetch(self) -> Item | None:
        """Return what to fetch next, after making room for it; None if nothing is worth it."""
        self._fetched_to = max(self._fetched_to, self._at)
        while self._fetched_to < len(self._order):
            key, size_bytes = self._order[self._fetched_to]
            if key not in self._sizes:
                break
            self._fetched_to += 1
        else:
            return None
        if not self._make_room(size_bytes, float(self._fetched_to)):
            return None
        self._fetched_to += 1
        self._add(key, size_bytes)
        return key, size_bytes

    def has_read(self, key: str, size_bytes: int) -> None:
        """Record a read; a miss is kept if it is read again before what it displaces."""
        position = self._next.get(key)
        if position is not None:
            self._at = max(self._at, int(position) + 1)
            # As if the next epoch had the same order: the last read is the last to come again.
            self._next[key] = len(self._order) + position
        if key in self._sizes:
            self._push(key)
        elif self._make_room(size_bytes, self._next.get(key, inf)):
            self._add(key, size_bytes)

    def has_written(self, key: str, size_bytes: int) -> None:
        """Record a write, which is kept while nothing that will be read needs its room."""
        if key not in self._sizes and self._make_room(size_bytes, inf):
            self._add(key, size_bytes)

    def _make_room(self, size_bytes: int, next_use: float) -> bool:
        """Evict what is used later than `next_use`; return whether there is room then."""
        victims: list[str] = []
        freed = self._free
        while freed < size_bytes and self._heap:
            negative, key = self._heap[0]
            if key not in self._sizes or -negative != self._next.get(key, inf) or key in victims:
                heapq.heappop(self._heap)
                continue
            if -negative <= next_use and not (next_use == inf == -negative):
                break
            heapq.heappop(self._heap)
            victims.append(key)
            freed += self._sizes[key]
        if freed < size_bytes:
            for key in victims:
                self._push(key)
            return False
        for key in victims:
            self._free += self._sizes.pop(key)
        return True

    def _add(self, key: str, size_bytes: int) -> None:
        self._sizes[key] = size_bytes
        self._free -= size_bytes
        self._push(key)

    def _push(self, key: str) -> None:
        heapq.heappush(self._heap, (-self._next.get(key, inf), key))


class LruCache:
    """Keeps what was used last; with `prefetch` it also fetches ahead in the known order."""

    def __init__(self, capacity_bytes: int, *, prefetch: bool = False) -> None:
        self._free = capacity_bytes
        self._capacity = capacity_bytes
        self._sizes: OrderedDict[str, int] = OrderedDict()
        self._prefetch = prefetch
        self._order: Sequence[Item] = ()
        self._at = 0
        self._fetched_to = 0
        self._ahead = 0

    def begin_epoch(self, order: Sequence[Item]) -> None:
        """Learn what the next epoch reads, in order."""
        self._order = order
        self._at = self._fetched_to = self._ahead = 0

    def holds(self, key: str) -> bool:
        """Return whether a key is in the fast tier."""
        return key in self._sizes

    def next_fetch(self) -> Item | None:
        """Return what to fetch next: a few objects ahead, so that it does not evict its own."""
        if not self._prefetch:
            return None
        self._fetched_to = max(self._fetched_to, self._at)
        while self._fetched_to < len(self._order):
            key, size_bytes = self._order[self._fetched_to]
            if key not in self._sizes:
                break
            self._fetched_to += 1
        else:
            return None
        is_far = self._fetched_to - self._at >= _LRU_AHEAD
        if is_far or self._ahead + size_bytes > self._capacity // 2:
            return None
        self._fetched_to += 1
        self._ahead += size_bytes
        self._put(key, size_bytes)
        return key, size_bytes

    def has_read(self, key: str, size_bytes: int) -> None:
        """Record a read."""
        self._at += 1
        self._ahead = max(0, self._ahead - size_bytes)
        self._put(key, size_bytes)

    def has_written(self, key: str, size_bytes: int) -> None:
        """Record a write."""
        self._put(key, size_bytes)

    def _put(self, key: str, size_bytes: int) -> None:
        if key in self._sizes:
            self._sizes.move_to_end(key)
            return
        if size_bytes > self._capacity:
            return
        while self._free < size_bytes:
            _, freed = self._sizes.popitem(last=False)
            self._free += freed
        self._sizes[key] = size_bytes
        self._free -= size_bytes
