"""Threads that run alongside the scheduling loop; none of them can keep the server from stopping.

A thread that does not stop in time is abandoned with a log line and ends with the process. Its
work must survive that, as it must survive a crash.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from threading import Event, Thread
from time import monotonic

_LOG = logging.getLogger("tenfold.server")


class BackgroundTask(ABC):
    """Work in its own thread, from `start` until `stop`."""

    def __init__(self, name: str, stop_timeout_s: float) -> None:
        self.name = name
        self.stop_timeout_s = stop_timeout_s
        self.stopping = Event()
        self.may_run: Callable[[], bool] = _always
        """Whether this control plane leads; a standby must not do the work of the leader."""
        self._thread = Thread(target=self.work, name=f"tenfold-{name}", daemon=True)

    @abstractmethod
    def work(self) -> None:
        """Run in the thread until `stopping` is set."""

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to stop, and wait for it."""
        self.stopping.set()
        self.join(self.stop_timeout_s)

    def join(self, wait_s: float) -> None:
        """Wait for the thread; log a warning if it does not stop in time."""
        if not self._thread.is_alive():
            return
        self._thread.join(max(0.0, wait_s))
        if self._thread.is_alive():
            message = "background task `%s` did not stop within %.3g s; abandoning it"
            _LOG.warning(message, self.name, self.stop_timeout_s)


def _always() -> bool:
    return True


def stop_all(tasks: Sequence[BackgroundTask]) -> None:
    """Ask all tasks to stop, then wait for them together."""
    for task in tasks:
        task.stopping.set()
    start = monotonic()
    for task in tasks:
        task.join(start + task.stop_timeout_s - monotonic())
