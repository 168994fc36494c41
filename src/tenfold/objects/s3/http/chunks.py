"""Chunks: the framing of `Transfer-Encoding: chunked`, and of `aws-chunked` inside a body."""

import re
from typing import Protocol

LINE_BYTES_MAX = 4_096
TRAILERS_MAX = 20
CHUNK_BYTES_MAX = 5 << 30

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(;[\t -~]*)?")
_TRAILER = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}):[ \t]*([\t -~]*)")


class BadChunk(Exception):
    """The framing is broken: where the body ends is unknown."""


class ChunkSink(Protocol):
    """What gets the parts of a chunked body, in order."""

    def started(self, size_bytes: int, extension: bytes) -> None:
        """Take note of a chunk; size 0 is the last."""
        ...

    def data(self, data: memoryview) -> None:
        """Take bytes of the chunk."""
        ...

    def ended(self) -> None:
        """Take note that the chunk is whole."""
        ...

    def trailer(self, name: str, value: str) -> None:
        """Take a header that follows the body."""
        ...


class ChunkParser:
    """Reads chunks as their bytes arrive."""

    def __init__(self, sink: ChunkSink) -> None:
        self._sink = sink
        self._line = b""
        self._left = 0
        self._expects = "size"
        self._trailers = 0

    @property
    def is_done(self) -> bool:
        """Whether the last chunk and its trailers have arrived."""
        return self._expects == "nothing"

    def feed(self, data: bytes) -> int:
        """Read `data`; return how many of its bytes belong to the body."""
        view = memoryview(data)
        at = 0
        while at < len(data) and self._expects != "nothing":
            is_data = self._expects == "data"
            at = self._take_data(view, at) if is_data else self._take_line(data, at)
        return at

    def _take_data(self, view: memoryview, at: int) -> int:
        piece = view[at : at + self._left]
        self._sink.data(piece)
        self._left -= len(piece)
        if self._left == 0:
            self._sink.ended()
            self._expects = "end"
        return at + len(piece)

    def _take_line(self, data: bytes, at: int) -> int:
        found = data.find(b"\n", at)
        end = len(data) if found < 0 else found + 1
        self._line += data[at:end]
        if len(self._line) > LINE_BYTES_MAX:
            raise BadChunk("a line between chunks is too long")
        if found >= 0:
            line, self._line = self._line, b""
            if not line.endswith(b"\r\n"):
                raise BadChunk("a line between chunks does not end with CRLF")
            self._read_line(line[:-2])
        return end

    def _read_line(self, line: bytes) -> None:
        if self._expects == "end":
            if line:
                raise BadChunk("a chunk is longer than its size")
            self._expects = "size"
        elif self._expects == "size":
            self._read_size(line)
        elif not line:
            self._expects = "nothing"
        else:
            self._read_trailer(line)

    def _read_size(self, line: bytes) -> None:
        match = _SIZE.fullmatch(line)
        if match is None:
            raise BadChunk("the size of a chunk is malformed")
        self._left = int(match[1], 16)
        if self._left > CHUNK_BYTES_MAX:
            raise BadChunk("a chunk is too large")
        self._sink.started(self._left, (match[2] or b"")[1:])
        self._expects = "data" if self._left else "trailers"
        if not self._left:
            self._sink.ended()

    def _read_trailer(self, line: bytes) -> None:
        match = _TRAILER.fullmatch(line)
        self._trailers += 1
        if match is None or self._trailers > TRAILERS_MAX:
            raise BadChunk("a trailer is malformed")
        self._sink.trailer(match[1].decode().lower(), match[2].decode().rstrip())
