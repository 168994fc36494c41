"""The digest chain: each event's digest covers the event and the digest before it.

After an export, the older events that stay form a chain of their own, which ends with
`exports.kept`; the others continue from `exports.chain`. Checks raise at the first event that does
not fit.
"""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

from sqlalchemy import Connection, LargeBinary, cast, func, literal, select

from tenfold.journal.read import PAGE, PAGE_CHARACTERS, ROWS_AHEAD, decode_rows
from tenfold.journal.read_tables import Numbered
from tenfold.journal.shared.texts import TextReader
from tenfold.journal.store import Store, last_seq
from tenfold.journal.tables import CHAIN, EVENTS, EXPORTS
from tenfold.model.errors import InputError

SIZE = 16
"""Bytes of a digest."""
KEPT_START = bytes(SIZE)
"""Start of the chain over events that stay behind an export."""
_EMPTY = blake2b(digest_size=SIZE)
SOUND = "integer text text blob"
"""Types of the columns of an event in SQLite."""
REPAIR_HINT = "restore a backup; do not edit the journal manually"


class EventRow(NamedTuple):
    """A row of `events` as it is stored, with the text that it shares."""

    seq: int
    at_ms: Any
    kind: bytes
    body: bytes
    chain: bytes | None
    types: str


class ChainRow(NamedTuple):
    """The row of the table `chain`."""

    journal: str
    first_seq: int
    last_seq: int
    head: bytes
    tables: int | None
    copied_seq: int | None

    @property
    def start(self) -> bytes:
        """The digest before the first event in the chain."""
        return bytes.fromhex(self.journal)


class Kept(NamedTuple):
    """Where the chain continues after the last export."""

    seq: int
    """The last exported event; 0 if there is none."""
    chain: bytes | None
    kept: bytes | None


def link(previous: bytes, seq: int, at_ms: int, kind: bytes, body: bytes) -> bytes:
    """Return the digest of an event that follows the event with the digest `previous`."""
    # A copy costs less than a new hash with its options, and this runs for every event.
    digest = _EMPTY.copy()
    digest.update(b"%b%d,%d,%d,%b%b" % (previous, seq, at_ms, len(kind), kind, body))
    return digest.digest()


