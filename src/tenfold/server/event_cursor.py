"""The number of the newest event, for streams that wait for the next one."""

import asyncio

from anyio import to_thread

from tenfold.journal.store import Store, last_seq

SEQ_MAX = 2**63 - 1
POLL_S = 0.2
"""How often the journal is polled."""


class EventCursor:
    """The number of the newest event, read once for all streams."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = asyncio.Lock()
        self._seq = 0
        self._read_s = float("-inf")

    async def seq(self) -> int:
        """Return it, at most one poll interval old."""
        loop = asyncio.get_running_loop()
        async with self._lock:
            if loop.time() - self._read_s >= POLL_S:
                self._seq = await to_thread.run_sync(self._read)
                self._read_s = loop.time()
            return self._seq

    def _read(self) -> int:
        with self._store.reading() as connection:
            return last_seq(connection)
