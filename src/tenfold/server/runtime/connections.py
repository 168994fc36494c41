"""Limit how many connections there are and how slow they may be.

There are fewer connections than open files allowed, so that the journal, logs and spawners always
get a file. When all are in use, an idle one is closed to admit a new one. If none is idle, a few
more are admitted for health checks only, and everything else gets 503. A client that sends half a
request or stops reading its response is disconnected after a timeout.
"""

import asyncio
import logging
import resource
import socket
from typing import Any, NamedTuple, cast
from weakref import WeakSet

import h11
import msgspec
import uvicorn
from uvicorn._types import (
    ASGI3Application,
    ASGIReceiveCallable,
    ASGISendCallable,
    ASGISendEvent,
    Scope,
)
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from tenfold.server.runtime.health import PATHS

ACCEPTS_AT_ONCE = 32
"""Connections accepted before the first of them is handled."""
SPARE = 16
"""Extra connections beyond the limit, for health checks only."""
FILES_KEPT = 96
"""Files for the journal and its readers, logs and the spawner: 20 when idle, about 60 when busy."""
MOST = 4_096
LEAST = 8
HEAD_S = 20.0
"""From an open connection, or the first byte of the next request, to the end of its headers."""
SPARE_HEAD_S = 2.0
BODY_S = 60.0
"""From the headers to the last byte: 4 MiB over a slow line take half of this."""
UNREAD_S = 60.0
"""A client that reads nothing of its response for this long is disconnected."""
IDLE_S = 5
"""Between two requests on one connection."""
FRESH_S = 0.25
"""A new connection is not closed as idle before this."""
LOG_EVERY_S = 60.0
REFUSAL = {
    "type": "urn:tenfold:problem:too-many-connections",
    "title": "Service unavailable",
    "status": 503,
    "code": "too-many-connections",
    "detail": "all connections are in use",
    "hint": "try again later, or raise the open file limit of the server (`ulimit -n`)",
}
BODY = msgspec.json.encode(REFUSAL)
_CLOSE = (b"connection", b"close")
_HEADERS = [
    (b"content-type", b"application/problem+json"),
    (b"content-length", str(len(BODY)).encode()),
    (b"retry-after", b"1"),
    _CLOSE,
]
REFUSED = (
    b"HTTP/1.1 503 Service Unavailable\r\n"
    + b"".join(name + b": " + value + b"\r\n" for name, value in _HEADERS)
    + b"\r\n"
    + BODY
)
LATE = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_LOG = logging.getLogger("tenfold.server")


class ConnectionState(NamedTuple):
    """What a connection waits for; while this does not change, it makes no progress."""

    waits_for: str
    request: int
    unread: int = 0


