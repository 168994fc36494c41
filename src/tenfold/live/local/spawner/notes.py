"""Notes from supervisors to the current spawner: over the channel, or a named pipe.

The channel leads to the spawner that forked the supervisor. A later spawner only has the pipe.

A note only saves time: its content is already in a file, and a new spawner reads those. A note that
cannot be sent is retried, and lost with its writer.
"""

import os
from contextlib import suppress

from tenfold.live.local.spawner.handover import SpawnerChannel
from tenfold.live.local.spawner.wire import NoteLine, line

NAME = "notes"
BYTES_MOST = 4_096
"""What Linux writes to a pipe atomically, so notes do not mix."""


class NoteWriter:
    """The supervisor's end."""

    def __init__(self, home: str, channel: SpawnerChannel | None = None) -> None:
        self._channel = channel
        self._path = f"{home}/{NAME}"
        self._unsent: list[bytes] = []

    @property
    def has_unsent(self) -> bool:
        """Whether a note is still unsent."""
        return bool(self._unsent)

    def send(self, note: NoteLine) -> None:
        """Send a note, now or at the next `flush`."""
        text = line(note)
        if len(text) <= BYTES_MOST:
            self._unsent.append(text)
        self.flush()

    def flush(self) -> None:
        """Send pending notes; without a spawner they are dropped."""
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
        """Send pending notes over the channel; False if it is closed."""
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
    """Return the spawner's end, which never blocks and has no end of file."""
    path = f"{home}/{NAME}"
    with suppress(FileExistsError):
        os.mkfifo(path, 0o600)
    # Also open for writing: otherwise it would be at end of file without a writer.
    return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
