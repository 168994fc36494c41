"""Requests and answers, as operations see them."""

from collections.abc import AsyncIterator, Callable
from http import HTTPStatus

from msgspec import Struct, field

from tenfold.objects.blobs.refs import BlobReading
from tenfold.objects.s3.http.body import Body
from tenfold.objects.s3.http.head import Head


class Request(Struct):
    """A request; its body may still be arriving."""

    id: str
    head: Head
    body: Body
    peer: str
    is_tls: bool = False


class Stream(Struct):
    """A body that is read from blobs while it is sent."""

    length: int
    readings: Callable[[], AsyncIterator[BlobReading]]
    rest: AsyncIterator[BlobReading] | None = None
    first: BlobReading | None = None

    async def begin(self) -> None:
        """Open the first blob: what cannot be read is refused before a head is sent."""
        self.rest = self.readings()
        self.first = await anext(self.rest, None)

    async def opened(self) -> AsyncIterator[BlobReading]:
        """Yield each blob, open; the caller closes it."""
        if self.rest is None:
            await self.begin()
        first, self.first = self.first, None
        if first is not None:
            yield first
        assert self.rest is not None
        async for reading in self.rest:
            yield reading

    async def close(self) -> None:
        """Release what was opened and not sent."""
        first, self.first = self.first, None
        if first is not None:
            await first.close()


class Answer(Struct):
    """What is sent back."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    stream: Stream | None = None
    head_length: int | None = None
    """The Content-Length of an answer to HEAD."""
    closes: bool = False
    code: str = ""
    """The S3 error code, for metrics."""


_REASONS = {status.value: status.phrase for status in HTTPStatus}


def encode_head(answer: Answer, fixed: str, is_head: bool, closes: bool) -> bytes:
    """Return the status line and the headers."""
    lines = [f"HTTP/1.1 {answer.status} {_REASONS.get(answer.status, '')}\r\n{fixed}"]
    lines += [f"{name}: {value}\r\n" for name, value in answer.headers.items()]
    if answer.status not in (204, 304):
        length = len(answer.body) if answer.stream is None else answer.stream.length
        if is_head and answer.head_length is not None:
            length = answer.head_length
        lines.append(f"content-length: {length}\r\n")
    lines.append("connection: close\r\n\r\n" if closes else "\r\n")
    return "".join(lines).encode("latin-1", "replace")
