"""Connections, and how many and how slow they may be: nobody takes the door away from others.

There are fewer of them than files that may be open, so that the journal, logs and spawners are
never out of reach. One that was opened and asks nothing makes room for one that may. Where all
are at work, a few more are let in to ask whether the server is well; everybody else is told to
come later. Whoever sends half a request, or reads nothing of an answer, is let go after a while.
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
"""Connections that are taken before the first of them is looked at."""
SPARE = 16
"""Beyond the most: only to ask whether the server is well."""
FILES_KEPT = 96
"""For the journal and its readers, logs, the spawner. Idle it has 20, busy about 60."""
MOST = 4_096
LEAST = 8
HEAD_S = 20.0
"""From an open connection, or the first byte of the next request, to the end of its headers."""
SPARE_HEAD_S = 2.0
BODY_S = 60.0
"""From the headers to the last byte: 4 MiB over a slow line take half of it."""
UNREAD_S = 60.0
"""A client that takes nothing of its answer for so long is gone."""
IDLE_S = 5
"""Between two requests on one connection."""
FRESH_S = 0.25
"""Whoever has just come is not sent away for having asked nothing."""
SAID_EVERY_S = 60.0
REFUSAL = {
    "type": "urn:tenfold:problem:too-many-connections",
    "title": "Not available",
    "status": 503,
    "code": "too-many-connections",
    "detail": "every connection that the server can have is in use",
    "hint": "close some, ask again later, or start it with more open files (ulimit -n)",
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


class Standing(NamedTuple):
    """What a connection waits for; while it stays equal, nothing has come of it."""

    waits_for: str
    request: int
    unread: int = 0


class Crowd(ServerState):
    """All connections of one server."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most
        self.greeting: WeakSet[Guarded] = WeakSet()
        """Those that were taken and are not connected yet: TLS is being agreed on."""
        self.refused = 0
        self._said_s = float("-inf")

    def has_room(self) -> bool:
        """Tell whether one more may come, if only to ask after the server's health."""
        return len(self.connections) + len(self.greeting) < self.most + SPARE

    def made_room(self, now_s: float) -> bool:
        """Close the oldest connection that has asked nothing yet; tell whether there was one."""
        idle = [
            one
            for one in self.connections
            if isinstance(one, Guarded) and one.never_asked and now_s - one.since_s > FRESH_S
        ]
        if not idle:
            return False
        min(idle, key=_age).leave()
        return True

    def refuse(self, now_s: float) -> None:
        """Count one that was turned away, and say so now and then."""
        self.refused += 1
        if now_s - self._said_s > SAID_EVERY_S:
            self._said_s = now_s
            _LOG.warning(
                "all %d connections are in use: others are told to come later, %d so far; "
                "more open files (ulimit -n) allow more",
                self.most,
                self.refused,
            )

    def sweep(self, now_s: float) -> None:
        """Let go of those that have been waited for too long; call it every second."""
        for one in list(self.connections):
            if isinstance(one, Guarded):
                one.look(now_s)


