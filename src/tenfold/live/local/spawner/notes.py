"""Short notes from supervisors to whichever spawner lives: by its link, or through a named pipe.

The link leads to the spawner that forked the supervisor. A later one has the pipe alone.

A note only hurries: what it says stands in a file already, and a spawner that starts reads
those. So a note that cannot be given now is kept and tried again, and lost with its writer.
"""

import os
from contextlib import suppress

from tenfold.live.local.spawner.handover import SpawnerChannel
from tenfold.live.local.spawner.wire import NoteLine, line

NAME = "notes"
BYTES_MOST = 4_096
"""What Linux writes into a pipe at one stroke, so that notes of many do not mix."""


class NoteWriter:
    """The supervisor's end."""

    def __init__(self, home: str, channel: SpawnerChannel | None = None) -> None:
        self._channel = channel
        self._path = f"{home}/{NAME}"
        self._unsent: list[bytes] = []

    @property
    def has_unsent(self) -> bool:
        """Whether a note is still to be given."""
        return bool(self._unsent)

    def send(self, note: NoteLine) -> None:
        """Give a note, now or at the next `flush`."""
        text = line(note)
        if len(text) <= BYTES_MOST:
            self._unsent.append(text)
        self.flush()

    def flush(self) -> None:
        """Give what waits; without a spawner there is nobody to hurry."""
        if not self._unsent or self._sent_by_channel():
            return
        try:
            pipe = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            self._unsent.clear()
            return
        try:
            while self._unsent:
                os.write(pipe, self._unsent[0])
                del self._unsent[0]
        except BlockingIOError:
            pass
        except OSError:
            self._unsent.clear()
        finally:
            os.close(pipe)

    def _sent_by_channel(self) -> bool:
        """Give what waits to the link; False where there is none any more."""
        try:
            while self._unsent and self._channel is not None:
                if not self._channel.note(self._unsent[0]):
                    self._channel = None
                    return False
                del self._unsent[0]
        except BlockingIOError:
            return True
        return self._channel is not None


def open_notes(home: str) -> int:
    """Return the spawner's end, which never blocks and never ends."""
    path = f"{home}/{NAME}"
    with suppress(FileExistsError):
        os.mkfifo(path, 0o600)
    # Open for writing, too: otherwise it would be at its end whenever nobody writes.
    return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
