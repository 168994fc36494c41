"""What goes on beside the loop: each a thread of its own, and none that keeps a server from ending.

A thread that does not come to its end in time is left where it is, and the log says so: it ends
with the process. What it does must stand that, as it must stand a crash.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from threading import Event, Thread
from time import monotonic

_LOG = logging.getLogger("tenfold.server")


class Beside(ABC):
    """Something that is done beside the loop from `start` until `stop`."""

    def __init__(self, name: str, end_s: float) -> None:
        self.name = name
        self.end_s = end_s
        """How long it may take to come to an end."""
        self.ends = Event()
        self._thread = Thread(target=self.work, name=f"tenfold-{name}", daemon=True)

    @abstractmethod
    def work(self) -> None:
        """Do it, until `ends` is set: what the thread runs."""

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Tell it to end, and wait as long as it may take."""
        self.ends.set()
        self.join(self.end_s)

    def join(self, wait_s: float) -> None:
        """Wait for its end; say so where it does not come."""
        if not self._thread.is_alive():
            return
        self._thread.join(max(0.0, wait_s))
        if self._thread.is_alive():
            _LOG.warning("%s did not end within %.3g s and is left behind", self.name, self.end_s)


def stop_all(those: Sequence[Beside]) -> None:
    """Tell all to end, then wait for them at the same time."""
    for one in those:
        one.ends.set()
    begun = monotonic()
    for one in those:
        one.join(begun + one.end_s - monotonic())
