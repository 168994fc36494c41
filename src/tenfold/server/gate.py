"""Questions that cost seconds: one at a time, and few may wait.

They run beside the loop in one interpreter; many at once would slow down decisions.
"""

from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock

from tenfold.model.reason import Reason
from tenfold.server.problems import Problem

WAITING_MOST = 8


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
                raise Problem(503, Reason("too-many-questions", said), "ask again in some seconds")
            self._count += 1
        try:
            with self._inside:
                yield
        finally:
            with self._counting:
                self._count -= 1
