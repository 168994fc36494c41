"""The lease of a journal: which control plane may write, and since when.

The epoch increases with every leader, and every write compares it: a leader that was superseded is
refused in the same transaction. The time only decides when another may take the lease. It is that
of the database, so the clocks of control planes do not matter. A claim without a lease takes the
journal at once: that is right where only one control plane can run, as with SQLite.
"""

from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, func, insert, select, text, update

from tenfold.journal.store import Store, database_errors, last_seq
from tenfold.journal.tables import JOBS, LEASE, WRITERS
from tenfold.model.errors import Refused

LEASE_MS = 4_000
"""Default length of a lease; a standby takes over within about this time after a leader stalls."""
WITH_PROCESSES = ("starting", "running", "stopping")
"""States of jobs that may have processes."""
LOST = "lease-lost"
"""The code of a writer that was superseded."""
HELD = "lease-held"
"""The code of a control plane that may not lead, because another one does."""
_CLOCK = {
    "sqlite": "SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
    "postgresql": "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)",
}

_END_STALLED = """
SELECT pg_terminate_backend(session.pid)
FROM pg_stat_activity AS session, lease
WHERE lease.renewed_ms + lease.lease_ms < extract(epoch FROM clock_timestamp()) * 1000
  AND session.pid <> pg_backend_pid()
  AND session.wait_event = 'ClientRead'
  AND session.state_change < clock_timestamp() - lease.lease_ms * interval '0.5 ms'
  AND session.pid IN (SELECT pid FROM pg_locks WHERE relation = 'lease'::regclass)
"""


class Claim(Struct, frozen=True, kw_only=True):
    """A control plane that wants to lead."""

    control_plane: str = ""
    """Its identity, which a restart keeps."""
    url: str = ""
    executor: str = ""
    """Identifies the executor whose jobs it sees, and then says where that is."""
    lease_ms: int | None = None
    """Length of the lease; None to take the journal at once, and for good."""
    requeues: bool = False
    """Whether jobs of another executor are requeued, because that is gone."""
    epoch_least: int = 1
    """The executor has seen the epochs below, perhaps of a journal before it was restored."""
    dead_epoch: int = 0
    """The leader of this epoch is known to be dead, so its lease need not expire."""


ALONE = Claim()


class LeaseState(Struct, frozen=True, kw_only=True):
    """The lease as it is now."""

    epoch: int
    holder: str
    control_plane: str
    url: str
    executor: str
    left_ms: int
    """Time until it expires, by the database's clock; 0 or less once it has."""

    def may_take(self, claim: Claim) -> bool:
        """Tell whether a control plane may take it now."""
        is_own = self.control_plane == claim.control_plane
        return is_own or self.left_ms <= 0 or self.epoch == claim.dead_epoch


def take_lease(store: Store, holder: str, now_ms: int, claim: Claim = ALONE) -> int:
    """Become the writer and return the epoch; the previous writer is locked out.

    Raise if another control plane holds a lease.
    """
    with database_errors(store.name), store.writing() as connection:
        if claim.lease_ms is not None:
            _free_locks(connection, claim.lease_ms)
            _end_stalled(connection)
        held = connection.execute(select(LEASE.c.epoch).with_for_update()).scalar()
        if claim.lease_ms is not None:
            _check_claim(connection, claim)
        epoch = max((held or 0) + 1, claim.epoch_least)
        row: dict[str, Any] = {"epoch": epoch, "holder": holder, "taken_ms": now_ms}
        own: dict[str, Any] = {"control_plane": None, "url": None, "executor": None}
        own |= {"lease_ms": claim.lease_ms, "renewed_ms": None}
        if claim.lease_ms is not None:
            own |= {"control_plane": claim.control_plane, "url": claim.url}
            own |= {"executor": claim.executor, "renewed_ms": clock_ms(connection)}
        if held is None:
            connection.execute(insert(LEASE), {"id": 1, **row, **own})
        else:
            connection.execute(update(LEASE).values(**row, **own))
        connection.execute(insert(WRITERS), {**row, "first_seq": last_seq(connection) + 1})
    return epoch


