"""Liveness and readiness, for load balancers and for people; no token is needed.

Alive: the server answers. Ready: the loop runs and the journal can be read. With a valid token, the
response also says what is wrong; without one it does not, because a cause may quote the journal.
"""

from contextlib import suppress
from typing import Any

from anyio import CapacityLimiter, move_on_after, to_thread
from anyio.lowlevel import RunVar
from litestar import Request, Router, get
from msgspec import UNSET, UnsetType
from sqlalchemy.exc import SQLAlchemyError

from tenfold.journal.store import last_seq
from tenfold.model.api.fleet import Health
from tenfold.model.errors import TenfoldError
from tenfold.model.reason import Reason
from tenfold.model.units import SECOND
from tenfold.server.auth.access import requires_role, secret_of
from tenfold.server.problems import Problem
from tenfold.server.runtime.deps import Control, ControlDep
from tenfold.server.runtime.leadership import LEADER_HEADER, STANDBY

PATHS = ("/healthz", "/readyz")
ANSWER_S = 3.0
"""How long the journal may take to answer one query."""
PROBES_MAX = 2
"""Threads that may wait for a journal that does not answer: probes come every few seconds."""
_LIMITER: RunVar[CapacityLimiter] = RunVar("tenfold-readiness")


@get("/healthz", opt=requires_role(None), sync_to_thread=False, operation_id="alive", security=[])
def alive(control: ControlDep) -> Health:
    """Liveness: the server answers requests, whether it leads or stands by."""
    return Health(status="alive", role=_role(control))


@get("/readyz", opt=requires_role(None), operation_id="ready", security=[])
async def ready(request: Request[Any, Any, Any], control: ControlDep) -> Health:
    """Readiness: the control plane accepts jobs; otherwise 503, with the cause if you have a token.

    A standby is not ready, and says so. The clock of the scheduling loop is also only shown to
    those who have a token.
    """
    trouble = control.trouble() or control.late()
    if trouble is not None and trouble.code == STANDBY and control.leadership is not None:
        url = control.leadership.leader_url
        if not url or not await _has_token(request, control):
            raise Problem(503, Reason("standby"), "send changes to the control plane that leads")
        raise Problem(503, trouble, f"send changes to {url}", headers={LEADER_HEADER: url})
    if trouble is None:
        with move_on_after(ANSWER_S) as waited:
            trouble = await to_thread.run_sync(
                _unreadable, control, abandon_on_cancel=True, limiter=_limiter()
            )
        if waited.cancelled_caught:
            trouble = Reason("journal-waits", {"waited_s": ANSWER_S})
    if trouble is not None:
        if not await _has_token(request, control):
            trouble = Reason("not-ready", sentence="the control plane is not ready")
            raise Problem(503, trouble, "send a token to see the cause")
        raise Problem(503, trouble, "see the server log")
    ahead_s = control.clock_ahead_ms() / SECOND
    if abs(ahead_s) < 1 or not await _has_token(request, control):
        return Health(status="ready", role=_role(control))
    return Health(status="ready", role=_role(control), clock_ahead_s=ahead_s)


def _role(control: Control) -> str | UnsetType:
    return UNSET if control.leadership is None else control.leadership.role


async def _has_token(request: Request[Any, Any, Any], control: Control) -> bool:
    """Tell whether a request has a valid token, without waiting for a journal that is stuck."""
    secret = secret_of(request.headers.get("authorization", ""))
    if secret is None:
        return False
    token = control.tokens.known(secret)
    if token is None:
        address = request.client.host if request.client else ""
        with move_on_after(ANSWER_S), suppress(Problem, SQLAlchemyError, TenfoldError):
            token = await control.budgets.find(control.tokens, secret, address)
    return token is not None and token.revoked_ms is None and not control.tokens.has_ended(token)


def _limiter() -> CapacityLimiter:
    found = _LIMITER.get(None)
    if found is None:
        found = CapacityLimiter(PROBES_MAX)
        _LIMITER.set(found)
    return found


def _unreadable(control: Control) -> Reason | None:
    try:
        with control.store.reading() as connection:
            last_seq(connection)
    except TenfoldError as error:
        # This is public, so it must not reveal where the journal is.
        return Reason(error.code, sentence="the journal does not respond")
    return None


ROUTES = Router("/", route_handlers=[alive, ready])
