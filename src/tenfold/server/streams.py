"""Answers that go on for hours, counted apart: they leave room for those that take milliseconds."""

from collections.abc import Generator
from contextlib import contextmanager

from tenfold.model.reason import Reason
from tenfold.server.problems import Problem

MOST = 256
SHARE = 4
"""Every so manieth connection may be a stream."""


class Streams:
    """How many streams of events and of logs are open, and may be."""

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self.open = 0

    def check(self) -> None:
        """Raise where no other may begin."""
        if self.open >= self.most:
            said = f"{self.most} streams are open already"
            raise Problem(503, Reason("too-many-streams", said), "close one, or ask again later")

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
    return max(1, min(MOST, connections // SHARE))
