"""How many questions that cost seconds, and streams that last for hours, there may be at once.

Questions run beside the loop in one interpreter, and many at once would slow down decisions.
Streams leave connections free for requests that take milliseconds.
"""

from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock

from tenfold.model.reason import Reason
from tenfold.server.problems import Problem

WAITING_MAX = 8
"""Questions that wait for their turn."""
STREAMS_MAX = 256
STREAMS_SHARE = 4
"""Every so manieth connection may be a stream."""


class Limiter:
    """Lets one thread in at a time; a crowd is sent away."""

    def __init__(self, most: int = WAITING_MAX) -> None:
        self._most = most
        self._count = 0
        self._lock = Lock()
        self._running = Lock()

    @contextmanager
    def slot(self) -> Generator[None, None, None]:
        """Wait for one's turn; raise where too many wait already."""
        with self._lock:
            if self._count >= self._most:
                message = f"{self._count} questions of this kind wait already"
                raise Problem(
                    503, Reason("too-many-questions", sentence=message), "ask again in some seconds"
                )
            self._count += 1
        try:
            with self._running:
                yield
        finally:
            with self._lock:
                self._count -= 1


class Streams:
    """How many streams of events and of logs are open, and may be."""

    def __init__(self, most: int = STREAMS_MAX) -> None:
        self.most = most
        self.open = 0

    def check(self) -> None:
        """Raise where no other may begin."""
        if self.open >= self.most:
            message = f"{self.most} streams are open already"
            raise Problem(
                503, Reason("too-many-streams", sentence=message), "close one, or ask again later"
            )

    @contextmanager
    def slot(self) -> Generator[None, None, None]:
        """Count a stream for as long as it lasts."""
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1


def max_streams(connections: int) -> int:
    """Return how many of so many connections may be streams."""
    return max(1, min(STREAMS_MAX, connections // STREAMS_SHARE))
