"""Fencing: of two controllers, only the one with the higher epoch gives orders.

The epoch is in a file of the executor's folder and is read before every order: a controller that
was paused finds a higher one when it wakes up, and orders nothing. No lock is held around an order,
since a paused controller would hold it for ever. An order that slips through between the check and
the engine does no harm: orders are in the journal before they are carried out, so the new leader
knows it, and an attempt is claimed on its node before it runs.
"""

import fcntl
import os

from tenfold.live.executor import STALE_ORDERS
from tenfold.live.local.attempt.folder import ExecutorDir
from tenfold.model.errors import Refused

LOCK = "fence.lock"


class Fence:
    """The epoch of one controller; until one is set, that of the current leader."""

    def __init__(self, home: ExecutorDir) -> None:
        self._home = home
        self.epoch = home.fence()

    def raise_to(self, epoch: int) -> None:
        """Order with this epoch from now on; raise if a higher one is known."""
        path = f"{self._home.path}/{LOCK}"
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.epoch = epoch
            self.check()
            if self._home.fence() < epoch:
                self._home.raise_fence(epoch)
        finally:
            os.close(lock)

    def check(self) -> None:
        """Raise if another controller leads; a damaged file raises `ValueError`."""
        current = self._home.fence()
        if current > self.epoch:
            raise Refused(
                STALE_ORDERS,
                f"another control plane is the leader (epoch {current}, own epoch {self.epoch})",
                "nothing was done; this control plane is on standby",
            )
