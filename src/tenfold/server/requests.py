"""Time and log every request: caller, route and status.

Neither the query nor the headers are logged, so no secret is.
"""

import logging
from time import perf_counter

from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from tenfold.server.auth.tokens import Token
from tenfold.server.metrics.metrics import Meters
from tenfold.server.metrics.traces import Traces
from tenfold.server.runtime.logs import FIELDS

QUIET = ("/healthz", "/readyz", "/metrics")
"""Polled every few seconds by machines: timed, but not logged."""
TOO_MANY = 429
"""Counted and not logged: a storm must not fill the disk."""
_LOG = logging.getLogger("tenfold.server.requests")


class RequestLog(ASGIMiddleware):
    """Times each request until its response begins."""

    scopes = (ScopeType.HTTP,)

    def __init__(self, meters: Meters, traces: Traces) -> None:
        self._meters = meters
        self._traces = traces

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Handle a request, and record its response."""
        start = perf_counter()
        method, route = _names(scope)
        with self._traces.request(method, route, scope["headers"]) as span:

            async def send_and_record(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span["status"] = message["status"]
                    self._record(scope, message["status"], perf_counter() - start)
                await send(message)

            await next_app(scope, receive, send_and_record)

    def _record(self, scope: Scope, status: int, took_s: float) -> None:
        method, route = _names(scope)
        self._meters.requests.labels(method, route, str(status)).observe(took_s)
        if route in QUIET or status == TOO_MANY:
            return
        token = scope.get("user")
        fields = {
            "method": method,
            "path": scope["path"],
            "status": status,
            "ms": round(took_s * 1_000, 2),
            "token": token.id if isinstance(token, Token) else None,
            "team": token.team if isinstance(token, Token) else None,
        }
        _LOG.info("request", extra={FIELDS: fields})


def _names(scope: Scope) -> tuple[str, str]:
    return str(scope.get("method", "")), str(scope.get("path_template", "")) or "unknown"
