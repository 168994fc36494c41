"""Is it alive, and does it take work? For load balancers and for people; no token is needed.

Alive means that requests are answered. Ready means that the loop runs and that the journal can
be read; what is in the way is said.
"""

from anyio import to_thread
from litestar import Router, get
from msgspec import Struct

from tenfold.journal.store import last_seq
from tenfold.model.errors import TenfoldError
from tenfold.model.reason import Reason
from tenfold.server.access import needs
from tenfold.server.control import Control, Given
from tenfold.server.problems import Problem


class Health(Struct, frozen=True, kw_only=True):
    """One word."""

    status: str


@get("/healthz", opt=needs(None), sync_to_thread=False, operation_id="alive", security=[])
def alive() -> Health:
    """Say that requests are answered."""
    return Health(status="alive")


@get("/readyz", opt=needs(None), operation_id="ready", security=[])
async def ready(control: Given) -> Health:
    """Say whether work is taken, or what is in the way."""
    trouble = control.trouble() or await to_thread.run_sync(_unreadable, control)
    if trouble is not None:
        raise Problem(503, trouble, "the log of the server tells more")
    return Health(status="ready")


def _unreadable(control: Control) -> Reason | None:
    try:
        with control.store.reading() as connection:
            last_seq(connection)
    except TenfoldError as error:
        # Anybody may ask this: where the journal lies is not for everybody.
        return Reason(error.code, "the journal does not answer")
    return None


ROUTES = Router("/", route_handlers=[alive, ready])
