"""Which replica saw the beginning of a prompt: affinity for its prefix cache.

A prompt is remembered by the checksums of its beginnings of 256, 512, 1,024 ... bytes, so a
conversation that grows still matches. A collision costs affinity and nothing else.
"""

from collections import OrderedDict
from zlib import crc32

SHORTEST_BYTES = 256
LEVELS = 10
"""Beginnings of up to 128 KiB."""
ENTRIES_MAX = 50_000


def prefix_keys(prompt: bytes | memoryview) -> tuple[int, ...]:
    """Return the keys of the beginnings of a prompt, the longest last."""
    keys: list[int] = []
    at, end, checksum = 0, SHORTEST_BYTES, 0
    for level in range(LEVELS):
        if end > len(prompt):
            break
        checksum = crc32(prompt[at:end], checksum)
        keys.append(checksum * LEVELS + level)
        at, end = end, 2 * end
    return tuple(keys)


class PrefixIndex:
    """The replica that answered each beginning last; the oldest are forgotten."""

    def __init__(self, entries_max: int = ENTRIES_MAX) -> None:
        self._entries_max = entries_max
        self._replicas: OrderedDict[int, str] = OrderedDict()

    def __len__(self) -> int:
        return len(self._replicas)

    def find(self, keys: tuple[int, ...]) -> tuple[str, int] | None:
        """Return the replica that saw the longest beginning, and its length in bytes."""
        for level in range(len(keys) - 1, -1, -1):
            replica = self._replicas.get(keys[level])
            if replica is not None:
                return replica, SHORTEST_BYTES << level
        return None

    def note(self, keys: tuple[int, ...], replica: str) -> None:
        """Remember that a replica has seen these beginnings."""
        replicas = self._replicas
        for key in keys:
            replicas[key] = replica
            replicas.move_to_end(key)
        while len(replicas) > self._entries_max:
            replicas.popitem(last=False)
