"""What is known of each backend beside the tier file: its identity, and whether it is drained.

Kept in `backends.json` in the state folder, which all processes of a namespace share. A backend
whose directory lost its mark is an unmounted disk, not an empty one: it is not used.
"""

import fcntl
import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

Use = Literal["active", "draining", "drained"]


class BackendState(msgspec.Struct, frozen=True):
    """A backend that was used before."""

    identity: str
    tier: str
    use: Use = "active"
    to: str = ""
    """The tier that takes over, if its whole tier is drained."""


class BackendStates:
    """The states of all backends by name, in a file."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "backends.json"

    def read(self) -> dict[str, BackendState]:
        """Return the states; none before the first backend was used."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, BackendState])
        except FileNotFoundError:
            return {}

    @contextmanager
    def changing(self) -> Generator[dict[str, BackendState]]:
        """Give the states to change; they are written durably at the end. Excludes others."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with open(self._path.with_suffix(".lock"), "ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            states = self.read()
            before = dict(states)
            yield states
            if states != before:
                self._write(states)

    def stamp(self) -> tuple[int, int]:
        """Return what differs when the file was replaced."""
        return stamp_of(self._path)

    def _write(self, states: dict[str, BackendState]) -> None:
        partial = self._path.with_suffix(".partial")
        with open(partial, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(states), indent=1))
            file.flush()
            os.fsync(file.fileno())
        partial.rename(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def stamp_of(path: Path) -> tuple[int, int]:
    """Return the inode and the time of change of a file; zeros if it does not exist."""
    try:
        state = path.stat()
    except OSError:
        return 0, 0
    return state.st_ino, state.st_mtime_ns


def new_identity() -> str:
    """Return an identity that no other backend has."""
    return secrets.token_hex(16)
