"""Watch a supervisor by its pidfd, which is never reused for another process."""

import os
import signal
import socket
from contextlib import suppress

from tenfold.live.local.attempt.folder import AttemptFolder
from tenfold.live.local.spawner.wire import StopLine


class SupervisorWatch:
    """One supervisor; `file` is readable when it exits, `link` when it sent a message."""

    def __init__(
        self, folder: AttemptFolder, pid: int, file: int, link: socket.socket | None = None
    ) -> None:
        self.folder = folder
        self.pid = pid
        self.file = file
        self.link = link
        """None for a supervisor of another spawner."""
        self.is_over = False
        """Whether its attempt ended; it may be kept for another."""
        self.was_signalled = False
        self._nodes: list[str] | None = None

    def for_attempt(self, folder: AttemptFolder) -> "SupervisorWatch":
        """Return a watch on the same process with its next attempt."""
        return SupervisorWatch(folder, self.pid, self.file, self.link)

    def release(self) -> None:
        """Have an idle supervisor exit, by closing its link."""
        if self.link is not None:
            with suppress(OSError):
                self.link.shutdown(socket.SHUT_WR)

    @property
    def nodes(self) -> list[str]:
        """The nodes of the attempt; read on first use."""
        if self._nodes is None:
            self._nodes = [member["node"] for member in self.folder.launch()["members"]]
        return self._nodes

    def supervises(self, folder: AttemptFolder) -> bool:
        """Return whether this supervises an active attempt."""
        return not self.is_over and self.folder.path == folder.path

    def stop(self, stop: StopLine) -> None:
        """Order a stop. If the disk is full, the job's own grace period applies."""
        try:
            self.folder.write_stop(stop)
        except OSError:
            self._signal(signal.SIGUSR2)
        else:
            self.signal_stop()

    def signal_stop(self) -> None:
        """Have the supervisor read its stop request."""
        self._signal(signal.SIGUSR1)

    def _signal(self, number: int) -> None:
        self.was_signalled = True
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.file, number)


def watch_supervisor(folder: AttemptFolder) -> SupervisorWatch | None:
    """Return a watch on the lock holder; None to retry a little later.

    The lock is held before and after the process is opened, so the pid was its own.
    """
    pid = folder.record().get("supervisor")
    if pid is None:
        return None
    try:
        file = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    if folder.is_locked() and folder.record().get("supervisor") == pid:
        return SupervisorWatch(folder, pid, file)
    os.close(file)
    return None
