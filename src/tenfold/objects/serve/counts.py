"""Counts of a worker in memory that its supervisor reads: plain numbers at fixed places."""

import mmap
import os
import struct
from pathlib import Path

NAMES = (
    "requests",
    "requests_2xx",
    "requests_3xx",
    "requests_4xx",
    "requests_5xx",
    "refused_connections",
    "slowed_requests",
    "received_bytes",
    "sent_bytes",
    "request_microseconds",
    "connections",
    "requests_under_way",
    "commits",
    "changes",
    "blobs_deleted",
    "versions_expired",
    "versions_moved",
    "uploads_aborted",
)
GAUGES = ("connections", "requests_under_way")
_FORMAT = struct.Struct("<q")


class Counts:
    """Numbers in a file that is mapped into memory; one process writes."""

    def __init__(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(descriptor, _FORMAT.size * len(NAMES))
            self._memory = mmap.mmap(descriptor, _FORMAT.size * len(NAMES))
        finally:
            os.close(descriptor)
        self._at = {name: index * _FORMAT.size for index, name in enumerate(NAMES)}

    def increase(self, name: str, amount: int = 1) -> None:
        """Add to a number."""
        at = self._at[name]
        _FORMAT.pack_into(self._memory, at, _FORMAT.unpack_from(self._memory, at)[0] + amount)

    def set(self, name: str, value: int) -> None:
        """Set a number."""
        _FORMAT.pack_into(self._memory, self._at[name], value)

    def read(self) -> dict[str, int]:
        """Return all numbers."""
        return {name: _FORMAT.unpack_from(self._memory, at)[0] for name, at in self._at.items()}
