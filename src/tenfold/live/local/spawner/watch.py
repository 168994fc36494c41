"""Watch a supervisor by a descriptor of its process, which no other process can come to mean."""

import os
import signal
import socket
from contextlib import suppress

from tenfold.live.local.attempt.folder import AttemptFolder
from tenfold.live.local.spawner.wire import StopLine


class SupervisorWatch:
    """One supervisor; `file` becomes readable when it is gone, `link` when it has a word."""

    def __init__(
        self, folder: AttemptFolder, pid: int, file: int, link: socket.socket | None = None
    ) -> None:
        self.folder = folder
        self.pid = pid
        self.file = file
        self.link = link
        """None for one that another spawner forked."""
        self.is_over = False
        """Whether its attempt is over; it may live on for another."""
        self.was_signalled = False
        self._nodes: list[str] | None = None

    def for_attempt(self, folder: AttemptFolder) -> "SupervisorWatch":
        """Return a watch on the same process with its next attempt."""
        return SupervisorWatch(folder, self.pid, self.file, self.link)

    def release(self) -> None:
        """Have a supervisor that rests leave. Its end of the link tells it."""
        if self.link is not None:
            with suppress(OSError):
                self.link.shutdown(socket.SHUT_WR)

    @property
    def nodes(self) -> list[str]:
        """The nodes that the attempt lies on; read when first asked for."""
        if self._nodes is None:
            self._nodes = [member["node"] for member in self.folder.launch()["members"]]
        return self._nodes

    def supervises(self, folder: AttemptFolder) -> bool:
        """Tell whether this is the supervisor of an attempt that is under way."""
        return not self.is_over and self.folder.path == folder.path

    def stop(self, stop: StopLine) -> None:
        """Order a stop. On a full disk the job is ended with the grace that it names itself."""
        try:
            self.folder.write_stop(stop)
        except OSError:
            self._signal(signal.SIGUSR2)
        else:
            self.signal_stop()

    def signal_stop(self) -> None:
        """Have the supervisor read whether it is to stop."""
        self._signal(signal.SIGUSR1)

    def _signal(self, number: int) -> None:
        self.was_signalled = True
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.file, number)


def watch_supervisor(folder: AttemptFolder) -> SupervisorWatch | None:
    """Return a watch on the supervisor that holds the lock; None to ask again a little later.

    The lock is held before and after the process is opened: then the number was its own.
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
