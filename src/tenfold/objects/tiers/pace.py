"""A limit on the bytes per second that background work reads and writes."""

import asyncio
from time import monotonic


class Pace:
    """Delays work so that it stays below a rate; 0 is no limit."""

    def __init__(self, bytes_per_s: float = 0) -> None:
        self._bytes_per_s = bytes_per_s
        self._free_s = monotonic()
        self.bytes_done = 0

    async def spend(self, count: int) -> None:
        """Wait until this many bytes may be moved."""
        self.bytes_done += count
        if self._bytes_per_s <= 0:
            return
        now_s = monotonic()
        self._free_s = max(self._free_s, now_s) + count / self._bytes_per_s
        # Sleeping for less costs more than it evens out.
        if self._free_s - now_s > 0.01:
            await asyncio.sleep(self._free_s - now_s)
