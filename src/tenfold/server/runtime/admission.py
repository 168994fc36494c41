"""Admit requests within budgets: who sends too much is refused, and others do not notice.

A request passes in this order: its connection is counted for its token, then the request itself,
then its body is read within a byte budget, then it waits in its team's queue for a slot. A large
response is held within a byte budget and written in pieces, as fast as the client reads them. A
request that waits for its body or for its reader has no slot.

A token that is not known yet is looked up in a queue by address, so that guessing tokens does not
delay those who have one. Health checks are always answered.
"""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from contextlib import ExitStack
from math import ceil
from typing import Any, Protocol, cast
from urllib.parse import parse_qsl

import msgspec
from anyio import to_thread
from litestar import Request
from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, HTTPResponseBodyEvent, Message, Receive, Scope, Send

from tenfold.model.reason import Reason
from tenfold.server.auth.access import LOOKED_UP, PUBLIC, ROLE, secret_of
from tenfold.server.auth.tokens import Token, Tokens
from tenfold.server.metrics.metrics import Meters
from tenfold.server.problems import HEADERS, MEDIA_TYPE, Problem
from tenfold.server.runtime.budgets import (
    MIB,
    Budget,
    Exceeded,
    Flow,
    Limits,
    RateLimit,
)
from tenfold.server.runtime.fair_queue import CURRENT, FairQueue, QueueFull, RequestSlot, leave_slot

BODY_BYTES_MAX = 4 << 20
CONNECTION = "tenfold_connection"
"""Where the server puts its connection into the state of a request."""
LEASES = "tenfold_leases"
LEVEL = "level"
EXPENSIVE = {LEVEL: "always"}
"""The option of a route whose requests take seconds; they have a queue of their own."""
EXPENSIVE_WITH_ETA = {LEVEL: "eta"}
PIECE_BYTES = 64 << 10
"""How much of a response is written at once; what is smaller needs no budget."""
READ_S = 30.0
"""How long a client may take to read one piece of a response; then it is disconnected."""
PAUSE_S = 0.5
"""Before a refusal for sending too much, so that asking again at once does not add load."""
LOOKUPS = 8
"""Unknown tokens that are looked up at once."""
EXPENSIVE_SLOTS = 2
EXPENSIVE_WAITING = 32
UNAUTHENTICATED = "(unauthenticated)"
LOG_EVERY_S = 60.0
_HINTS = {
    "requests_per_second": "send fewer requests, or wait for changes with `/api/v1/events`",
    "requests_waiting": "wait for some responses before you send more requests",
    "connections": "use fewer connections, and close those you no longer need",
    "streams": "close one, or read all events from one stream",
    "body_mib": "send smaller batches, or fewer at once",
}
_SENTENCES = {
    "requests_per_second": "more than {most:,.0f} requests a second from this {whose}",
    "requests_waiting": "{most:,.0f} requests of this {whose} are already waiting",
    "connections": "this {whose} has {most:,.0f} connections, which is the limit",
    "streams": "this {whose} has {most:,.0f} streams open, which is the limit",
    "body_mib": "request bodies of this {whose} already use {most:,.0f} MiB",
}
_CODES = {
    "requests_per_second": "rate-limited",
    "requests_waiting": "queue-full",
    "connections": "too-many-connections",
    "streams": "too-many-streams",
    "body_mib": "too-many-body-bytes",
}
_LOG = logging.getLogger("tenfold.server")


class ServerConnection(Protocol):
    """What a request needs of its connection."""

    @property
    def is_lost(self) -> bool:
        """Whether the client is gone."""
        ...

    def claim(self, flow: Flow) -> Exceeded | None:
        """Count the connection for a token, once; return what is used up."""
        ...

    async def drained(self) -> None:
        """Return once the client has read nearly all that was written."""
        ...

    def abort(self) -> None:
        """Disconnect at once."""
        ...


def refusal_of(exceeded: Exceeded, wait_s: float = 1.0) -> Problem:
    """Return the problem for a budget that is used up."""
    name, whose = exceeded.budget, exceeded.whose
    most = exceeded.most / MIB if name == "body_mib" else exceeded.most
    sentence = _SENTENCES[name].format(whose=whose, most=most)
    setting = name.replace("_", "-")
    hint = f"{_HINTS[name]}; an operator can raise it with `tenfold up --limit {setting}=...`"
    return Problem(
        503 if whose == "server" else 429,
        Reason(_CODES[name], sentence=sentence),
        hint,
        headers={"Retry-After": str(max(1, ceil(wait_s)))},
    )


