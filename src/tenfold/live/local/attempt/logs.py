"""What a member writes, kept in a few files of a fixed size, the newest of it always.

The supervisor reads the pipe whatever happens: a job is never held up by its own log, nor by a
full disk. What does not fit any more is counted and dropped, the oldest first.
"""

import os
from contextlib import suppress

SEGMENTS = 4
BYTES_MOST = 64 * 1024 * 1024
"""For one member, over all its pieces. An assumption: enough for a day of ordinary lines."""
_READ_BYTES = 64 * 1024
_READS_PER_TURN = 16


class LogWriter:
    """Copies one member's pipe into `N.log`, and older pieces into `N.log.1` and so on."""

    def __init__(self, folder: str, rank: int, bytes_most: int = BYTES_MOST) -> None:
        self.path = f"{folder}/{rank}.log"
        self.bytes_dropped = 0
        self._piece_bytes_most = max(bytes_most // SEGMENTS, 1)
        self._file = -1
        self._bytes = 0
        self._offset = 0
        """The byte of the whole at which the newest piece begins."""
        self._links: list[str] = []

    def copy_from(self, pipe: int) -> bool:
        """Copy what waits, as much as is fair to other members; False at the end of the pipe."""
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
        """Add a chunk, turning to a new piece where this one is full."""
        rest = memoryview(chunk)
        while rest:
            free = self._piece_bytes_most - self._bytes
            try:
                if self._file < 0 or free <= 0:
                    free = self._rotate()
                written = os.write(self._file, rest[:free])
            except OSError:
                # A full disk: the job must go on, its words are lost.
                self.bytes_dropped += len(rest)
                return
            self._bytes += written
            rest = rest[written:]

    def close(self) -> None:
        """Let go of the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _rotate(self) -> int:
        """Open the next piece and let the oldest go; return its free."""
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
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        self._file = os.open(self.path, flags, 0o600)
        self._bytes = 0
        if self._links:
            self._link(self._offset)
        return self._piece_bytes_most

    def _link(self, offset: int) -> None:
        """Give the newest piece a name that stays, by which followers find their place again.

        Only a log of several pieces has them; where links cannot be made, it has none.
        """
        name = f"{self.path}@{offset}"
        with suppress(OSError):
            os.link(self.path, name)
            self._links.append(name)
        if len(self._links) > SEGMENTS:
            with suppress(OSError):
                os.unlink(self._links.pop(0))


def segments(folder: str, rank: int) -> list[str]:
    """Return the files that hold a member's log, oldest first."""
    path = f"{folder}/{rank}.log"
    names = [f"{path}.{number}" for number in range(SEGMENTS - 1, 0, -1)] + [path]
    return [name for name in names if os.path.exists(name)]


def segment_offsets(folder: str, rank: int) -> list[tuple[int, str]]:
    """Return the files that hold a log, each with the byte of the whole at which it begins."""
    begin = f"{rank}.log@"
    with suppress(FileNotFoundError):
        names = [name for name in os.listdir(folder) if name.startswith(begin)]
        if names:
            return sorted((int(name[len(begin) :]), f"{folder}/{name}") for name in names)
    path = f"{folder}/{rank}.log"
    return [(0, path)] if os.path.exists(path) else []


def tail(paths: list[str], bytes_most: int) -> bytes:
    """Return the last bytes of a log that may be turning to a new piece at this moment."""
    parts: list[bytes] = []
    wanted = bytes_most
    for path in reversed(paths):
        if wanted <= 0:
            break
        try:
            with open(path, "rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(size - wanted, 0))
                part = file.read(wanted)
        except FileNotFoundError:
            continue
        parts.append(part)
        wanted -= len(part)
    return b"".join(reversed(parts))
