"""Open a journal by its address, and say who may write.

SQLite runs in WAL mode with `synchronous=FULL`: a commit returns when the disk has it, and
readers never wait for the writer. PostgreSQL is asked for the same. A database that is older
than this program is brought up to date before anything is read.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from sqlalchemy import (
    Connection,
    Engine,
    create_engine,
    event,
    func,
    insert,
    inspect,
    select,
    update,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from tenfold.journal.migrate import HEAD, bring_up_to_date, revision_of
from tenfold.journal.tables import EVENTS, EXPORTS, LEASE, WRITERS
from tenfold.model.errors import InputError, Refused, Unreachable

WAIT_MS = 30_000
"""How long one writer waits for another, a backup or an upgrade: longer means trouble."""
WAL_BYTES_LEFT = 64 << 20
"""To this the write-ahead file shrinks once its pages are in the database."""

TIMEOUTS = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
"""How long PostgreSQL may be silent: in seconds, and the last one in milliseconds."""
WRITES = {"tenfold_writes": True}
REPEATABLE_READ = {"isolation_level": "REPEATABLE READ"}


class Store:
    """A database with the journal's tables; `reading` and `writing` are transactions."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.dialect = engine.dialect.name
        self.writes_since_s: float | None = None
        """Since when a transaction that writes has not come to its end, by the monotonic clock."""

    @property
    def name(self) -> str:
        """Its address, without a password."""
        return self.engine.url.render_as_string(hide_password=True)

    @property
    def file(self) -> Path | None:
        """Where it lies, for SQLite."""
        name = self.engine.url.database
        return Path(name) if self.dialect == "sqlite" and name else None

    @contextmanager
    def reading(self) -> Generator[Connection, None, None]:
        """Give a connection that sees one moment, however many questions it is asked."""
        with _database_errors(self.name), self.engine.connect() as plain:
            # SQLite's readers see one moment anyway.
            options = REPEATABLE_READ if self.dialect == "postgresql" else {}
            with plain.execution_options(**options) as connection, connection.begin():
                yield connection

    @contextmanager
    def writing(self) -> Generator[Connection, None, None]:
        """Give a connection whose changes are on the disk when the block ends, or not made."""
        self.writes_since_s = monotonic()
        try:
            with (
                self.engine.connect().execution_options(**WRITES) as connection,
                connection.begin(),
            ):
                yield connection
        finally:
            self.writes_since_s = None

    def close(self) -> None:
        """Let go of every connection."""
        self.engine.dispose()


def open_store(
    where: str | Path, *, connect: Callable[[], Any] | None = None, upgrades: bool = True
) -> Store:
    """Open a journal by URL or by the path of its file, and bring it up to date.

    `connect` takes the place of the driver's own way to connect. Whoever only reads leaves an
    older journal as it is.
    """
    url = _url(where)
    engine_options: dict[str, Any] = {} if connect is None else {"creator": connect}
    if url.get_backend_name() == "postgresql":
        # Connections are cut by restarts and by firewalls; it is noticed before one is used.
        engine_options["pool_pre_ping"] = True
    try:
        engine = create_engine(_with_limits(url), **engine_options)
    except (ImportError, NoSuchModuleError) as error:
        raise InputError(
            "journal-driver",
            f"a journal at `{url.drivername}` cannot be opened here: {error}",
            "for PostgreSQL install `tenfold[postgres]`; others are not supported",
        ) from None
    if engine.dialect.name == "sqlite":
        _configure_sqlite(engine)
    else:
        _configure_postgresql(engine)
    store = Store(engine)
    try:
        with store.reading() as connection:
            found = revision_of(connection)
            if not found and store.dialect == "sqlite" and inspect(connection).get_table_names():
                # A database server may well have tables of others; a file is one program's.
                raise _no_journal(store.name)
        if found != HEAD and (upgrades or found > HEAD or not found):
            if not (upgrades or found):
                raise _no_journal(store.name)
            with _database_errors(store.name), store.writing() as connection:
                bring_up_to_date(connection)
    except BaseException:
        store.close()
        raise
    return store


def _no_journal(name: str) -> InputError:
    return InputError(
        "not-a-journal",
        f"`{name}` is a database without a journal in it",
        "name the state folder, the journal file or the URL that a control plane was given",
    )