class Budgets:
    """All budgets of one server."""

    def __init__(self, limits: Limits | None = None, meters: Meters | None = None) -> None:
        self.limits = limits = limits or Limits()
        self._meters = meters
        self.streams = Budget("streams", limits.streams, limits)
        self.connections = Budget("connections", limits.connections or 1 << 30, limits)
        self.bodies = Budget("body_mib", limits.body_mib * MIB, limits)
        self.responses = Budget("response_mib", limits.response_mib * MIB, limits)
        self.rates = RateLimit(limits, lambda: asyncio.get_running_loop().time())
        self.requests = FairQueue(limits.requests_at_once, limits.requests_waiting, limits)
        self.expensive = FairQueue(EXPENSIVE_SLOTS, EXPENSIVE_WAITING, limits)
        self.lookups = FairQueue(LOOKUPS, limits.requests_waiting, limits)
        self._logged_s = float("-inf")

    def open_stream(self, request: Request[Token, Any, Any]) -> None:
        """Count a stream until its request ends; raise if there are too many."""
        flow = flow_of(request.user)
        exceeded = self.streams.take(flow)
        if exceeded is not None:
            self.count(_CODES[exceeded.budget], flow)
            raise refusal_of(exceeded)
        leases = cast("ExitStack", cast("dict[str, Any]", request.scope)[LEASES])
        leases.callback(self.streams.give, flow)
        leave_slot()

    async def find(self, tokens: Tokens, secret: str, address: str) -> Token | None:
        """Look up a token that is not known yet; None if there is none. A few at a time."""
        flow = Flow(UNAUTHENTICATED, address)
        await _take_rate(self, flow)
        slot = await _slot(self, self.lookups, flow)
        try:
            found = await to_thread.run_sync(tokens.find, secret, abandon_on_cancel=True)
        finally:
            slot.release()
        if found is None:
            self.count("unknown-token", flow)
        return found

    def count(self, reason: str, flow: Flow) -> None:
        """Count a refusal, and log it now and then."""
        if self._meters is not None:
            self._meters.rejected.labels(reason).inc()
        now_s = asyncio.get_running_loop().time()
        if now_s - self._logged_s > LOG_EVERY_S:
            self._logged_s = now_s
            _LOG.warning(
                "rejected a request of team %s, token %s: %s; "
                "tenfold_http_rejected_total counts all of them",
                flow.team,
                flow.token,
                reason,
            )


def flow_of(token: Token) -> Flow:
    """Return whose budgets a token uses."""
    return Flow(token.team, token.id)


