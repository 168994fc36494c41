"""Limits for expensive requests, which take seconds, and for streams, which last for hours.

Expensive requests share the interpreter with the loop, so many at once would slow down decisions.
The limit on streams leaves connections free for requests that take milliseconds.
"""

from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock

from tenfold.model.reason import Reason
from tenfold.server.problems import Problem

WAITING_MAX = 8
"""Expensive requests waiting at once."""
STREAMS_SHARE = 4
"""One in this many connections may be a stream."""


class Limiter:
    """Runs one expensive request at a time; refuses more than a few waiting ones."""

    def __init__(self, most: int = WAITING_MAX) -> None:
        self._most = most
        self._count = 0
        self._lock = Lock()
        self._running = Lock()

    @contextmanager
    def slot(self) -> Generator[None, None, None]:
        """Wait until it is free; raise if too many are waiting already."""
        with self._lock:
            if self._count >= self._most:
                message = f"{self._count} requests of this kind are already waiting"
                raise Problem(
                    503,
                    Reason("too-many-questions", sentence=message),
                    "try again in a few seconds",
                )
            self._count += 1
        try:
            with self._running:
                yield
        finally:
            with self._lock:
                self._count -= 1


def max_streams(connections: int, most: int) -> int:
    """Return how many of these connections may be streams."""
    return max(1, min(most, connections // STREAMS_SHARE))
