"""How many questions that cost seconds, and streams that last for hours, there may be at once.

Questions run beside the loop in one interpreter, and many at once would slow down decisions.
Streams leave connections free for requests that take milliseconds.
"""

from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock

from tenfold.model.reason import Reason
from tenfold.server.problems import Problem

WAITING_MOST = 8
"""Questions that wait for their turn."""
STREAMS_MOST = 256
STREAMS_SHARE = 4
"""Every so manieth connection may be a stream."""


class Gate:
    """Lets one thread in at a time; a crowd is sent away."""

    def __init__(self, most: int = WAITING_MOST) -> None:
        self._most = most
        self._count = 0
        self._counting = Lock()
        self._inside = Lock()

    @contextmanager
    def entered(self) -> Generator[None, None, None]:
        """Wait for one's turn; raise where too many wait already."""
        with self._counting:
            if self._count >= self._most:
                said = f"{self._count} questions of this kind wait already"
                raise Problem(
                    503, Reason("too-many-questions", sentence=said), "ask again in some seconds"
                )
            self._count += 1
        try:
            with self._inside:
                yield
        finally:
            with self._counting:
                self._count -= 1


class Streams:
    """How many streams of events and of logs are open, and may be."""

    def __init__(self, most: int = STREAMS_MOST) -> None:
        self.most = most
        self.open = 0

    def check(self) -> None:
        """Raise where no other may begin."""
        if self.open >= self.most:
            said = f"{self.most} streams are open already"
            raise Problem(
                503, Reason("too-many-streams", sentence=said), "close one, or ask again later"
            )

    @contextmanager
    def one(self) -> Generator[None, None, None]:
        """Count a stream for as long as it lasts."""
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1


def streams_most(connections: int) -> int:
    """Return how many of so many connections may be streams."""
    return max(1, min(STREAMS_MOST, connections // STREAMS_SHARE))
