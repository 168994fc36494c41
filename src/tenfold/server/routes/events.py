"""The journal as a stream of server-sent events.

A stream keeps its position in the journal and reads the next page once the client has read the
last: what a slow client has not read stays on disk, not in memory. All streams share one query for
the newest event. A client that reads too slowly is disconnected; if it reconnects with
`Last-Event-ID`, it misses nothing.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated

from litestar import Router, get
from litestar.params import HeaderParameter, QueryParameter
from litestar.response import Stream

from tenfold.server.auth.access import AuthedRequest, is_still_valid, requires_role
from tenfold.server.auth.tokens import Role, Token
from tenfold.server.event_cursor import POLL_S, SEQ_MAX
from tenfold.server.event_pages import PAGE_CHARACTERS, PageRange, pieces
from tenfold.server.runtime.admission import READ_S, flow_of
from tenfold.server.runtime.deps import Control, ControlDep

HEARTBEAT_S = 15.0
LAG_MAX = 100_000
"""Events that a stream may fall behind after it was up to date; then it is closed."""
LAGGED = b"event: lagged\ndata: {}\n\n"
After = Annotated[
    int | None, QueryParameter(ge=0, le=SEQ_MAX, description="Start after this event; 0 for all.")
]
LastId = Annotated[int | None, HeaderParameter(name="Last-Event-ID", ge=0, le=SEQ_MAX)]
Follow = Annotated[
    bool, QueryParameter(description="Keep streaming new events; otherwise stop at the newest.")
]


@get(
    "/events",
    opt=requires_role(Role.viewer),
    operation_id="streamEvents",
    media_type="text/event-stream",
)
async def stream_events(
    request: AuthedRequest,
    control: ControlDep,
    after: After = None,
    last_event_id: LastId = None,
    follow: Follow = True,
) -> Stream:
    """Stream journal events; below `operator`, only nodes, and the jobs and models of your team."""
    control.budgets.open_stream(request)
    seq = last_event_id if last_event_id is not None else after
    if seq is None:
        seq = await control.event_cursor.seq()
    chunks = event_stream(control, request.user, seq, follow=follow)
    return Stream(chunks, media_type="text/event-stream")


async def event_stream(
    control: Control, token: Token, seq: int, *, follow: bool
) -> AsyncGenerator[bytes, None]:
    """Yield events after `seq` as they are sent, and a heartbeat comment when there are none."""
    loop = asyncio.get_running_loop()
    caught_up, sent_s = False, loop.time()
    yield b": events of the journal\n\n"
    while not control.is_closing():
        if not await is_still_valid(control.tokens, token):
            yield b"event: token-over\ndata: {}\n\n"
            return
        newest = await control.event_cursor.seq()
        if seq < newest:
            if caught_up and newest - seq > LAG_MAX:
                yield LAGGED
                return
            found = await control.event_pages.next_range(seq, newest)
            if not await _reserved(control, token, found):
                yield LAGGED
                return
            try:
                page = await control.event_pages.page(token, seq, found.last)
                for piece in pieces(page):
                    yield piece
                    sent_s = loop.time()
            finally:
                _release(control, token, found)
            seq, page = found.last, b""
            continue
        caught_up = True
        if not follow:
            return
        if loop.time() - sent_s >= HEARTBEAT_S:
            yield b": still here\n\n"
            sent_s = loop.time()
        await asyncio.sleep(POLL_S)


async def _reserved(control: Control, token: Token, page: PageRange) -> bool:
    """Wait until a large page may be held; False if other slow readers hold too much for long."""
    if page.characters <= PAGE_CHARACTERS:
        return True
    waiting = control.budgets.responses.wait(flow_of(token), page.characters)
    try:
        await asyncio.wait_for(waiting, READ_S)
    except TimeoutError:
        return False
    return True


def _release(control: Control, token: Token, page: PageRange) -> None:
    if page.characters > PAGE_CHARACTERS:
        control.budgets.responses.give(flow_of(token), page.characters)


ROUTES = Router("/api/v1", route_handlers=[stream_events])