def take_lease(store: Store, holder: str, now_ms: int) -> int:
    """Become the writer and return the epoch; whoever wrote before is shut out."""
    with _database_errors(store.name), store.writing() as connection:
        held = connection.execute(select(LEASE.c.epoch).with_for_update()).scalar()
        epoch = (held or 0) + 1
        row = {"epoch": epoch, "holder": holder, "taken_ms": now_ms}
        if held is None:
            connection.execute(insert(LEASE), {"id": 1, **row})
        else:
            connection.execute(update(LEASE).values(**row))
        connection.execute(insert(WRITERS), {**row, "first_seq": last_seq(connection) + 1})
    return epoch


def check_epoch(connection: Connection, epoch: int) -> None:
    """Refuse a writer that another has followed; the answer holds until the commit."""
    row = connection.execute(select(LEASE.c.epoch, LEASE.c.holder).with_for_update()).one()
    if row.epoch != epoch:
        raise Refused(
            "lease-lost",
            f"`{row.holder}` writes this journal now, in epoch {row.epoch}; this was {epoch}",
            "stop this controller: the other one has taken over",
        )


def last_seq(connection: Connection) -> int:
    """Return the number of the latest event, 0 where there is none."""
    found = connection.execute(select(func.max(EVENTS.c.seq))).scalar() or 0
    return max(found, connection.execute(select(func.max(EXPORTS.c.last_seq))).scalar() or 0)


def _url(where: str | Path) -> URL:
    text = str(where)
    if isinstance(where, Path) or "://" not in text:
        path = Path(text)
        if not path.parent.is_dir():
            raise InputError(
                "no-such-folder",
                f"there is no folder `{path.parent}` for the journal `{path.name}`",
                "make the folder first",
                file=text,
            )
        return URL.create("sqlite", database=text)
    try:
        url = make_url(text)
    except ArgumentError:
        raise _unknown(text.split("://", 1)[0]) from None
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise _unknown(url.drivername)
    return url


def _with_limits(url: URL) -> URL:
    """Return an address under which a database that has gone silent is noticed in time.

    What the address says itself comes first. Without these, a cable that was pulled would hold
    up the loop for as long as the kernel has patience, which is hours.
    """
    if url.get_backend_name() != "postgresql":
        return url
    return url.set(query={**TIMEOUTS, **url.query})


def _unknown(scheme: str) -> InputError:
    return InputError(
        "journal-driver",
        f"`{scheme}` is not a kind of journal",
        "give the path of a file, or an address that begins with postgresql://",
    )


def _configure_sqlite(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def _(connection: Any, record: object) -> None:  # pyright: ignore[reportUnusedFunction]
        # The driver's own idea of when a transaction begins is too late for a writer.
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={WAIT_MS}")
        mode = cursor.execute("PRAGMA journal_mode=WAL").fetchone()[0]
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute(f"PRAGMA journal_size_limit={WAL_BYTES_LEFT}")
        cursor.close()
        if mode != "wal":
            raise InputError(
                "journal-without-wal",
                f"SQLite cannot keep a write-ahead log at `{engine.url.database}`",
                "put the journal on a local disk: network file systems cannot share its memory",
            )

    @event.listens_for(engine, "begin")
    def _(connection: Connection) -> None:  # pyright: ignore[reportUnusedFunction]
        writes = connection.get_execution_options().get("tenfold_writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _configure_postgresql(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def _(connection: Any, record: object) -> None:  # pyright: ignore[reportUnusedFunction]
        # A server may be set up to answer before its disk has it.
        connection.execute("SET synchronous_commit TO on")
        connection.execute(f"SET lock_timeout TO {WAIT_MS}")
        connection.commit()


@contextmanager
def _database_errors(name: str) -> Generator[None, None, None]:
    """Say in one sentence what a database says in many."""
    try:
        yield
    except SQLAlchemyError as error:
        raise Unreachable(
            "journal-unreachable",
            f"the journal `{name}` does not answer: {reason_of(error)}",
            "check that the file or server is there and that this user may use it",
        ) from error


def reason_of(error: SQLAlchemyError) -> str:
    """Return the first line of what the driver said."""
    cause = getattr(error, "orig", None) or error
    return str(cause).strip().split("\n", 1)[0] or type(cause).__name__