def check_epoch(connection: Connection, epoch: int) -> None:
    """Reject a writer that was superseded; the check holds until the commit."""
    # SQLite has one writer at a time. Plain SQL: this runs with each commit.
    query = "SELECT epoch, holder FROM lease"
    if connection.dialect.name == "postgresql":
        # The lock must not outlive a leader that is stopped in the middle of a transaction.
        limit = "set_config('idle_in_transaction_session_timeout', lease_ms::text, true)"
        query = f"SELECT epoch, holder, coalesce({limit}, '') FROM lease FOR UPDATE"
    row = connection.exec_driver_sql(query).one()
    if row.epoch != epoch:
        raise Refused(
            "lease-lost",
            f"`{row.holder}` took over this journal in epoch {row.epoch}; this writer had {epoch}",
            "stop this control plane: the other one is active",
        )


def lease_of(store: Store) -> LeaseState | None:
    """Return the lease; None before the first writer."""
    with store.reading() as connection:
        return _lease(connection)


def renew(store: Store, epoch: int, within_ms: int) -> bool:
    """Extend the lease; False if another control plane took it. Raise if that takes longer."""
    with database_errors(store.name), store.writing() as connection:
        limit_statements(connection, within_ms)
        change = update(LEASE).where(LEASE.c.epoch == epoch)
        done = connection.execute(change.values(renewed_ms=clock_ms(connection)))
        return done.rowcount == 1


def release(store: Store, epoch: int, within_ms: int) -> None:
    """Hand the lease over: whoever asks next may take it at once."""
    with database_errors(store.name), store.writing() as connection:
        limit_statements(connection, within_ms)
        connection.execute(update(LEASE).where(LEASE.c.epoch == epoch).values(renewed_ms=0))


def limit_statements(connection: Connection, within_ms: int) -> None:
    """Have statements of this transaction fail that take longer, and the time between them."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SET LOCAL statement_timeout TO {int(within_ms)}")
    _free_locks(connection, within_ms)


def _free_locks(connection: Connection, within_ms: int) -> None:
    """Have the database end this transaction if its process stops for longer in the middle of it.

    Its locks would keep all others from leading for as long as a paused process sleeps.
    """
    if connection.dialect.name == "postgresql":
        limit = f"SET LOCAL idle_in_transaction_session_timeout TO {int(within_ms)}"
        connection.exec_driver_sql(limit)


def _end_stalled(connection: Connection) -> None:
    """End transactions that lock an expired lease and whose process has said nothing for long.

    The server's own limit does not count while it waits for the rest of a batch of messages.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(_END_STALLED)


def clock_ms(connection: Connection) -> int:
    """Return the time of the database."""
    return connection.execute(text(_CLOCK[connection.dialect.name])).scalar() or 0


def _lease(connection: Connection) -> LeaseState | None:
    row = connection.execute(select(LEASE)).mappings().one_or_none()
    if row is None:
        return None
    left_ms = 0
    if row["lease_ms"] is not None and row["renewed_ms"] is not None:
        left_ms = row["renewed_ms"] + row["lease_ms"] - clock_ms(connection)
    return LeaseState(
        epoch=row["epoch"],
        holder=row["holder"],
        control_plane=row["control_plane"] or "",
        url=row["url"] or "",
        executor=row["executor"] or "",
        left_ms=left_ms,
    )


def _check_claim(connection: Connection, claim: Claim) -> None:
    lease = _lease(connection)
    if lease is None:
        return
    check_executor(connection, claim, lease)
    if not lease.may_take(claim):
        raise Refused(
            "lease-held",
            f"`{lease.holder}` leads this journal in epoch {lease.epoch}",
            "this control plane is on standby, and becomes the leader once that one stops",
        )


def check_executor(connection: Connection, claim: Claim, lease: LeaseState) -> None:
    """Raise if running jobs have processes that a control plane could not see."""
    theirs, ours = lease.executor.split(" ")[0], claim.executor.split(" ")[0]
    if theirs in ("", ours) or claim.requeues:
        return
    query = select(func.count()).where(JOBS.c.state.in_(WITH_PROCESSES))
    running = connection.execute(query).scalar() or 0
    if not running and lease.left_ms <= 0:
        return
    where = lease.executor.partition(" ")[2] or theirs
    raise Refused(
        "another-executor",
        f"{running:,} jobs of this journal run under `{where}`, led by `{lease.holder}`; this "
        "control plane cannot see their processes",
        "start it with that state directory, or with `--requeue-running` if that machine is gone",
    )
