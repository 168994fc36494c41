"""Access control: deny by default, and no route without a role.

A route declares its role with `requires_role(...)`. One guard for the whole application looks up
the token and compares. An application with a route without a role cannot be built.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from anyio import to_thread
from litestar import Litestar, Request
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler

from tenfold.journal.rows import JobRow
from tenfold.model.reason import Reason
from tenfold.server.auth.tokens import PREFIX, Role, Token, Tokens
from tenfold.server.problems import Problem

ROLE = "least_role"
PUBLIC = "anybody"
HEADER = {"WWW-Authenticate": 'Bearer realm="tenfold"'}
SECRET_CHARACTERS_MAX = 200
READING = ("GET", "HEAD")
"""Methods that change nothing."""
LOOKED_UP = "tenfold_token_unknown"
"""In the scope of a request whose token was looked up and is unknown."""

Connection = ASGIConnection[Any, Any, Any, Any]
Guard = Callable[[Connection, BaseRouteHandler], Awaitable[None]]
AuthedRequest = Request[Token, Any, Any]
"""A request with a valid token."""


class RouteWithoutRole(Exception):
    """A route without a role; such an application is not built."""


def requires_role(role: Role | None) -> dict[str, Any]:
    """Return the options of a route for this role and higher ones; None makes it public."""
    return {ROLE: PUBLIC if role is None else role}


def make_guard(tokens: Tokens, standby: Callable[[], Problem | None] = lambda: None) -> Guard:
    """Return the guard of an application.

    `standby` returns why this control plane carries out no changes, if it does not lead.
    """

    async def guard(connection: Connection, route: BaseRouteHandler) -> None:
        required = route.opt.get(ROLE)
        if required == PUBLIC:
            return
        token = await _token_of(connection, tokens)
        if not isinstance(required, Role):
            message = f"method not allowed on `{connection.scope['path']}`"
            reason = Reason("method-not-allowed", sentence=message)
            raise Problem(405, reason, "see the HTTP API reference")
        if token.role < required:
            message = f"this requires the role `{required.name}`; the token has `{token.role.name}`"
            raise Problem(
                403,
                Reason("role-too-low", sentence=message),
                "ask an admin for a token with that role",
            )
        connection.scope["user"] = token
        problem = None if connection.scope.get("method") in READING else standby()
        if problem is not None:
            raise problem

    return guard


def check_routes(app: Litestar) -> None:
    """Raise if a route has no role; OPTIONS routes are the framework's, and refused."""
    for path, methods, role in routes_of(app):
        if role is None and methods != ["OPTIONS"]:
            raise RouteWithoutRole(f"{', '.join(methods)} {path} has no role")


def routes_of(app: Litestar) -> list[tuple[str, list[str], object]]:
    """Return every route: its path, its methods and its role, None if it has none."""
    found: list[tuple[str, list[str], object]] = []
    for route in app.routes:
        handlers: list[BaseRouteHandler] = getattr(route, "route_handlers", None) or [
            route.route_handler  # pyright: ignore[reportAttributeAccessIssue]
        ]
        for handler in handlers:
            methods = sorted(str(one) for one in getattr(handler, "http_methods", ("ANY",)))
            found.append((route.path, methods, handler.opt.get(ROLE)))
    return found


def can_see(token: Token, job: JobRow) -> bool:
    """Tell whether a token may see a job."""
    return token.sees_all_teams or job.team == token.team


def visible_team(token: Token, team: str | None) -> str | None:
    """Return the team whose jobs are listed: the token's, or any for operators."""
    return team if token.sees_all_teams else token.team


async def is_still_valid(tokens: Tokens, token: Token) -> bool:
    """Tell whether a stream may continue; it ends within seconds of its token."""
    if tokens.is_stale:
        await to_thread.run_sync(tokens.refresh_revoked)
    return not tokens.has_ended(token)


def secret_of(header: str) -> str | None:
    """Return the token in an `Authorization` header; None if there is none that could be ours."""
    scheme, _, secret = header.partition(" ")
    secret = secret.strip()
    is_ours = secret.startswith(PREFIX) and len(secret) <= SECRET_CHARACTERS_MAX
    return secret if scheme.lower() == "bearer" and is_ours else None


async def _token_of(connection: Connection, tokens: Tokens) -> Token:
    header = connection.headers.get("authorization", "")
    scheme, _, rest = header.partition(" ")
    if scheme.lower() != "bearer" or not rest.strip():
        raise _unauthenticated(
            Reason("no-token", sentence="no token"), "send `Authorization: Bearer tf_...`"
        )
    secret, token = secret_of(header), None
    if secret is not None and not connection.scope.get(LOOKED_UP):
        token = tokens.cached(secret) or await to_thread.run_sync(tokens.find, secret)
    if token is None:
        raise _unauthenticated(
            Reason("unknown-token", sentence="unknown token"), "check that it is complete"
        )
    if token.revoked_ms is not None:
        raise _unauthenticated(
            Reason("token-revoked", sentence="token revoked"),
            "ask an admin for a new one",
        )
    if token.expires_ms <= tokens.now_ms():
        raise _unauthenticated(
            Reason("token-expired", sentence="token expired"),
            "ask an admin for a new one",
        )
    return token


def _unauthenticated(reason: Reason, hint: str) -> Problem:
    return Problem(401, reason, hint, headers=HEADER)
