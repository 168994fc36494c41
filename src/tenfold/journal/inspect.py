"""Figures about a journal, for operators."""

from msgspec import Struct
from sqlalchemy import Connection, func, select, text

from tenfold.journal.read import counts
from tenfold.journal.snapshots import exported_until, snapshots_of
from tenfold.journal.store import Store, last_seq
from tenfold.journal.tables import CYCLES, EVENTS, EXPORTS, LEASE


class ExportedEvents(Struct, frozen=True, kw_only=True):
    """Events that were moved to a bundle."""

    first_seq: int
    last_seq: int
    file: str


class JournalInfo(Struct, frozen=True, kw_only=True):
    """The contents and size of a journal."""

    journal: str
    """Its URL, without the password."""
    kind: str
    bytes: int | None
    """Size on disk, including the write-ahead log."""
    bytes_free: int | None
    """Free pages within that size."""
    events: int
    last_seq: int
    first_at_ms: int | None
    last_at_ms: int | None
    cycles: int
    snapshots: tuple[int, ...]
    """The events after which there is a snapshot, newest first."""
    moved: tuple[ExportedEvents, ...]
    jobs: dict[str, int]
    epoch: int
    holder: str
    """The current or last writer."""


def inspect(store: Store) -> JournalInfo:
    """Return the figures at one point in time."""
    size, free = _size(store)
    jobs = {str(state): number for state, number in counts(store).items()}
    with store.reading() as connection:
        exported = exported_until(connection)
        row = connection.execute(select(LEASE.c.epoch, LEASE.c.holder)).one_or_none()
        ends = select(func.min(EVENTS.c.seq), func.max(EVENTS.c.seq)).where(EVENTS.c.seq > exported)
        first, last = connection.execute(ends).one()
        return JournalInfo(
            journal=store.name,
            kind=store.dialect,
            bytes=size,
            bytes_free=free,
            events=_count(connection, EVENTS.c.seq),
            last_seq=last_seq(connection),
            first_at_ms=_at(connection, first),
            last_at_ms=_at(connection, last),
            cycles=_count(connection, CYCLES.c.number),
            snapshots=tuple(snapshots_of(connection)),
            moved=_moved(connection),
            jobs=jobs,
            epoch=0 if row is None else row[0],
            holder="" if row is None else row[1],
        )


def _moved(connection: Connection) -> tuple[ExportedEvents, ...]:
    query = select(EXPORTS.c.first_seq, EXPORTS.c.last_seq, EXPORTS.c.file)
    rows = connection.execute(query.order_by(EXPORTS.c.last_seq)).all()
    return tuple(ExportedEvents(first_seq=row[0], last_seq=row[1], file=row[2]) for row in rows)


def _count(connection: Connection, column: "object") -> int:
    return connection.execute(select(func.count(column))).scalar() or 0  # pyright: ignore[reportArgumentType]


def _at(connection: Connection, seq: int | None) -> int | None:
    return connection.execute(select(EVENTS.c.at_ms).where(EVENTS.c.seq == seq)).scalar()


def _size(store: Store) -> tuple[int | None, int | None]:
    with store.reading() as connection:
        if store.dialect == "postgresql":
            size = connection.execute(text("SELECT pg_database_size(current_database())")).scalar()
            return size, None
        page = connection.execute(text("PRAGMA page_size")).scalar() or 0
        free = connection.execute(text("PRAGMA freelist_count")).scalar() or 0
    file = store.file
    if file is None:
        return None, None
    wal = file.with_name(f"{file.name}-wal")
    size = file.stat().st_size + (wal.stat().st_size if wal.exists() else 0)
    return size, page * free
