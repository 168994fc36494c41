"""The address that clients use: find the service of a request, admit it, forward it, answer."""

import asyncio
import logging
import re
from typing import NamedTuple
from zlib import crc32

import msgspec
from aiohttp.web import BaseRequest, Response, StreamResponse
from msgspec import Struct

from tenfold.clock.wall import now_ms
from tenfold.gateway.admit.identity import Caller
from tenfold.gateway.admit.refusals import RequestRefused
from tenfold.gateway.forward.attempts import Attempts
from tenfold.gateway.forward.call import Call
from tenfold.gateway.forward.headers import REQUEST_ID, request_headers, request_id
from tenfold.gateway.forward.relay import SERVER, Relay, Streams
from tenfold.gateway.forward.shadow import Shadows
from tenfold.gateway.forward.spans import PARENT, Span, Spans
from tenfold.gateway.forward.upstream import Upstream
from tenfold.gateway.pool.admission import Admission, admit
from tenfold.gateway.pool.pool import ServicePool
from tenfold.gateway.pool.service import ServiceState
from tenfold.gateway.pool.ticket import Ticket
from tenfold.gateway.route.prefix import prefix_keys
from tenfold.gateway.serve.body import Bodies, Prompt, prompt_of
from tenfold.gateway.serve.connections import Connection

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
SERVICE_HEADER = "X-Tenfold-Service"
SERVICES = "/services/"
API = "/v1/"
MODELS = "/v1/models"
HEALTH = "/healthz"
CHAT, COMPLETIONS, EMBEDDINGS = "/v1/chat/completions", "/v1/completions", "/v1/embeddings"
"""Most requests have one of these paths."""
ROUTES = (CHAT, COMPLETIONS, EMBEDDINGS, MODELS, "/services")
"""Paths that spans are named by; what a client adds to them is not in a name."""
_DOTS = re.compile(r"(?:^|/)(?:\.|%2e){1,2}(?:/|$)", re.IGNORECASE)
_UNPRINTABLE = re.compile(r"[^\x21-\x7e]|%(?:0[0-9a-f]|1[0-9a-f]|7f)", re.IGNORECASE)
NO_PROMPT = Prompt("", b"", 0, 1)

_LOG = logging.getLogger("tenfold.gateway")


class Model(Struct):
    """A model in the list of `/v1/models`."""

    id: str
    object: str = "model"
    created: int = 0
    owned_by: str = "tenfold"


class ModelList(Struct):
    """The answer of `/v1/models`."""

    data: list[Model]
    object: str = "list"


class Routed(NamedTuple):
    """A request whose service is known."""

    service: ServiceState
    path: str
    """With the query; without the prefix that named the service."""
    prompt: Prompt


