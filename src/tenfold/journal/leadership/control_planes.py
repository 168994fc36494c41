"""The control planes that share a journal: one row each, written only by the control plane itself.

The rows show who is there; nothing is decided by them.
"""

from msgspec import Struct
from sqlalchemy import delete, insert, select, update

from tenfold.journal.leadership.lease import LeaseState, clock_ms, lease_of, limit_statements
from tenfold.journal.store import Store, database_errors
from tenfold.journal.tables import CONTROL_PLANES

GONE_MS = 86_400_000
"""A control plane that was not seen for this long is forgotten."""


class ControlPlaneRow(Struct, frozen=True, kw_only=True):
    """One control plane."""

    id: str
    name: str
    url: str
    holder: str
    """Its machine and process."""
    version: str
    """Of Tenfold."""
    seen_ms: int = 0
    """When it wrote this, by the database's clock."""


class Shared(Struct, frozen=True):
    """The control planes of a journal, and which one leads."""

    lease: LeaseState | None
    rows: tuple[ControlPlaneRow, ...]
    now_ms: int
    """The database's clock."""


def note_seen(store: Store, row: ControlPlaneRow, within_ms: int) -> None:
    """Record that a control plane is there; raise if that takes longer."""
    with database_errors(store.name), store.writing() as connection:
        limit_statements(connection, within_ms)
        now_ms = clock_ms(connection)
        values = {
            "name": row.name,
            "url": row.url,
            "holder": row.holder,
            "version": row.version,
            "seen_ms": now_ms,
        }
        mine = CONTROL_PLANES.c.id == row.id
        if not connection.execute(update(CONTROL_PLANES).where(mine).values(**values)).rowcount:
            connection.execute(insert(CONTROL_PLANES), {"id": row.id, **values})
        old = CONTROL_PLANES.c.seen_ms < now_ms - GONE_MS
        connection.execute(delete(CONTROL_PLANES).where(old))


def forget(store: Store, control_plane: str) -> None:
    """Record that a control plane has stopped."""
    with database_errors(store.name), store.writing() as connection:
        connection.execute(delete(CONTROL_PLANES).where(CONTROL_PLANES.c.id == control_plane))


def shared_by(store: Store) -> Shared:
    """Return the control planes that share a journal, by name."""
    lease = lease_of(store)
    with store.reading() as connection:
        query = select(CONTROL_PLANES).order_by(CONTROL_PLANES.c.name, CONTROL_PLANES.c.id)
        rows = [ControlPlaneRow(**row) for row in connection.execute(query).mappings()]
        return Shared(lease, tuple(rows), clock_ms(connection))
