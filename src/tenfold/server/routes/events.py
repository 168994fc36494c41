"""The journal as a stream of server-sent events.

A stream keeps its position in the journal and reads the next page once it has sent the last: what a
slow client has not read stays on disk, not in memory. All streams share one query for the newest
event. A client that reconnects with `Last-Event-ID` misses nothing.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated

from anyio import to_thread
from litestar import Router, get
from litestar.params import HeaderParameter, QueryParameter
from litestar.response import Stream
from sqlalchemy import select

from tenfold.journal.store import Store
from tenfold.journal.tables import EVENTS
from tenfold.server.auth.access import AuthedRequest, is_still_valid, requires_role
from tenfold.server.auth.redaction import EventRow, visible_events
from tenfold.server.auth.tokens import Role, Token
from tenfold.server.event_cursor import POLL_S, SEQ_MAX
from tenfold.server.runtime.deps import Control, ControlDep

PAGE = 500
PAGE_CHARACTERS = 1 << 18
"""A submission may have megabytes, and every stream holds a page."""
HEARTBEAT_S = 15.0
LAG_MAX = 100_000
"""Events that a stream may fall behind after it was up to date; then it is closed."""
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
    """Stream journal events; below `operator`, only nodes and the jobs of your team."""
    control.streams.check()
    seq = last_event_id if last_event_id is not None else after
    if seq is None:
        seq = await control.event_cursor.seq()
    chunks = event_stream(control, request.user, seq, follow=follow)
    return Stream(chunks, media_type="text/event-stream")


async def event_stream(
    control: Control, token: Token, seq: int, *, follow: bool
) -> AsyncGenerator[bytes, None]:
    """Yield events after `seq` as they are sent, and a heartbeat comment when there are none."""
    loop, store = asyncio.get_running_loop(), control.store
    caught_up, sent_s = False, loop.time()
    with control.streams.slot():
        yield b": events of the journal\n\n"
        while not control.is_closing():
            if not await is_still_valid(control.tokens, token):
                yield b"event: token-over\ndata: {}\n\n"
                return
            newest = await control.event_cursor.seq()
            if seq < newest:
                if caught_up and newest - seq > LAG_MAX:
                    yield b"event: lagged\ndata: {}\n\n"
                    return
                rows = await to_thread.run_sync(page_after, store, seq)
                shown = await to_thread.run_sync(visible_events, token, rows, store)
                seq = rows[-1].seq if rows else newest
                if shown:
                    yield encode_events(shown)
                    sent_s = loop.time()
                continue
            caught_up = True
            if not follow:
                return
            if loop.time() - sent_s >= HEARTBEAT_S:
                yield b": still here\n\n"
                sent_s = loop.time()
            await asyncio.sleep(POLL_S)


def page_after(store: Store, seq: int) -> list[EventRow]:
    """Return the next page of events; fewer if they are large."""
    question = select(EVENTS.c.seq, EVENTS.c.kind, EVENTS.c.body).where(EVENTS.c.seq > seq)
    rows: list[EventRow] = []
    held = 0
    with store.reading() as connection:
        for row in connection.execute(question.order_by(EVENTS.c.seq).limit(PAGE)):
            rows.append(EventRow(row[0], row[1], row[2]))
            held += len(row[2])
            if held >= PAGE_CHARACTERS:
                break
    return rows


def encode_events(rows: list[EventRow]) -> bytes:
    """Return events in server-sent events format; the JSON of a body has no line breaks."""
    return "".join(
        f"id: {line.seq}\nevent: {line.kind}\ndata: {line.body}\n\n" for line in rows
    ).encode()


ROUTES = Router("/api/v1", route_handlers=[stream_events])
