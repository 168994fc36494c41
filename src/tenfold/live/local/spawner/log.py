"""The log of the spawner and its forks: standard error, in one file of limited size.

All of them append to the same open file, so it cannot be renamed while they run. The spawner copies
its end to `spawner.log.1` and empties it.
"""

import os
import stat
from contextlib import suppress

NAME = "spawner.log"
STDERR = 2
BYTES_MOST = 1 << 20
ENTRY_BYTES_MOST = 8 << 10
"""Of one entry, such as a traceback, of which the end is kept: it says what went wrong."""


def open_log(home: str) -> int:
    """Open the log for appending, and start a new one if it is full."""
    path = f"{home}/{NAME}"
    with suppress(FileNotFoundError):
        if os.stat(path).st_size > BYTES_MOST:
            os.replace(path, f"{path}.1")
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def log(text: str) -> None:
    """Append an entry. If the file is full and the spawner does not empty it, entries are lost."""
    entry = text.encode(errors="backslashreplace")
    if len(entry) > ENTRY_BYTES_MOST:
        entry = b"... " + entry[-ENTRY_BYTES_MOST:]
    with suppress(OSError):
        if _size() <= 2 * BYTES_MOST:
            os.write(STDERR, entry.rstrip() + b"\n")


def limit_log(home: str) -> None:
    """Empty the log if it is full, and keep its end beside it. Only the spawner calls this."""
    with suppress(OSError):
        size = _size()
        if size <= BYTES_MOST:
            return
        path = f"{home}/{NAME}"
        with open(path, "rb") as full:
            full.seek(size - BYTES_MOST)
            end = full.read(BYTES_MOST)
        older = os.open(f"{path}.1", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(older, end)
        finally:
            os.close(older)
        os.ftruncate(STDERR, 0)


def _size() -> int:
    """Return the size of the log; 0 if standard error is not a file."""
    status = os.fstat(STDERR)
    return status.st_size if stat.S_ISREG(status.st_mode) else 0