def read_chain(connection: Connection) -> ChainRow:
    """Return the row of the table `chain`."""
    query = select(
        CHAIN.c.journal,
        CHAIN.c.first_seq,
        CHAIN.c.last_seq,
        CHAIN.c.head,
        CHAIN.c.tables,
        CHAIN.c.copied_seq,
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        raise damaged("the table `chain` of the journal is empty")
    found = ChainRow(*row)
    if len(found.journal) != 2 * SIZE or not set(found.journal) <= set("0123456789abcdef"):
        raise damaged("the id of the journal in the table `chain` was changed")
    return found


def digest_at(connection: Connection, seq: int) -> bytes | None:
    """Return the digest of an event; None for events before the chain."""
    chain = read_chain(connection)
    if seq < chain.first_seq - 1:
        return None
    if seq == chain.first_seq - 1:
        return chain.start
    kept = last_export(connection)
    if seq == kept.seq:
        found = kept.chain
    else:
        query = select(cast(EVENTS.c.chain, LargeBinary)).where(EVENTS.c.seq == seq)
        found = connection.execute(query).scalar()
    if found is None:
        raise InputError(
            "journal-gap",
            f"event {seq:,} is missing from the journal or has no digest",
            REPAIR_HINT,
        )
    return found


def last_export(connection: Connection) -> Kept:
    """Return where the chain continues after the last export."""
    query = select(EXPORTS.c.last_seq, EXPORTS.c.chain, EXPORTS.c.kept)
    row = connection.execute(query.order_by(EXPORTS.c.last_seq.desc()).limit(1)).one_or_none()
    return Kept(0, None, None) if row is None else Kept(*row)


def check_end(connection: Connection) -> ChainRow:
    """Raise if the last event is not the one that was written last."""
    chain, last = read_chain(connection), last_seq(connection)
    if chain.last_seq > last:
        raise InputError(
            "journal-cut",
            f"the journal ends with event {last:,}, but event {chain.last_seq:,} was written",
            REPAIR_HINT,
        )
    if chain.last_seq < last:
        raise damaged(f"event {chain.last_seq + 1:,} was not written by a control plane")
    if digest_at(connection, last) != chain.head:
        raise damaged(f"event {last:,}, the last one, was changed after it was written")
    return chain


def checked_pages(store: Store, seq: int, last: int | None = None) -> Iterator[list[Numbered]]:
    """Yield pages of events after one that was not exported; raise at the first damaged event."""
    with store.reading() as connection:
        before = digest_at(connection, seq)
        chain = read_chain(connection)
    for rows in row_pages(store, seq, last):
        for row in rows:
            if row.seq != seq + 1:
                raise _gap(seq)
            seq = row.seq
            if seq >= chain.first_seq:
                before = _checked(chain.start if before is None else before, row)
        yield decode_rows([(row.seq, row.body) for row in rows])


def check_chain(store: Store, last: int) -> int:
    """Check every event up to `last`; return the first event in the chain.

    Raise at the first damaged event.
    """
    with store.reading() as connection:
        export, chain = last_export(connection), read_chain(connection)
    if export.kept is not None:
        before = KEPT_START
        for rows in row_pages(store, 0, export.seq):
            for row in rows:
                before = _checked(before, row)
        if before != export.kept:
            raise damaged(f"one or more of the kept events up to {export.seq:,} are missing")
    seq = export.seq
    for page in checked_pages(store, seq, last):
        seq = page[-1][0]
    if seq != max(last, export.seq):
        raise _gap(seq)
    return chain.first_seq


def kept_links(connection: Connection, last: int) -> tuple[bytes, list[tuple[int, bytes]]]:
    """Return the end of a chain over the events up to `last`, and its changed digests."""
    before, changed = KEPT_START, list[tuple[int, bytes]]()
    query = _rows(connection).where(EVENTS.c.seq <= last).order_by(EVENTS.c.seq)
    for row in _read(connection, query):
        if not SOUND.startswith(row.types.removesuffix("null")):
            raise damaged(f"event {row.seq:,} was changed after it was written")
        before = link(before, row.seq, row.at_ms, row.kind, row.body)
        if before != row.chain:
            changed.append((row.seq, before))
    return before, changed


def row_pages(store: Store, seq: int, last: int | None = None) -> Iterator[list[EventRow]]:
    """Yield pages of rows after an event, as they are stored."""
    while True:
        rows: list[EventRow] = []
        with store.reading() as connection:
            query = _rows(connection).where(EVENTS.c.seq > seq)
            if last is not None:
                query = query.where(EVENTS.c.seq <= last)
            held = 0
            for row in _read(connection, query.order_by(EVENTS.c.seq).limit(PAGE)):
                rows.append(row)
                held += len(row.body or b"")
                if held >= PAGE_CHARACTERS:
                    break
        if not rows:
            return
        seq = rows[-1].seq
        yield rows


def damaged(said: str) -> InputError:
    """Return the error for damage that was found."""
    return InputError("journal-damaged", said, REPAIR_HINT)


def _checked(before: bytes, row: EventRow) -> bytes:
    if row.chain is None:
        raise damaged(f"event {row.seq:,} has no digest: it was not written by a control plane")
    is_sound = row.types == SOUND
    if not is_sound or link(before, row.seq, row.at_ms, row.kind, row.body) != row.chain:
        raise damaged(f"event {row.seq:,} was changed after it was written, or is out of order")
    return row.chain


def _gap(seq: int) -> InputError:
    return InputError(
        "journal-gap", f"events after event {seq:,} are missing from the journal", REPAIR_HINT
    )


def _rows(connection: Connection) -> Any:
    if connection.dialect.name == "sqlite":
        # SQLite stores any type in any column, and text that may not be valid.
        columns = [cast(each, LargeBinary) for each in (EVENTS.c.kind, EVENTS.c.body)]
        types: Any = func.typeof(EVENTS.c.at_ms)
        for each in (EVENTS.c.kind, EVENTS.c.body, EVENTS.c.chain):
            types = types.concat(" ").concat(func.typeof(each))
    else:
        columns, types = [EVENTS.c.kind, EVENTS.c.body], literal(SOUND)
    chain = cast(EVENTS.c.chain, LargeBinary)
    return select(EVENTS.c.seq, EVENTS.c.at_ms, *columns, chain, types, EVENTS.c.shared)


def _read(connection: Connection, query: Any) -> Iterable[EventRow]:
    # Options of the connection would also hold for what is written later.
    ahead = query.execution_options(stream_results=True, max_row_buffer=ROWS_AHEAD)
    with connection.execute(ahead) as result:
        found: Any = result
        texts = TextReader(connection)
        for seq, at_ms, kind, own, chain, types, shared in found:
            body = texts.joined(seq, own, shared)
            if isinstance(body, str):
                body = body.encode()
            name = kind.encode() if isinstance(kind, str) else kind
            yield EventRow(seq, at_ms, name, body, chain, types)