class Front:
    """Answers requests of clients."""

    def __init__(
        self, pool: ServicePool, upstream: Upstream, bodies: Bodies, spans: Spans | None = None
    ) -> None:
        self._pool = pool
        self._spans = spans
        self._bodies = bodies
        self._attempts = Attempts(upstream)
        self.shadows = Shadows(upstream)
        self.streams = Streams()
        self.is_draining = False
        self.in_progress = 0

    async def handle(self, request: BaseRequest) -> StreamResponse:
        """Answer one request."""
        connection = request.protocol
        if isinstance(connection, Connection):
            connection.is_busy, connection.reading_since_s = True, 0.0
        self.in_progress += 1
        span = None if self._spans is None else _begun(self._spans, request)
        status = 499
        try:
            response = await self._answered(request, span)
            status = response.status
        finally:
            self.in_progress -= 1
            if isinstance(connection, Connection):
                connection.is_busy = False
            if span is not None:
                span.note("http.response.status_code", status)
                span.end(failed=status >= 500)
        if self.is_draining:
            response.force_close()
        return response

    async def _answered(self, request: BaseRequest, span: Span | None) -> StreamResponse:
        try:
            return await self._answer(request, span)
        except RequestRefused as refused:
            if span is not None:
                span.note("error.type", refused.code)
            return _refusal(request, refused)

    async def _answer(self, request: BaseRequest, span: Span | None) -> StreamResponse:
        path = _checked_path(request)
        if path == HEALTH:
            return _json(b'{"status":"ok"}')
        pool = self._pool
        if pool.state is None:
            raise RequestRefused("not_ready", "the gateway has no routing state yet", 1.0)
        if request.method not in METHODS:
            raise RequestRefused("method_not_allowed", f"`{request.method}` is not forwarded")
        caller = pool.identities.find(request.headers.get("Authorization", ""), now_ms())
        if path == MODELS or path.startswith(f"{MODELS}/"):
            return self._models(request, path, caller)
        body = await self._bodies.read(request)
        self._bodies.held += len(body)
        try:
            return await self._forward(request, body, caller, span)
        finally:
            self._bodies.held -= len(body)

    def _models(self, request: BaseRequest, path: str, caller: Caller) -> Response:
        if request.method not in ("GET", "HEAD"):
            raise RequestRefused("method_not_allowed", f"`{request.method}` is not allowed here")
        if path != MODELS:
            name = request.rel_url.path.removeprefix(f"{MODELS}/")
            self._pool.service_of(name, caller)
            return _json(msgspec.json.encode(Model(id=name)))
        models = [Model(id=one) for one in self._pool.models(caller)]
        return _json(msgspec.json.encode(ModelList(data=models)))

    async def _forward(
        self, request: BaseRequest, body: bytes, caller: Caller, span: Span | None
    ) -> StreamResponse:
        routed = self._route(request, body, caller)
        loop = asyncio.get_running_loop()
        arrived_s = loop.time()
        service = routed.service
        is_inference = routed.path.startswith(API)
        call = Call(
            method=request.method,
            path=routed.path,
            headers=request_headers(request.headers, keep_encoding=not is_inference),
            body=body,
            is_inference=is_inference,
            span=span,
        )
        ticket = _ticket(request, routed, caller, arrived_s)
        admission = admit(self._pool, caller, service, ticket, arrived_s)
        if span is not None:
            span.note("tenfold.service", service.spec.name)
            span.note("tenfold.team", caller.team)
        try:
            granted = await admission.place(arrived_s)
            if span is not None:
                span.note("tenfold.waited_ms", round(1_000 * (loop.time() - arrived_s)))
            self._copy(admission, granted, call)
            granted, answer = await self._attempts.answer(admission, granted, call)
            if span is not None:
                span.note("tenfold.ttft_ms", round(1_000 * (loop.time() - arrived_s)))
                span.note("tenfold.target", granted.target.name)
            relay = Relay(admission, granted, answer)
            return await relay.send(request, call.headers[REQUEST_ID], self.streams)
        finally:
            if span is not None:
                span.note("tenfold.tokens", admission.tokens_used)
            admission.close()

    def _copy(self, admission: Admission, granted: object, call: Call) -> None:
        """Send a copy to a shadow revision, if there is one."""
        service = admission.service
        if not service.has_shadow or self.shadows.is_full:
            return
        now_s = asyncio.get_running_loop().time()
        copy = service.shadow(admission.ticket, granted, now_s)
        if copy is not None:
            self.shadows.send(copy, call, service.spec.first_byte_timeout_s)

    def _route(self, request: BaseRequest, body: bytes, caller: Caller) -> Routed:
        path, named = request.rel_url.raw_path_qs, request.headers.get(SERVICE_HEADER, "")
        if path.startswith(SERVICES):
            named, _, rest = path.removeprefix(SERVICES).partition("/")
            path = f"/{rest}"
        prompt = NO_PROMPT
        if path.startswith(API) and body:
            if request.headers.get("Content-Encoding"):
                raise RequestRefused("invalid_body", "compressed bodies are not accepted here")
            prompt = prompt_of(body, request.content_type)
        if named:
            service = self._pool.service_named(named, caller)
        elif not path.startswith(API):
            raise RequestRefused("path_not_found", "no such path, and no service is named")
        elif prompt.model:
            service = self._pool.service_of(prompt.model, caller)
        else:
            raise RequestRefused("no_model", f"name a `model`, or a service in `{SERVICE_HEADER}`")
        if not any(path.startswith(one) for one in service.spec.paths):
            raise RequestRefused("path_not_found", f"`{service.spec.name}` has no such path")
        return Routed(service, path, prompt)


def _begun(spans: Spans, request: BaseRequest) -> Span | None:
    """Begin the span of a request; its name has a bounded number of values."""
    path = request.rel_url.raw_path
    if path == HEALTH:
        return None
    method = request.method if request.method in METHODS else "OTHER"
    known = next((one for one in ROUTES if path == one or path.startswith(f"{one}/")), "")
    route = known or (API if path.startswith(API) else "/")
    return spans.begin(f"{method} {route}", request.headers.get(PARENT, ""))


def _ticket(request: BaseRequest, routed: Routed, caller: Caller, arrived_s: float) -> Ticket:
    service, prompt = routed.service, routed.prompt
    spec, estimator = service.spec, service.estimator
    tokens = (
        estimator.input_of(len(prompt.text)),
        estimator.output_of(prompt.tokens_max, prompt.answers),
    )
    wants_prefix = spec.affinity == "prefix" and service.replicas > 1
    prefix = prefix_keys(prompt.text) if wants_prefix else ()
    ticket = Ticket(caller.team, arrived_s, tokens, prompt_bytes=len(prompt.text), prefix=prefix)
    if spec.affinity == "session":
        session = request.headers.get(spec.session_header, "")
        # Sessions of different teams do not meet, even if their names do.
        ticket.session = crc32(f"{caller.team} {session}".encode()) if session else None
    return ticket


def _checked_path(request: BaseRequest) -> str:
    """Return the path as it was sent; raise if a replica could read it as another one."""
    url = request.rel_url
    path = url.raw_path
    if url.raw_path_qs in (CHAT, COMPLETIONS, EMBEDDINGS):
        return path
    if not path.startswith("/") or _UNPRINTABLE.search(url.raw_path_qs):
        raise RequestRefused("invalid_path", "not a path")
    if _DOTS.search(path) or "//" in path or "\\" in path:
        raise RequestRefused("invalid_path", "a path may not have empty, `.` or `..` parts")
    return path


def _json(body: bytes) -> Response:
    return Response(body=body, content_type="application/json", headers={"Server": SERVER})


def _refusal(request: BaseRequest, refused: RequestRefused) -> Response:
    headers = {
        "Server": SERVER,
        REQUEST_ID: request_id(request.headers.get(REQUEST_ID, "")),
    }
    if refused.retry_after_s > 0:
        headers["Retry-After"] = str(max(1, round(refused.retry_after_s)))
    if refused.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    response = Response(
        body=refused.body(),
        status=refused.status,
        content_type="application/json",
        headers=headers,
    )
    if not request.content.is_eof():
        # The rest of the body is not wanted.
        response.force_close()
    return response
