"""Connections of clients: those that send or read too slowly are closed."""

import asyncio
from typing import Any

from aiohttp.web import BaseRequest, RequestHandler, Response, Server, StreamResponse

from tenfold.gateway.admit.refusals import error_body
from tenfold.gateway.forward.relay import SERVER

HEADERS_S = 10.0
"""In which the head of a request arrives, from its first byte."""
IDLE_S = 75.0
"""For which a connection may stay without a request."""
WRITE_S = 60.0
"""For which a client may take nothing of an answer."""
LINE_BYTES_MAX = 16 << 10
FIELD_BYTES_MAX = 16 << 10
HEADERS_MAX = 100


class Connection(RequestHandler):
    """One connection, with the times since when it waits for its client."""

    __slots__ = ("is_busy", "reading_since_s", "writing_since_s")

    def __init__(self, manager: Server, *, loop: asyncio.AbstractEventLoop, **options: Any):
        super().__init__(manager, loop=loop, **options)
        self.is_busy = False
        """Whether a request on it is being answered."""
        self.reading_since_s = 0.0
        """When the head of a request began to arrive; 0 if none is arriving."""
        self.writing_since_s = 0.0
        """Since when the client takes nothing; 0 if it does."""

    def data_received(self, data: bytes) -> None:
        """Note when the head of a request begins."""
        if not self.is_busy and not self.reading_since_s:
            self.reading_since_s = asyncio.get_running_loop().time()
        super().data_received(data)

    def pause_writing(self) -> None:
        """Note that the client takes nothing."""
        self.writing_since_s = asyncio.get_running_loop().time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Note that the client takes data again."""
        self.writing_since_s = 0.0
        super().resume_writing()

    def is_overdue(self, now_s: float) -> bool:
        """Tell whether the client is too slow."""
        reading_s, writing_s = self.reading_since_s, self.writing_since_s
        return bool(
            (reading_s and not self.is_busy and now_s - reading_s > HEADERS_S)
            or (writing_s and now_s - writing_s > WRITE_S)
        )

    def abort(self) -> None:
        """Close it at once, without sending what the client does not take."""
        if self.transport is not None:
            self.transport.abort()

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> StreamResponse:
        """Answer what is not HTTP, or what met a bug, without repeating what was sent."""
        if isinstance(exc, ConnectionResetError):
            # The client left while its answer was being written: that is no error of ours, and
            # whoever does it often is not to fill the log.
            raise exc
        if status >= 500:
            self.logger.error("error while answering", exc_info=exc)
        if self.transport is not None and self.transport.get_write_buffer_size() > 0:
            raise ConnectionError("an answer has begun; no other can be sent")
        code, text = ("invalid_request", "not a valid HTTP request")
        if status >= 500:
            code, text = "internal_error", "internal error of the gateway"
        response = Response(
            body=error_body(code, text),
            status=status,
            content_type="application/json",
            headers={"Server": SERVER},
        )
        response.force_close()
        return response


class Connections(Server):
    """The server side of all connections to one address."""

    def __init__(self, handler: Any, connections_max: int) -> None:
        options: dict[str, Any] = {
            "keepalive_timeout": IDLE_S,
            "max_line_size": LINE_BYTES_MAX,
            "max_field_size": FIELD_BYTES_MAX,
            "max_headers": HEADERS_MAX,
            "lingering_time": 2.0,
            "auto_decompress": False,
            "access_log": None,
        }
        super().__init__(handler, handler_cancellation=True, **options)
        self._options = options
        self._connections_max = connections_max

    def __call__(self) -> RequestHandler:
        """Return the protocol of a new connection."""
        return Connection(self, loop=asyncio.get_running_loop(), **self._options)

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        """Refuse a connection beyond what descriptors allow."""
        super().connection_made(handler, transport)
        if len(self._connections) > self._connections_max:
            transport.abort()

    def sweep(self, now_s: float) -> None:
        """Close connections whose clients are too slow."""
        for one in self.connections:
            if isinstance(one, Connection) and one.is_overdue(now_s):
                one.abort()
