"""One connection: requests in, answers out, one after the other.

Data that arrives during an answer waits: at most one head and one block of it. A client that is
slow to send its head, its body, or to read its answer is cut off by `sweep`.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, cast

from msgspec import Struct

from tenfold.objects.blobs.refs import BlobReading
from tenfold.objects.s3.http.answer import Answer, Request, Stream, encode_head
from tenfold.objects.s3.http.body import Body, BodyFailed
from tenfold.objects.s3.http.chunks import BadChunk, ChunkParser
from tenfold.objects.s3.http.files import ClientGone, FileSender, pieces_of, read_region
from tenfold.objects.s3.http.head import HEAD_BYTES_MAX, BadHead, Head, parse_head

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
DRAIN_BYTES_MAX = 256 << 10
"""A body that was not read is awaited up to this size; beyond it, closing is cheaper."""
SMALL_BYTES = 128 << 10
"""Up to this size, files are read and sent with the head in one call."""
WRITE_BUFFER_BYTES = 1 << 20
FLUSH_S = 0.002

_LOG = logging.getLogger("tenfold.objects")


class Timeouts(Struct, frozen=True):
    """How long a client may take, in seconds."""

    head_s: float = 20.0
    idle_s: float = 75.0
    progress_s: float = 60.0
    """Without one byte in either direction during a request."""


class Service(Protocol):
    """What answers the requests of all connections."""

    timeouts: Timeouts

    def opened(self, connection: "Connection") -> bool:
        """Take note of a connection; False to refuse it."""
        ...

    def closed(self, connection: "Connection") -> None:
        """Take note that a connection is gone."""
        ...

    def request_of(self, head: Head, body: Body, peer: str) -> Request:
        """Give a request its id."""
        ...

    async def answer(self, request: Request) -> Answer:
        """Answer a request; never raises."""
        ...

    def refusal(self, error: BadHead) -> Answer:
        """Answer what is no request."""
        ...

    def fixed_headers(self, request_id: str) -> str:
        """Return the headers that every answer has."""
        ...

    def sent(self, request: Request, answer: Answer, sent_bytes: int, seconds: float) -> None:
        """Take note of an answer that was sent."""
        ...


class Connection(asyncio.Protocol):
    """A client's connection."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._sender: FileSender | None = None
        self._buffer = b""
        self._body: Body | None = None
        self._body_left = 0
        self._chunks: ChunkParser | None = None
        self._task: asyncio.Task[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._awaits_continue = False
        self._is_closing = False
        self._peer = ""
        self._since_s = self._loop.time()
        self._sent_mark = 0
        self._drained = 0

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered."""
        return self._task is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        peer = self._transport.get_extra_info("peername")
        self._peer = str(peer[0]) if peer else ""
        if not self._service.opened(self):
            self._transport.write(
                b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n"
                b"connection: close\r\nretry-after: 1\r\n\r\n"
            )
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """End whatever is under way."""
        del exc
        self._is_closing = True
        self._service.closed(self)
        if self._body is not None:
            self._body.fail(BodyFailed("IncompleteBody", "the client closed the connection"))
        if self._writable is not None and not self._writable.done():
            self._writable.set_exception(ClientGone("the client closed the connection"))
        if self._sender is not None:
            self._sender.close()
            self._sender = None

    def eof_received(self) -> bool:
        """Close once the answer under way is sent."""
        self._is_closing = True
        if self._body is not None and not self._body.is_whole:
            self._body.fail(BodyFailed("IncompleteBody", "the body ended before its length"))
        return self.is_busy

    def data_received(self, data: bytes) -> None:
        """Take bytes of a body, or of the next head."""
        self._since_s = self._loop.time() if self.is_busy or not self._buffer else self._since_s
        if self._body is not None and not self._body.is_whole:
            data = self._feed_body(data)
        if not data:
            return
        self._buffer += data
        if not self.is_busy:
            self._next()
        elif len(self._buffer) > HEAD_BYTES_MAX and self._transport is not None:
            self._transport.pause_reading()

    def pause_writing(self) -> None:
        """Make the answer wait for the client."""
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        """Let the answer go on."""
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    def wants_body(self) -> None:
        """Ask the client to send the body, if it waits for that."""
        if self._awaits_continue and self._transport is not None:
            self._awaits_continue = False
            self._transport.write(CONTINUE)

    def pause(self, is_paused: bool) -> None:
        """Stop or resume reading from the socket."""
        if self._transport is None or self._transport.is_closing():
            return
        if is_paused:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def finish(self) -> None:
        """Close when the request under way is answered, or now."""
        self._is_closing = True
        if not self.is_busy and self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close now, whatever is under way."""
        if self._transport is not None:
            self._transport.abort()

    def sweep(self, now_s: float) -> None:
        """Cut off a client that takes too long."""
        limits = self._service.timeouts
        waited_s = now_s - self._since_s
        if not self.is_busy:
            if waited_s > (limits.head_s if self._buffer else limits.idle_s):
                self.abort()
            return
        if self._has_progress():
            self._since_s = now_s
        elif waited_s > limits.progress_s:
            self._stalled()

    def _has_progress(self) -> bool:
        sent = self._sender.sent_bytes if self._sender is not None else 0
        moved, self._sent_mark = sent != self._sent_mark, sent
        return moved

    def _stalled(self) -> None:
        body = self._body
        if body is not None and not body.is_whole:
            body.fail(BodyFailed("RequestTimeout", "the body did not arrive in time"))
            self._is_closing = True
        elif self._writable is not None or self._sender is not None:
            self.abort()

    def _feed_body(self, data: bytes) -> bytes:
        """Give a body its bytes; return what follows it."""
        body = self._body
        assert body is not None
        if self._chunks is not None:
            try:
                used = self._chunks.feed(data)
            except BadChunk as error:
                body.fail(BodyFailed("IncompleteBody", str(error)))
                self._is_closing = True
                return b""
            if self._chunks.is_done:
                body.finish()
            return data[used:]
        mine, rest = data, b""
        if len(data) > self._body_left:
            mine, rest = data[: self._body_left], data[self._body_left :]
        self._body_left -= len(mine)
        body.feed(mine)
        if self._body_left == 0:
            body.finish()
        return rest

    def _next(self) -> None:
        """Begin with the next request, if its head is complete."""
        # Some clients send an empty line after a body.
        if self._buffer.startswith(b"\r\n"):
            self._buffer = self._buffer.lstrip(b"\r\n")
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0 or end > HEAD_BYTES_MAX:
            if len(self._buffer) > HEAD_BYTES_MAX:
                self._refuse(
                    BadHead("the request head is too large", "RequestHeaderSectionTooLarge")
                )
            return
        raw, rest = self._buffer[:end], self._buffer[end + 4 :]
        self._buffer = b""
        try:
            head = parse_head(raw)
        except BadHead as error:
            self._refuse(error)
            return
        body = Body(self, head.length)
        self._body, self._chunks = body, None
        if head.length is None:
            self._chunks = ChunkParser(_Plain(body))
        else:
            self._body_left = head.length
        self._awaits_continue = head.expects_continue
        request = self._service.request_of(head, body, self._peer)
        self._task = self._loop.create_task(self._serve(request))
        if rest:
            self._buffer = self._feed_body(rest) if not body.is_whole else rest

    def _refuse(self, error: BadHead) -> None:
        if self._transport is None:
            return
        answer = self._service.refusal(error)
        self._buffer = b""
        self._is_closing = True
        head = encode_head(answer, self._service.fixed_headers(""), False, True)
        self._transport.write(head + answer.body)
        self._transport.close()

    async def _serve(self, request: Request) -> None:
        started_s = self._loop.time()
        answer = await self._service.answer(request)
        sent_bytes = 0
        try:
            sent_bytes = await self._send(request, answer)
            await self._end_body(request)
        except ClientGone:
            self.abort()
        except Exception:
            _LOG.exception("request %s failed while its answer was sent", request.id)
            self.abort()
        finally:
            if answer.stream is not None:
                await answer.stream.close()
        self._service.sent(request, answer, sent_bytes, self._loop.time() - started_s)
        self._task = None
        self._since_s = self._loop.time()
        self._go_on()

    def _go_on(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if self._is_closing:
            transport.close()
            return
        self._body = None
        if len(self._buffer) > HEAD_BYTES_MAX:
            transport.resume_reading()
        if self._buffer:
            self._next()

    async def _end_body(self, request: Request) -> None:
        """Read and drop a small rest of the body, so that the connection can go on."""
        body = request.body
        if body.is_whole:
            body.drop()
            return
        left = self._body_left if body.length is not None else DRAIN_BYTES_MAX + 1
        if self._is_closing or self._awaits_continue or left > DRAIN_BYTES_MAX:
            self._is_closing = True
            return
        with suppress(BodyFailed):
            while await body.read():
                pass

    async def _send(self, request: Request, answer: Answer) -> int:
        transport = self._transport
        if transport is None or transport.is_closing():
            raise ClientGone("the client closed the connection")
        self._is_closing |= self._must_close(request, answer)
        is_head = request.head.method == "HEAD"
        fixed = self._service.fixed_headers(request.id)
        head = encode_head(answer, fixed, is_head, self._is_closing)
        if answer.stream is not None and not is_head:
            await self._send_stream(transport, head, answer.stream)
            return answer.stream.length
        body = b"" if is_head else answer.body
        transport.write(head + body if body else head)
        if self._writable is not None:
            await self._writable
        return len(body)

    def _must_close(self, request: Request, answer: Answer) -> bool:
        if answer.closes or not request.head.keeps_alive:
            return True
        # The client waits for a go-ahead that it will not get, or sends what nobody reads.
        body = request.body
        if body.is_whole:
            return False
        return self._awaits_continue or body.length is None or self._body_left > DRAIN_BYTES_MAX

    async def _send_stream(self, transport: asyncio.Transport, head: bytes, stream: Stream) -> None:
        async for reading in stream.opened():
            try:
                head = await self._send_reading(transport, head, reading, stream.length)
            finally:
                await reading.close()
        if head:
            transport.write(head)

    async def _send_reading(
        self, transport: asyncio.Transport, head: bytes, reading: BlobReading, length: int
    ) -> bytes:
        """Send one blob, with the head in front of the first."""
        is_copied = length <= SMALL_BYTES or transport.get_extra_info("sslcontext") is not None
        is_flushed = False
        async for piece in reading.pieces():
            if isinstance(piece, bytes):
                head = await self._write(transport, head, piece)
                is_flushed = False
            elif is_copied:
                for part in pieces_of(piece):
                    head = await self._write(transport, head, await read_region(part))
            else:
                if not is_flushed:
                    await self._flushed(transport, head)
                    head, is_flushed = b"", True
                await self._file_sender(transport).send(piece)
        return head

    async def _write(self, transport: asyncio.Transport, head: bytes, chunk: bytes) -> bytes:
        transport.write(head + chunk if head else chunk)
        if self._writable is not None:
            await self._writable
        return b""

    async def _flushed(self, transport: asyncio.Transport, head: bytes) -> None:
        """Wait until all that was written is with the kernel: files are sent past the loop."""
        transport.set_write_buffer_limits(high=0)
        try:
            if head:
                transport.write(head)
            while transport.get_write_buffer_size():
                if transport.is_closing():
                    raise ClientGone("the client closed the connection")
                await (self._writable or asyncio.sleep(FLUSH_S))
        finally:
            transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)

    def _file_sender(self, transport: asyncio.Transport) -> FileSender:
        if self._sender is None:
            self._sender = FileSender(transport.get_extra_info("socket").fileno())
        return self._sender


class _Plain:
    """Chunks of `Transfer-Encoding: chunked`: only their data matters."""

    def __init__(self, body: Body) -> None:
        self._body = body

    def started(self, size_bytes: int, extension: bytes) -> None:
        """Nothing to do."""

    def data(self, data: memoryview) -> None:
        """Pass the data on."""
        self._body.feed(bytes(data))

    def ended(self) -> None:
        """Nothing to do."""

    def trailer(self, name: str, value: str) -> None:
        """Trailers that nobody asked for are dropped."""


def connection_factory(service: Service) -> Callable[[], Connection]:
    """Return what a listening socket makes of each client."""
    return lambda: Connection(service)
