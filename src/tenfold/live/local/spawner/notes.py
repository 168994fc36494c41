"""Short notes from supervisors to whichever spawner lives: by its link, or through a named pipe.

The link leads to the spawner that forked the supervisor. A later one has the pipe alone.

A note only hurries: what it says stands in a file already, and a spawner that starts reads
those. So a note that cannot be given now is kept and tried again, and lost with its writer.
"""

import os
from contextlib import suppress

from tenfold.live.local.spawner.handover import Post
from tenfold.live.local.spawner.wire import NoteLine, line

NAME = "notes"
BYTES_MOST = 4_096
"""What Linux writes into a pipe at one stroke, so that notes of many do not mix."""


class NoteWriter:
    """The supervisor's end."""

    def __init__(self, home: str, post: Post | None = None) -> None:
        self._post = post
        self._path = f"{home}/{NAME}"
        self._unsaid: list[bytes] = []

    @property
    def waits(self) -> bool:
        """Whether a note is still to be given."""
        return bool(self._unsaid)

    def say(self, note: NoteLine) -> None:
        """Give a note, now or at the next `flush`."""
        text = line(note)
        if len(text) <= BYTES_MOST:
            self._unsaid.append(text)
        self.flush()

    def flush(self) -> None:
        """Give what waits; without a spawner there is nobody to hurry."""
        if not self._unsaid or self._posted():
            return
        try:
            pipe = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            self._unsaid.clear()
            return
        try:
            while self._unsaid:
                os.write(pipe, self._unsaid[0])
                del self._unsaid[0]
        except BlockingIOError:
            pass
        except OSError:
            self._unsaid.clear()
        finally:
            os.close(pipe)

    def _posted(self) -> bool:
        """Give what waits to the link; False where there is none any more."""
        try:
            while self._unsaid and self._post is not None:
                if not self._post.note(self._unsaid[0]):
                    self._post = None
                    return False
                del self._unsaid[0]
        except BlockingIOError:
            return True
        return self._post is not None


def open_notes(home: str) -> int:
    """Return the spawner's end, which never blocks and never ends."""
    path = f"{home}/{NAME}"
    with suppress(FileExistsError):
        os.mkfifo(path, 0o600)
    # Open for writing, too: otherwise it would be at its end whenever nobody writes.
    return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