class Admission(ASGIMiddleware):
    """Applies the budgets to every request."""

    scopes = (ScopeType.HTTP,)

    def __init__(self, budgets: Budgets, tokens: Tokens) -> None:
        self._budgets = budgets
        self._tokens = tokens

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Admit a request, or refuse it."""
        options = cast("Mapping[str, Any]", scope["route_handler"].opt)
        connection = _connection_of(scope)
        with ExitStack() as leases:
            cast("dict[str, Any]", scope)[LEASES] = leases
            try:
                flow = await self._flow(scope, options)
                if flow is None:
                    await next_app(scope, receive, send)
                    return
                request = _AdmittedRequest(self._budgets, flow, connection, leases, send)
                await request.run(scope, receive, next_app, _is_expensive(scope, options))
            except _Gone:
                return
            except Problem as problem:
                # Refused before the handlers: what they raise, they answer.
                await _respond(problem, connection, send)

    async def _flow(self, scope: Scope, options: Mapping[str, Any]) -> Flow | None:
        """Return whose request it is; None where the route is public or the token is unknown."""
        headers = dict(cast("list[tuple[bytes, bytes]]", scope["headers"]))
        secret = secret_of(headers.get(b"authorization", b"").decode("latin-1"))
        if secret is None or options.get(ROLE) == PUBLIC:
            return None
        token = self._tokens.known(secret)
        if token is None:
            token = await self._budgets.find(self._tokens, secret, _address_of(scope))
            cast("dict[str, Any]", scope)[LOOKED_UP] = token is None
        if token is None or self._tokens.has_ended(token) or token.revoked_ms is not None:
            # Refused by the guard, and not counted for a team.
            return None
        return flow_of(token)


class _Gone(Exception):
    """The client is gone, so that no answer is needed."""


class _AdmittedRequest:
    """One request of a known token."""

    def __init__(
        self,
        budgets: Budgets,
        flow: Flow,
        connection: ServerConnection | None,
        leases: ExitStack,
        send: Send,
    ) -> None:
        self._budgets = budgets
        self._flow = flow
        self._connection = connection
        self._leases = leases
        self._send = send
        self._slot: RequestSlot | None = None

    async def run(
        self, scope: Scope, receive: Receive, next_app: ASGIApp, is_expensive: bool
    ) -> None:
        """Take what it needs, then run it."""
        budgets, flow, connection = self._budgets, self._flow, self._connection
        if connection is not None and (exceeded := connection.claim(flow)) is not None:
            budgets.count(_CODES[exceeded.budget], flow)
            raise refusal_of(exceeded)
        await _take_rate(budgets, flow)
        received = await self._body(scope, receive)
        queue = budgets.expensive if is_expensive else budgets.requests
        self._slot = slot = await _slot(budgets, queue, flow)
        self._leases.callback(slot.release)
        if connection is not None and connection.is_lost:
            raise _Gone
        CURRENT.set(slot)
        await next_app(scope, _replayed(received, receive), self._write)

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """Return the whole body, read within the budget; None where the request has none."""
        headers = dict(cast("list[tuple[bytes, bytes]]", scope["headers"]))
        declared = headers.get(b"content-length", b"")
        if b"transfer-encoding" not in headers and declared in (b"", b"0"):
            return None
        length = int(declared) if declared.isdigit() else 0
        if length > BODY_BYTES_MAX:
            raise _too_large()
        self._reserve(length)
        reserved, size, parts = length, 0, list[bytes]()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise _Gone
            parts.append(message["body"])
            size += len(message["body"])
            if size > BODY_BYTES_MAX:
                raise _too_large()
            if size > reserved:
                # The length was not declared.
                self._reserve(size - reserved)
                reserved = size
            if not message["more_body"]:
                return b"".join(parts)

    def _reserve(self, amount: int) -> None:
        if not amount:
            return
        exceeded = self._budgets.bodies.take(self._flow, amount)
        if exceeded is not None:
            self._budgets.count(_CODES[exceeded.budget], self._flow)
            raise refusal_of(exceeded)
        self._leases.callback(self._budgets.bodies.give, self._flow, amount)

    async def _write(self, message: Message) -> None:
        """Send a part of a response, in pieces, as fast as it is read."""
        if message["type"] != "http.response.body":
            await self._send(message)
            return
        assert self._slot is not None, "a response has been worked on"
        body, is_more = message["body"], message["more_body"]
        if len(body) <= PIECE_BYTES or self._connection is None:
            self._slot.release()
            await self._send(message)
            if is_more:
                await self._drained()
            return
        responses = self._budgets.responses
        # Whoever has too much unread keeps the slot, and so gets no more to read.
        if not await self._in_time(responses.wait(self._flow, len(body))):
            return
        self._slot.release()
        with responses.held(self._flow, len(body)):
            view = memoryview(body)
            for at in range(0, len(body), PIECE_BYTES):
                is_last = at + PIECE_BYTES >= len(body)
                piece: HTTPResponseBodyEvent = {
                    "type": "http.response.body",
                    "body": bytes(view[at : at + PIECE_BYTES]),
                    "more_body": is_more or not is_last,
                }
                await self._send(piece)
                await self._drained()

    async def _drained(self) -> None:
        if self._connection is not None:
            await self._in_time(self._connection.drained())

    async def _in_time(self, work: Coroutine[Any, Any, None]) -> bool:
        """Wait for a reader; disconnect one that is too slow."""
        try:
            await asyncio.wait_for(work, READ_S)
        except TimeoutError:
            self._budgets.count("slow-reader", self._flow)
            if self._connection is not None:
                self._connection.abort()
            return False
        return True


async def _take_rate(budgets: Budgets, flow: Flow) -> None:
    refused = budgets.rates.take(flow)
    if refused is not None:
        exceeded, wait_s = refused
        budgets.count(_CODES[exceeded.budget], flow)
        await asyncio.sleep(PAUSE_S)
        raise refusal_of(exceeded, wait_s)


async def _slot(budgets: Budgets, queue: FairQueue, flow: Flow) -> RequestSlot:
    try:
        return await queue.slot(flow)
    except QueueFull as full:
        budgets.count(_CODES[full.exceeded.budget], flow)
        await asyncio.sleep(PAUSE_S)
        raise refusal_of(full.exceeded) from None


def _replayed(body: bytes | None, receive: Receive) -> Receive:
    """Return a way to receive a body that was read already."""
    if body is None:
        return receive
    rest = [body]

    async def receive_again() -> Any:
        if rest:
            return {"type": "http.request", "body": rest.pop(), "more_body": False}
        return await receive()

    return receive_again


def _connection_of(scope: Scope) -> ServerConnection | None:
    state = scope.get("state") or {}
    return state.get(CONNECTION)


def _is_expensive(scope: Scope, options: Mapping[str, Any]) -> bool:
    level = options.get(LEVEL)
    if level != "eta":
        return level == "always"
    # Decoded, because a name may be written as `%65ta`; any byte is a character of Latin-1.
    query = scope["query_string"].decode("latin-1")
    return any(name == "eta" for name, _ in parse_qsl(query, True, encoding="latin-1"))


def _address_of(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else ""


def _too_large() -> Problem:
    return Problem(
        413,
        Reason("body-too-large", sentence="the request body is too large"),
        "the limit is 4 MiB per request; submit fewer jobs at once",
    )


async def _respond(problem: Problem, connection: ServerConnection | None, send: Send) -> None:
    body = msgspec.json.encode(problem.body())
    headers = {
        "Content-Type": MEDIA_TYPE,
        "Content-Length": str(len(body)),
        **HEADERS,
        **problem.headers,
    }
    if problem.reason.code == "too-many-connections" and connection is not None:
        headers["Connection"] = "close"
    encoded = [(key.lower().encode(), value.encode()) for key, value in headers.items()]
    await send({"type": "http.response.start", "status": problem.status, "headers": encoded})
    await send({"type": "http.response.body", "body": body, "more_body": False})
