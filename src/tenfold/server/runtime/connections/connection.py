"""Limit how many connections there are, what they may send, and how slow they may be.

There are fewer connections than open files allowed, so that the journal, logs and spawners always
get a file. A connection counts as unauthenticated until it has sent a valid token; those have a
small budget of their own, TLS handshakes included, and when it is used up, the oldest that has not
sent a request is closed to admit a new one. Afterwards it counts for its token and team. When all
connections are in use, an idle one is closed. If none is idle, a few more are admitted for health
checks only, and everything else gets 503. A client that sends half a request or stops reading its
response is disconnected after a timeout.
"""

import asyncio
import logging
import resource
from collections import deque
from typing import Any, NamedTuple, Protocol, cast

import h11
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from tenfold.server.runtime.admission import CONNECTION, Budgets
from tenfold.server.runtime.budgets import Exceeded, Flow, Limits
from tenfold.server.runtime.connections.parser import RequestParser
from tenfold.server.runtime.connections.responses import LATE, REFUSED, bad_request, health_only

ACCEPTS_AT_ONCE = 32
"""Connections accepted before the first of them is handled."""
SPARE = 16
"""Extra connections beyond the limit, for health checks only."""
FILES_KEPT = 96
"""Files for the journal and its readers, logs and the spawner: 20 when idle, about 60 when busy."""
MOST = 4_096
LEAST = 8
HEAD_S = 10.0
"""From an open connection, or the first byte of the next request, to the end of its headers."""
UNAUTHENTICATED_SHARE = 4
"""One in this many connections may be unauthenticated."""
SPARE_HEAD_S = 2.0
BODY_S = 60.0
"""From the headers to the last byte: 4 MiB over a slow line take half of this."""
UNREAD_S = 60.0
"""A client that reads nothing of its response for this long is disconnected."""
IDLE_S = 5
"""Between two requests on one connection."""
FRESH_S = 0.25
"""A new connection is not closed as idle before this."""
DISCARDS_AT_ONCE = 4
DISCARD_S = 0.01
"""So many connections are read in this time whose request was answered before its body had come.
Otherwise, hundreds of large bodies that are refused would be read first, and others answered last.
"""
LOG_EVERY_S = 60.0
_LOG = logging.getLogger("tenfold.server")


class ConnectionState(NamedTuple):
    """What a connection waits for; while this does not change, it makes no progress."""

    waits_for: str
    request: int
    unread: int = 0


class NewConnection(Protocol):
    """A connection without a valid token so far, or its TLS handshake."""

    opened_s: float

    @property
    def is_silent(self) -> bool:
        """Whether it has not sent a whole request so far."""
        ...

    def close_now(self) -> None:
        """Close it and stop counting it."""
        ...