class ConnectionTable(ServerState):
    """All connections of one server."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit
        self.handshaking: WeakSet[GuardedConnection] = WeakSet()
        """Accepted connections whose TLS handshake is not finished."""
        self.refused = 0
        self._logged_s = float("-inf")

    def has_capacity(self) -> bool:
        """Tell whether one more connection is allowed, if only for a health check."""
        return len(self.connections) + len(self.handshaking) < self.limit + SPARE

    def evict_idle(self, now_s: float) -> bool:
        """Close the oldest idle connection; tell whether there was one."""
        idle = [
            one
            for one in self.connections
            if isinstance(one, GuardedConnection)
            and one.is_unused
            and now_s - one.since_s > FRESH_S
        ]
        if not idle:
            return False
        min(idle, key=_age).close_now()
        return True

    def refuse(self, now_s: float) -> None:
        """Count a refused connection, and log it now and then."""
        self.refused += 1
        if now_s - self._logged_s > LOG_EVERY_S:
            self._logged_s = now_s
            _LOG.warning(
                "all %d connections are in use; refused %d so far; "
                "raise the open file limit (`ulimit -n`) to allow more",
                self.limit,
                self.refused,
            )

    def sweep(self, now_s: float) -> None:
        """Disconnect clients that make no progress; call it every second."""
        for one in list(self.connections):
            if isinstance(one, GuardedConnection):
                one.check(now_s)


class GuardedConnection(H11Protocol):
    """A connection that is checked every second, at no cost in between."""

    table: ConnectionTable

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        assert isinstance(self.server_state, ConnectionTable), "the server counts its connections"
        self.table = self.server_state
        self.is_spare = False
        self.since_s: float = self.loop.time()
        """When its state last changed."""
        self._state = ConnectionState("head", 0)
        self._requests = 0
        self._last: object = None
        if not self.table.has_capacity():
            self.table.refuse(self.since_s)
            if self.config.is_ssl:
                # No response is possible before the TLS handshake: asyncio drops the connection.
                raise ConnectionRefusedError
        self.table.handshaking.add(self)

    @property
    def is_unused(self) -> bool:
        """Whether it has sent nothing so far."""
        return (
            self._current_request() is None and not self.is_spare and not self.conn.trailing_data[0]
        )

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection; beyond the limit, for health checks only."""
        super().connection_made(transport)
        table = self.table
        table.handshaking.discard(self)
        if len(self.connections) <= table.limit or table.evict_idle(self.loop.time()):
            return
        self.is_spare = True
        self.app = cast("ASGI3Application", _health_only(self.app, table, self.loop))
        if len(self.connections) > table.limit + SPARE:
            transport.write(REFUSED)
            self.close_now()

    def close_now(self) -> None:
        """Close it and stop counting it."""
        self.connections.discard(self)
        self.transport.close()

    def check(self, now_s: float) -> None:
        """Check for progress; disconnect if there was none for too long."""
        standing = self._state_now()
        if standing != self._state:
            self._state, self.since_s = standing, now_s
            return
        waited_s = now_s - self.since_s
        if standing.waits_for == "head":
            if waited_s > (SPARE_HEAD_S if self.is_spare else HEAD_S):
                if self.conn.trailing_data[0]:
                    self.transport.write(LATE)
                self.close_now()
        elif standing.waits_for == "body":
            if waited_s > BODY_S:
                self._send_timeout()
                self.close_now()
        elif standing.unread and waited_s > UNREAD_S:
            # A close would wait for the client to read.
            self.transport.abort()

    def _current_request(self) -> RequestResponseCycle | None:
        """Return the latest request; uvicorn's types say there always is one."""
        return cast("RequestResponseCycle | None", self.cycle)

    def _send_timeout(self) -> None:
        current = self._current_request()
        if current is not None and not current.response_started:
            self.transport.write(LATE)

    def _state_now(self) -> ConnectionState:
        cycle = self._current_request()
        if cycle is not self._last:
            self._last = cycle
            self._requests += 1
        unread = self.transport.get_write_buffer_size()
        if unread:
            return ConnectionState("reader", self._requests, unread)
        if cycle is None or cycle.response_complete:
            # After a response, uvicorn's own timer closes the connection.
            kind = "head" if self.timeout_keep_alive_task is None else "next"
            return ConnectionState(kind, self._requests)
        is_sending = cycle.more_body and self.conn.their_state is h11.SEND_BODY
        return ConnectionState("body" if is_sending else "answer", self._requests)


class GuardedServer(uvicorn.Server):
    """A server that limits its connections."""

    def __init__(self, config: uvicorn.Config, limit: int) -> None:
        super().__init__(config)
        self.server_state: ServerState = ConnectionTable(limit)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start accepting connections, a few at a time; the others wait in the kernel."""
        waiting = self.config.backlog
        self.config.backlog = ACCEPTS_AT_ONCE
        await super().startup(sockets)
        for one in sockets or []:
            one.listen(waiting)

    async def on_tick(self, counter: int) -> bool:
        """Check connections every second."""
        if counter % 10 == 0 and isinstance(self.server_state, ConnectionTable):
            self.server_state.sweep(asyncio.get_running_loop().time())
        return await super().on_tick(counter)


def max_connections() -> int:
    """Return how many connections this process can have with its open file limit.

    Every fourth may be a stream, which may hold another file.
    """
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files == resource.RLIM_INFINITY:
        return MOST
    return max(LEAST, min(MOST, (files - FILES_KEPT - SPARE - ACCEPTS_AT_ONCE) * 4 // 5))


def _health_only(
    app: ASGI3Application, table: ConnectionTable, loop: asyncio.AbstractEventLoop
) -> "object":
    """Return an application that answers health checks and refuses everything else."""

    async def answer(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        async def closing(message: ASGISendEvent) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), _CLOSE]
            await send(message)

        if scope["type"] == "http" and scope["path"] in PATHS:
            await app(scope, receive, closing)
            return
        table.refuse(loop.time())
        await send({"type": "http.response.start", "status": 503, "headers": _HEADERS})
        await send({"type": "http.response.body", "body": BODY, "more_body": False})

    return answer


def _age(one: GuardedConnection) -> float:
    return one.since_s