class Guarded(H11Protocol):
    """A connection that is looked at every second, and costs nothing in between."""

    crowd: Crowd

    def __init__(self, *args: Any, **words: Any) -> None:
        super().__init__(*args, **words)
        assert isinstance(self.server_state, Crowd), "the server counts its connections"
        self.crowd = self.server_state
        self.is_spare = False
        self.since_s: float = self.loop.time()
        """Since when it stands as it does."""
        self._standing = Standing("head", 0)
        self._requests = 0
        self._last: object = None
        if not self.crowd.has_room():
            self.crowd.refuse(self.since_s)
            if self.config.is_ssl:
                # Nothing can be said before TLS is agreed on: asyncio drops the connection.
                raise ConnectionRefusedError
        self.crowd.greeting.add(self)

    @property
    def never_asked(self) -> bool:
        """Whether nothing has come from it so far."""
        return self._asked() is None and not self.is_spare and not self.conn.trailing_data[0]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection; beyond the most of them for a question of health alone."""
        super().connection_made(transport)
        crowd = self.crowd
        crowd.greeting.discard(self)
        if len(self.connections) <= crowd.most or crowd.made_room(self.loop.time()):
            return
        self.is_spare = True
        self.app = cast("ASGI3Application", _health_alone(self.app, crowd, self.loop))
        if len(self.connections) > crowd.most + SPARE:
            transport.write(REFUSED)
            self.leave()

    def leave(self) -> None:
        """Close it; it is not counted any more."""
        self.connections.discard(self)
        self.transport.close()

    def look(self, now_s: float) -> None:
        """See whether anything has come of what it waits for, and let it go where nothing has."""
        standing = self._stands()
        if standing != self._standing:
            self._standing, self.since_s = standing, now_s
            return
        waited_s = now_s - self.since_s
        if standing.waits_for == "head":
            if waited_s > (SPARE_HEAD_S if self.is_spare else HEAD_S):
                if self.conn.trailing_data[0]:
                    self.transport.write(LATE)
                self.leave()
        elif standing.waits_for == "body":
            if waited_s > BODY_S:
                self._say_late()
                self.leave()
        elif standing.unread and waited_s > UNREAD_S:
            # Closing would wait for it to read.
            self.transport.abort()

    def _asked(self) -> RequestResponseCycle | None:
        """Return the latest request, which uvicorn says is always there."""
        return cast("RequestResponseCycle | None", self.cycle)

    def _say_late(self) -> None:
        asked = self._asked()
        if asked is not None and not asked.response_started:
            self.transport.write(LATE)

    def _stands(self) -> Standing:
        cycle = self._asked()
        if cycle is not self._last:
            self._last = cycle
            self._requests += 1
        unread = self.transport.get_write_buffer_size()
        if unread:
            return Standing("reader", self._requests, unread)
        if cycle is None or cycle.response_complete:
            # After an answer, uvicorn's own timer ends the connection until the next byte comes.
            kind = "head" if self.timeout_keep_alive_task is None else "next"
            return Standing(kind, self._requests)
        is_sending = cycle.more_body and self.conn.their_state is h11.SEND_BODY
        return Standing("body" if is_sending else "answer", self._requests)


class GuardedServer(uvicorn.Server):
    """A server whose connections are looked after."""

    def __init__(self, config: uvicorn.Config, most: int) -> None:
        super().__init__(config)
        self.server_state: ServerState = Crowd(most)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to take connections, some at a time; others wait in the kernel."""
        waiting = self.config.backlog
        self.config.backlog = ACCEPTS_AT_ONCE
        await super().startup(sockets)
        for one in sockets or []:
            one.listen(waiting)

    async def on_tick(self, counter: int) -> bool:
        """Look after connections every second."""
        if counter % 10 == 0 and isinstance(self.server_state, Crowd):
            self.server_state.sweep(asyncio.get_running_loop().time())
        return await super().on_tick(counter)


def connections_most() -> int:
    """Return how many connections this process can have with the files that it may open.

    Every fourth may be a stream, which may hold a file of its own.
    """
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files == resource.RLIM_INFINITY:
        return MOST
    return max(LEAST, min(MOST, (files - FILES_KEPT - SPARE - ACCEPTS_AT_ONCE) * 4 // 5))


def _health_alone(app: ASGI3Application, crowd: Crowd, loop: asyncio.AbstractEventLoop) -> "object":
    """Return an application that answers questions of health, and turns everything else away."""

    async def answer(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        async def closing(message: ASGISendEvent) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), _CLOSE]
            await send(message)

        if scope["type"] == "http" and scope["path"] in PATHS:
            await app(scope, receive, closing)
            return
        crowd.refuse(loop.time())
        await send({"type": "http.response.start", "status": 503, "headers": _HEADERS})
        await send({"type": "http.response.body", "body": BODY, "more_body": False})

    return answer


def _age(one: Guarded) -> float:
    return one.since_s
