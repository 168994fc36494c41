"""Pages of the journal for event streams: small, read by few threads, and shared.

Streams of one team that are up to date all need the same page at the same time, so it is read and
redacted once. What a client has not read yet stays on disk, apart from one page.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar
from sqlalchemy import func, select

from tenfold.journal.shared.texts import TextReader, shared_lengths
from tenfold.journal.store import Store
from tenfold.journal.tables import EVENTS
from tenfold.server.auth.redaction import EventRow, visible_events
from tenfold.server.auth.tokens import Role, Token

PAGE = 500
PAGE_CHARACTERS = 64 << 10
"""Only a page of one event is larger."""
PIECE_BYTES = 64 << 10
PAGES_SHARED = 16
THREADS = 2
"""Streams read the journal in threads of their own, so that requests never wait for them."""
_THREADS: RunVar[CapacityLimiter] = RunVar("tenfold-stream-threads")
_Key = tuple[int, int, str, Role]


class PageRange(NamedTuple):
    """Which events a page has: those up to `last`, of this many characters."""

    last: int
    characters: int


class EventPages:
    """Reads pages for all streams; in the event loop only."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pages: OrderedDict[_Key, asyncio.Task[bytes]] = OrderedDict()

    async def next_range(self, seq: int, newest: int) -> PageRange:
        """Return the events of the page after `seq`, without reading them."""
        return await to_thread.run_sync(
            page_range, self._store, seq, newest, limiter=stream_threads()
        )

    async def page(self, token: Token, seq: int, last: int) -> bytes:
        """Return the events after `seq` up to `last` that a token may see, as they are sent."""
        key = (seq, last, token.team, token.role)
        task = self._pages.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._read(token, seq, last))
            self._pages[key] = task
            if len(self._pages) > PAGES_SHARED:
                self._pages.popitem(last=False)
        try:
            # A stream that ends must not end the reading of the others.
            return await asyncio.shield(task)
        except Exception:
            self._pages.pop(key, None)
            raise

    async def _read(self, token: Token, seq: int, last: int) -> bytes:
        return await to_thread.run_sync(
            _read_page, self._store, token, seq, last, limiter=stream_threads()
        )


def page_range(store: Store, seq: int, newest: int) -> PageRange:
    """Return how far the page after `seq` goes; events that were moved out are skipped."""
    size = func.length(EVENTS.c.body)
    question = select(EVENTS.c.seq, size, EVENTS.c.shared).where(EVENTS.c.seq > seq)
    last, characters = newest, 0
    with store.reading() as connection:
        rows = connection.execute(question.order_by(EVENTS.c.seq).limit(PAGE)).all()
        shared = shared_lengths(connection, [row[2] for row in rows if row[2] is not None])
    for place, (number, own, text) in enumerate(rows):
        length = own + shared.get(text, 0)
        if place and characters + length > PAGE_CHARACTERS:
            return PageRange(last, characters)
        last, characters = number, characters + length
    return PageRange(last, characters)


def pieces(page: bytes) -> Iterator[bytes]:
    """Yield a page in pieces, so that little of it is held for a client that does not read."""
    for at in range(0, len(page), PIECE_BYTES):
        yield page[at : at + PIECE_BYTES]


def stream_threads() -> CapacityLimiter:
    """Return the threads of streams."""
    found = _THREADS.get(None)
    if found is None:
        found = CapacityLimiter(THREADS)
        _THREADS.set(found)
    return found


def _read_page(store: Store, token: Token, seq: int, last: int) -> bytes:
    columns = select(EVENTS.c.seq, EVENTS.c.kind, EVENTS.c.body, EVENTS.c.shared)
    question = columns.where(EVENTS.c.seq > seq, EVENTS.c.seq <= last).order_by(EVENTS.c.seq)
    with store.reading() as connection:
        texts = TextReader(connection)
        rows = [
            EventRow(row[0], row[1], _text(texts.joined(row[0], row[2], row[3])))
            for row in connection.execute(question)
        ]
    return encode_events(visible_events(token, rows, store))


def _text(body: str | bytes) -> str:
    return body if isinstance(body, str) else body.decode()


def encode_events(rows: list[EventRow]) -> bytes:
    """Return events in server-sent events format; the JSON of a body has no line breaks."""
    return "".join(
        f"id: {line.seq}\nevent: {line.kind}\ndata: {line.body}\n\n" for line in rows
    ).encode()
