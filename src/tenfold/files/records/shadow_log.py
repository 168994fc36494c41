"""What a shadow said: JSON Lines that are added to, bounded, and read again after a restart.

Every line says how far the shadow has come and what it has counted by then, so the last one
that is whole is all that is needed to go on. A line that was cut by a crash is dropped.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec
from msgspec import Struct

from tenfold.engine.shadow import ShadowDifference
from tenfold.files.core.read_errors import read_error
from tenfold.model.policy.policy import Policy
from tenfold.model.units import Millis

BYTES_MOST = 8 << 20
"""After so much a new file is begun."""
KEPT = 3
"""Older files that are kept."""
NAME = "shadow.jsonl"
"""The file in a state folder."""

Kind = Literal["begun", "differs", "mark", "failed"]


class ShadowEntry(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """One line: where the shadow stands, and what it just found."""

    kind: Kind
    at_ms: Millis
    seq: int
    """The last event that it knows of."""
    cycle: int
    """The number of the last cycle that it was asked about."""
    policy: Policy
    live: str = ""
    """The policy that decides, by name."""
    cycles: int = 0
    """Cycles that it was asked about since it began."""
    cycles_differing: int = 0
    would_start: int = 0
    """Jobs that it would have started sooner."""
    would_stop: int = 0
    passed_over: int = 0
    """Events that it did not see, because it was too far behind or they were moved away."""
    difference: ShadowDifference | None = None
    said: tuple[str, ...] = ()
    """The difference in sentences, with what stood in the way."""
    failure: str = ""


_ENTRY = msgspec.json.Decoder(ShadowEntry)


class ShadowLog:
    """The file that one shadow writes, readable by its owner alone."""

    def __init__(self, path: Path, *, bytes_most: int = BYTES_MOST) -> None:
        self.path = path
        self._bytes_most = bytes_most
        _drop_half_a_line(path)
        self._stream = _opened(path)

    def write(self, entry: ShadowEntry) -> None:
        """Add a line; a new file is begun where this one is full."""
        self._stream.write(msgspec.json.encode(entry) + b"\n")
        self._stream.flush()
        if self._stream.tell() >= self._bytes_most:
            self.close()
            _rotate(self.path)
            self._stream = _opened(self.path)
            # The next reader begins with the newest file alone.
            self._stream.write(msgspec.json.encode(entry) + b"\n")
            self._stream.flush()

    def close(self) -> None:
        """Sync and close the file."""
        if not self._stream.closed:
            os.fsync(self._stream.fileno())
            self._stream.close()


def last_entry(path: Path) -> ShadowEntry | None:
    """Return the newest line of a log, or None where there is none."""
    found = latest_entries(path, 1)
    return found[0] if found else None


def latest_entries(path: Path, most: int, kinds: Sequence[Kind] = ()) -> list[ShadowEntry]:
    """Return the newest lines, the newest first; of some kinds alone where these are named."""
    found: list[ShadowEntry] = []
    for file in (path, *(_older(path, number) for number in range(1, KEPT + 1))):
        for row in reversed(_rows(file)):
            entry = _decoded(row)
            if entry is None or (kinds and entry.kind not in kinds) or entry in found[-1:]:
                continue
            found.append(entry)
            if len(found) == most:
                return found
    return found


def _decoded(row: bytes) -> ShadowEntry | None:
    try:
        return _ENTRY.decode(row)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # Half a line, or one of another version: neither is worth an error.
        return None


def _rows(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise read_error(str(path), error) from None


def _opened(path: Path) -> BinaryIO:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    return os.fdopen(handle, "ab")


def _drop_half_a_line(path: Path) -> None:
    if not path.exists():
        return
    text = path.read_bytes()
    whole = text.rfind(b"\n") + 1
    if whole != len(text):
        os.truncate(path, whole)


def _older(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _rotate(path: Path) -> None:
    for number in range(KEPT, 1, -1):
        if _older(path, number - 1).exists():
            _older(path, number - 1).replace(_older(path, number))
    path.replace(_older(path, 1))
