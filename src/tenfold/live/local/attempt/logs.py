"""Member logs: rotated through a few segments of fixed size, newest kept.

The supervisor always drains the pipe: a job is never blocked by its own log or by a full disk. What
does not fit is counted and dropped, oldest first.
"""

import errno
import os
import stat
from contextlib import suppress
from typing import BinaryIO

SEGMENTS = 4
BYTES_MOST = 64 * 1024 * 1024
"""Per member, over all segments. An assumption: enough for a day of ordinary output."""
_READ_BYTES = 64 * 1024
_READS_PER_TURN = 16


class LogWriter:
    """Copies one member's pipe to `N.log`, with older segments in `N.log.1` and so on."""

    def __init__(self, folder: str, rank: int, bytes_most: int = BYTES_MOST) -> None:
        self.path = f"{folder}/{rank}.log"
        self.bytes_dropped = 0
        self._piece_bytes_most = max(bytes_most // SEGMENTS, 1)
        self._file = -1
        self._bytes = 0
        self._offset = 0
        """Offset of the newest segment in the whole log."""
        self._links: list[str] = []

    def copy_from(self, pipe: int) -> bool:
        """Copy pending output, within a fair share; False at the end of the pipe."""
        for _ in range(_READS_PER_TURN):
            try:
                chunk = os.read(pipe, _READ_BYTES)
            except BlockingIOError:
                return True
            if not chunk:
                return False
            self.write(chunk)
        return True

    def write(self, chunk: bytes) -> None:
        """Append a chunk, rotating when the segment is full."""
        rest = memoryview(chunk)
        while rest:
            free = self._piece_bytes_most - self._bytes
            try:
                if self._file < 0 or free <= 0:
                    free = self._rotate()
                written = os.write(self._file, rest[:free])
            except OSError:
                # Disk full: the job must continue, so its output is dropped.
                self.bytes_dropped += len(rest)
                return
            self._bytes += written
            rest = rest[written:]

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _rotate(self) -> int:
        """Open the next segment and drop the oldest; return its free bytes."""
        if self._file >= 0:
            self.close()
            if not self._links:
                self._link(0)
            self._offset += self._bytes
            oldest = f"{self.path}.{SEGMENTS - 1}"
            if os.path.exists(oldest):
                self.bytes_dropped += os.path.getsize(oldest)
            for number in range(SEGMENTS - 1, 0, -1):
                older = f"{self.path}.{number}"
                newer = f"{self.path}.{number - 1}" if number > 1 else self.path
                if os.path.exists(newer):
                    os.replace(newer, older)
        # Neither a link nor a pipe, which a job may have put here: opening a pipe would wait.
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = os.open(self.path, flags | os.O_NONBLOCK, 0o600)
        self._bytes = 0
        if self._links:
            self._link(self._offset)
        return self._piece_bytes_most

    def _link(self, offset: int) -> None:
        """Give the newest segment a stable name, so followers can find their position again.

        Only logs with several segments have them, and only where hard links work.
        """
        name = f"{self.path}@{offset}"
        with suppress(OSError):
            os.link(self.path, name)
            self._links.append(name)
        if len(self._links) > SEGMENTS:
            with suppress(OSError):
                os.unlink(self._links.pop(0))


def segments(folder: str, rank: int) -> list[str]:
    """Return the log files of a member, oldest first."""
    path = f"{folder}/{rank}.log"
    names = [f"{path}.{number}" for number in range(SEGMENTS - 1, 0, -1)] + [path]
    return [name for name in names if os.path.exists(name)]


def segment_offsets(folder: str, rank: int) -> list[tuple[int, str]]:
    """Return the log files of a member with their byte offsets in the whole log."""
    begin = f"{rank}.log@"
    with suppress(OSError):
        offsets = [name[len(begin) :] for name in os.listdir(folder) if name.startswith(begin)]
        found = [int(one) for one in offsets if one.isascii() and one.isdecimal()]
        if found:
            return [(offset, f"{folder}/{begin}{offset}") for offset in sorted(found)]
    path = f"{folder}/{rank}.log"
    return [(0, path)] if os.path.exists(path) else []


def open_log(path: str) -> BinaryIO:
    """Open a log to read it; raises `FileNotFoundError` if there is no such file.

    A job may have put a pipe or a link here: opening a pipe would wait for its other end.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError as error:
        raise FileNotFoundError(error.errno, error.strerror, path) from None
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    return os.fdopen(file, "rb")


def tail(paths: list[str], bytes_most: int) -> bytes:
    """Return the last bytes of a log that may be rotating at the same time."""
    parts: list[bytes] = []
    wanted = bytes_most
    for path in reversed(paths):
        if wanted <= 0:
            break
        try:
            with open_log(path) as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(size - wanted, 0))
                part = file.read(wanted)
        except FileNotFoundError:
            continue
        parts.append(part)
        wanted -= len(part)
    return b"".join(reversed(parts))
