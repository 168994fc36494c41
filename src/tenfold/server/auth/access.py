"""Who may ask for what: deny by default, and no route without a role.

A route says the least role it needs with `needs(...)`. One guard, set on the whole application,
reads the token, finds whose it is and compares. A route that says nothing cannot be built.
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
ANYBODY = "anybody"
HEADER = {"WWW-Authenticate": 'Bearer realm="tenfold"'}
SECRET_CHARACTERS_MOST = 200

Connection = ASGIConnection[Any, Any, Any, Any]
Guard = Callable[[Connection, BaseRouteHandler], Awaitable[None]]
Asked = Request[Token, Any, Any]
"""A request whose token was found to be good."""


class RouteWithoutRole(Exception):
    """A route says not who may use it; such an application is not built."""


def needs(role: Role | None) -> dict[str, Any]:
    """Return the options of a route for this role and those above; None lets anybody in."""
    return {ROLE: ANYBODY if role is None else role}


def guard_with(tokens: Tokens) -> Guard:
    """Return the guard of an application."""

    async def guard(connection: Connection, route: BaseRouteHandler) -> None:
        least = route.opt.get(ROLE)
        if least == ANYBODY:
            return
        token = await _token_of(connection, tokens)
        if not isinstance(least, Role):
            said = f"`{connection.scope['path']}` has no such method"
            reason = Reason("method-not-allowed", sentence=said)
            raise Problem(405, reason, "look at the reference of the HTTP API")
        if token.role < least:
            said = f"this takes the role `{least.name}`, and the token has `{token.role.name}`"
            raise Problem(
                403, Reason("role-too-low", sentence=said), "ask an admin for another token"
            )
        connection.scope["user"] = token

    return guard


def check_routes(app: Litestar) -> None:
    """Raise where a route has no role; those of OPTIONS are the framework's, and refused."""
    for path, methods, role in routes_of(app):
        if role is None and methods != ["OPTIONS"]:
            raise RouteWithoutRole(f"{', '.join(methods)} {path} does not say who may use it")


def routes_of(app: Litestar) -> list[tuple[str, list[str], object]]:
    """Return every route: its path, its methods and the least role, None where it has none."""
    found: list[tuple[str, list[str], object]] = []
    for route in app.routes:
        handlers: list[BaseRouteHandler] = getattr(route, "route_handlers", None) or [
            route.route_handler  # pyright: ignore[reportAttributeAccessIssue]
        ]
        for handler in handlers:
            methods = sorted(str(one) for one in getattr(handler, "http_methods", ("ANY",)))
            found.append((route.path, methods, handler.opt.get(ROLE)))
    return found


def sees(token: Token, job: JobRow) -> bool:
    """Tell whether a job is there for this token."""
    return token.sees_all_teams or job.team == token.team


def team_seen(token: Token, team: str | None) -> str | None:
    """Return the team whose jobs are listed: that of the token, or any for operators."""
    return team if token.sees_all_teams else token.team


async def still_good(tokens: Tokens, token: Token) -> bool:
    """Tell whether a stream may go on: within seconds after its token is over it may not."""
    if tokens.is_stale:
        await to_thread.run_sync(tokens.look)
    return not tokens.is_over(token)


async def _token_of(connection: Connection, tokens: Tokens) -> Token:
    scheme, _, secret = connection.headers.get("authorization", "").partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer" or not secret:
        raise _nobody(
            Reason("no-token", sentence="no token was shown"), "send `Authorization: Bearer tf_...`"
        )
    token = None
    if secret.startswith(PREFIX) and len(secret) <= SECRET_CHARACTERS_MOST:
        token = tokens.known(secret) or await to_thread.run_sync(tokens.find, secret)
    if token is None:
        raise _nobody(
            Reason("unknown-token", sentence="this token is nobody's"), "check that it is whole"
        )
    if token.revoked_ms is not None:
        raise _nobody(
            Reason("token-revoked", sentence="this token was revoked"),
            "ask an admin for another one",
        )
    if token.expires_ms <= tokens.now_ms():
        raise _nobody(
            Reason("token-expired", sentence="this token has expired"),
            "ask an admin for another one",
        )
    return token


def _nobody(reason: Reason, hint: str) -> Problem:
    return Problem(401, reason, hint, headers=HEADER)
