"""Read a log that is still being written, starting at any byte.

Bytes are numbered across all segments of a log, so a client that lost its connection can resume at
the number it had reached. Bytes dropped meanwhile are skipped.
"""

import os
from collections.abc import Callable, Sequence
from typing import BinaryIO

from tenfold.live.local.attempt.logs import open_log

READ_BYTES = 64 << 10
"""At a time: every stream holds this much for a client that does not read."""
LogPieces = Sequence[tuple[int, str]]
"""The segments of a log, oldest first, each with the number of its first byte."""


class LogReader:
    """Reads a log as it grows, while segments are added and dropped."""

    def __init__(self, pieces: Callable[[], LogPieces], offset: int) -> None:
        self._pieces = pieces
        self._file: BinaryIO | None = None
        self._begins = -1
        self.offset = offset
        """The number of the next byte."""

    def read(self) -> bytes:
        """Return the next bytes; empty if there are none yet."""
        if self._file is None and not self._open(self._begun()):
            return b""
        while not (found := self._more()):
            after = [piece for piece in self._pieces() if piece[0] > self._begins]
            # Once the next segment exists this one is complete: read its last bytes first.
            if not after or (found := self._more()):
                break
            self.offset = max(self.offset, after[0][0])
            if not self._open(after[0]):
                break
        return found

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _more(self) -> bytes:
        found = b"" if self._file is None else self._file.read(READ_BYTES)
        self.offset += len(found)
        return found

    def _begun(self) -> tuple[int, str] | None:
        """Return the segment with the next byte, or the oldest one left."""
        pieces = self._pieces()
        inside = [piece for piece in pieces if piece[0] <= self.offset]
        return inside[-1] if inside else next(iter(pieces), None)

    def _open(self, piece: tuple[int, str] | None) -> bool:
        self.close()
        if piece is None:
            return False
        self._begins, path = piece
        try:
            self._file = open_log(path)
        except FileNotFoundError:
            return False
        self.offset = max(self.offset, self._begins)
        self._file.seek(self.offset - self._begins)
        return True


def tail_offset(pieces: LogPieces, bytes_most: int) -> int:
    """Return the number of the first of the last `bytes_most` bytes, or of the oldest one left."""
    if not pieces:
        return 0
    begins, path = pieces[-1]
    try:
        end = begins + os.path.getsize(path)
    except FileNotFoundError:
        end = begins
    return max(pieces[0][0], end - bytes_most)
