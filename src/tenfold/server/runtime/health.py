"""Liveness and readiness, for load balancers and for people; no token is needed.

Alive: the server answers. Ready: the loop runs and the journal can be read; otherwise the response
says what is wrong.
"""

from anyio import CapacityLimiter, move_on_after, to_thread
from anyio.lowlevel import RunVar
from litestar import Router, get
from msgspec import UNSET

from tenfold.journal.store import last_seq
from tenfold.model.api.fleet import Health
from tenfold.model.errors import TenfoldError
from tenfold.model.reason import Reason
from tenfold.model.units import SECOND
from tenfold.server.auth.access import requires_role
from tenfold.server.problems import Problem
from tenfold.server.runtime.deps import Control, ControlDep

PATHS = ("/healthz", "/readyz")
ANSWER_S = 3.0
"""How long the journal may take to answer one query."""
PROBES_MAX = 2
"""Threads that may wait for a journal that does not answer: probes come every few seconds."""
_LIMITER: RunVar[CapacityLimiter] = RunVar("tenfold-readiness")


@get("/healthz", opt=requires_role(None), sync_to_thread=False, operation_id="alive", security=[])
def alive() -> Health:
    """Liveness: the server answers requests."""
    return Health(status="alive")


@get("/readyz", opt=requires_role(None), operation_id="ready", security=[])
async def ready(control: ControlDep) -> Health:
    """Readiness: the control plane accepts jobs; otherwise 503 with the cause."""
    trouble = control.trouble() or control.late()
    if trouble is None:
        with move_on_after(ANSWER_S) as waited:
            trouble = await to_thread.run_sync(
                _unreadable, control, abandon_on_cancel=True, limiter=_limiter()
            )
        if waited.cancelled_caught:
            trouble = Reason("journal-waits", {"waited_s": ANSWER_S})
    if trouble is not None:
        raise Problem(503, trouble, "see the server log")
    ahead_s = control.clock_ahead_ms() / SECOND
    return Health(status="ready", clock_ahead_s=ahead_s if abs(ahead_s) >= 1 else UNSET)


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
        return Reason(error.code, sentence="the journal does not answer")
    return None


ROUTES = Router("/", route_handlers=[alive, ready])