class ConnectionTable(ServerState):
    """All connections of one server."""

    def __init__(self, limit: int, budgets: Budgets | None = None) -> None:
        super().__init__()
        self.limit = limit
        self.budgets = budgets or Budgets(Limits(connections=limit))
        most = self.budgets.limits.unauthenticated_connections
        self.unauthenticated_limit = max(LEAST, min(most, limit // UNAUTHENTICATED_SHARE))
        self.unauthenticated: dict[NewConnection, None] = {}
        """Connections without a valid token so far, oldest first."""
        self.handshakes: set[NewConnection] = set()
        self.refused = 0
        self._discarding = deque[GuardedConnection]()
        """Connections that are not read for now: nobody waits for what they send."""
        self._logged_s = float("-inf")

    @property
    def count(self) -> int:
        """How many there are, with those in a TLS handshake."""
        return len(self.connections) + len(self.handshakes)

    def admit(self, one: NewConnection, now_s: float) -> bool:
        """Count a new connection as unauthenticated; False if there are too many."""
        if len(self.unauthenticated) >= self.unauthenticated_limit and not self._evict_silent(
            now_s
        ):
            return False
        self.unauthenticated[one] = None
        return True

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
                "all %d connections are in use, or all %d of those without a valid token; "
                "rejected %d so far; raise the open file limit (`ulimit -n`) to allow more",
                self.limit,
                self.unauthenticated_limit,
                self.refused,
            )

    def discard_later(self, one: "GuardedConnection") -> None:
        """Read the rest of a body that is not needed in turn with others, a part at a time."""
        if not self._discarding:
            one.loop.call_later(DISCARD_S, self._discard_some)
        self._discarding.append(one)

    def _discard_some(self) -> None:
        for _ in range(min(DISCARDS_AT_ONCE, len(self._discarding))):
            one = self._discarding.popleft()
            if not one.is_lost:
                one.flow.resume_reading()
        if self._discarding:
            self._discarding[0].loop.call_later(DISCARD_S, self._discard_some)

    def sweep(self, now_s: float) -> None:
        """Disconnect clients that make no progress; call it every second."""
        for one in list(self.connections):
            if isinstance(one, GuardedConnection):
                one.check(now_s)

    def close_handshakes(self) -> None:
        """End all TLS handshakes, so that the server can stop."""
        for one in list(self.handshakes):
            one.close_now()

    def _evict_silent(self, now_s: float) -> bool:
        """Close the oldest connection that has sent no request; tell whether there was one."""
        for one in self.unauthenticated:
            if now_s - one.opened_s <= FRESH_S:
                return False
            if one.is_silent:
                one.close_now()
                return True
        return False


class GuardedConnection(H11Protocol):
    """A connection that is checked every second, at no cost in between."""

    table: ConnectionTable

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        assert isinstance(self.server_state, ConnectionTable), "the server counts its connections"
        self.table = self.server_state
        self.conn = self._parser = RequestParser()
        self.app_state = {**self.app_state, CONNECTION: self}
        self.is_spare = self.is_lost = False
        self.opened_s: float = self.loop.time()
        self.since_s: float = self.opened_s
        """When its state last changed."""
        self._state = ConnectionState("head", 0)
        self._requests = 0
        self._last: object = None
        self._owner: Flow | None = None
        self._early = b""

    @property
    def is_unused(self) -> bool:
        """Whether it has sent nothing so far."""
        return (
            self._current_request() is None and not self.is_spare and not self.conn.trailing_data[0]
        )

    @property
    def is_silent(self) -> bool:
        """Whether it has not sent a whole request so far."""
        return self._current_request() is None and not self.is_spare

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection; beyond the limit, for health checks only."""
        super().connection_made(transport)
        table, now_s = self.table, self.loop.time()
        # One that went through a TLS handshake was admitted before it.
        is_admitted = self in table.unauthenticated or table.admit(self, now_s)
        if is_admitted and (table.count <= table.limit or table.evict_idle(now_s)):
            self._read_early()
            return
        table.unauthenticated.pop(self, None)
        self.is_spare = True
        self.app = cast("ASGI3Application", health_only(self.app, table.refuse, self.loop))
        if table.count > table.limit + SPARE:
            table.refuse(now_s)
            transport.write(REFUSED)
            self.close_now()
            return
        self._read_early()

    def data_received(self, data: bytes) -> None:
        """Read a part of a request; after a TLS handshake it may come before all is set up."""
        if cast("asyncio.Transport | None", self.transport) is None:
            self._early += data
        else:
            super().data_received(data)
            if self._is_discarding():
                self.flow.pause_reading()
                self.table.discard_later(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop counting it."""
        self.is_lost = True
        self._uncount()
        self.app_state = {}
        if cast("asyncio.Transport | None", self.transport) is not None:
            super().connection_lost(exc)

    def claim(self, flow: Flow) -> Exceeded | None:
        """Count it for a token instead of as unauthenticated; return what is used up."""
        if flow == self._owner or self.is_lost:
            return None
        connections = self.table.budgets.connections
        exceeded = connections.take(flow)
        if exceeded is not None:
            return exceeded
        self._uncount()
        self._owner = flow
        return None

    async def drained(self) -> None:
        """Return once the client has read nearly all that was written."""
        await self.flow.drain()

    def abort(self) -> None:
        """Disconnect at once; a close would wait for the client to read."""
        self.transport.abort()

    def close_now(self) -> None:
        """Close it and stop counting it."""
        self.connections.discard(self)
        self._uncount()
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not a request, with the reason."""
        status = getattr(self._parser, "status", 400)
        current = self._current_request()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(bad_request(status, self._parser.wrong or msg))
        if current is not None:
            current.disconnected = True
        self.transport.close()

    def _is_discarding(self) -> bool:
        """Tell whether the rest of a body still comes whose request has been answered."""
        cycle = self._current_request()
        return (
            cycle is not None
            and cycle.response_complete
            and not self.is_lost
            and self.conn.their_state is h11.SEND_BODY
        )

    def _uncount(self) -> None:
        self.table.unauthenticated.pop(self, None)
        flow, self._owner = self._owner, None
        if flow is not None:
            self.table.budgets.connections.give(flow)

    def _read_early(self) -> None:
        early, self._early = self._early, b""
        if early:
            super().data_received(early)

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
            self.abort()

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


def max_connections() -> int:
    """Return how many connections this process can have with its open file limit.

    Every fourth may be a stream, which may hold another file.
    """
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files == resource.RLIM_INFINITY:
        return MOST
    return max(LEAST, min(MOST, (files - FILES_KEPT - SPARE - ACCEPTS_AT_ONCE) * 4 // 5))


def _age(one: GuardedConnection) -> float:
    return one.since_s
