"""Open a journal by its URL or file.

SQLite runs in WAL mode with `synchronous=FULL`: a commit returns when it is on disk, and readers
never wait for the writer. PostgreSQL is configured the same way. An older database is upgraded
before anything is read.
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
    inspect,
    select,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from tenfold.journal.migrate import HEAD, bring_up_to_date, revision_of
from tenfold.journal.tables import EVENTS, EXPORTS
from tenfold.model.errors import InputError, Unreachable

WAIT_MS = 30_000
"""How long a writer waits for another writer, a backup or an upgrade."""
WAL_BYTES_LEFT = 64 << 20
"""Size that the write-ahead log shrinks to after a checkpoint."""

TIMEOUTS = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
"""Network timeouts for PostgreSQL: in seconds, the last one in milliseconds."""
WRITES = {"tenfold_writes": True}
REPEATABLE_READ = {"isolation_level": "REPEATABLE READ"}


class Store:
    """A database with the journal's tables; `reading` and `writing` are transactions."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.dialect = engine.dialect.name
        self.writes_since_s: float | None = None
        """Start of the current write transaction, on the monotonic clock; None if there is none."""

    @property
    def name(self) -> str:
        """Its URL, without the password."""
        return self.engine.url.render_as_string(hide_password=True)

    @property
    def file(self) -> Path | None:
        """The database file, for SQLite."""
        name = self.engine.url.database
        return Path(name) if self.dialect == "sqlite" and name else None

    @contextmanager
    def reading(self) -> Generator[Connection, None, None]:
        """Yield a connection that sees one consistent state across queries."""
        with database_errors(self.name), self.engine.connect() as plain:
            # SQLite readers see one consistent state anyway.
            options = REPEATABLE_READ if self.dialect == "postgresql" else {}
            with plain.execution_options(**options) as connection, connection.begin():
                yield connection

    @contextmanager
    def writing(self) -> Generator[Connection, None, None]:
        """Yield a connection whose changes are on disk when the block ends, or rolled back."""
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
        """Close all connections."""
        self.engine.dispose()


def open_store(
    where: str | Path, *, connect: Callable[[], Any] | None = None, upgrades: bool = True
) -> Store:
    """Open a journal by URL or file, and upgrade it.

    `connect` replaces the driver's own connect function. Readers pass `upgrades=False` to leave an
    older journal unchanged.
    """
    url = _url(where)
    engine_options: dict[str, Any] = {} if connect is None else {"creator": connect}
    if url.get_backend_name() == "postgresql":
        # Restarts and firewalls cut connections; check before use.
        engine_options["pool_pre_ping"] = True
    try:
        engine = create_engine(_with_limits(url), **engine_options)
    except (ImportError, NoSuchModuleError) as error:
        raise InputError(
            "journal-driver",
            f"cannot open a journal at `{url.drivername}`: {error}",
            "for PostgreSQL install `tenfold[postgres]`; other databases are not supported",
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
                # A database server may have other tables; a file should not.
                raise _no_journal(store.name)
        if found != HEAD and (upgrades or found > HEAD or not found):
            if not (upgrades or found):
                raise _no_journal(store.name)
            with database_errors(store.name), store.writing() as connection:
                bring_up_to_date(connection)
    except BaseException:
        store.close()
        raise
    return store


def _no_journal(name: str) -> InputError:
    return InputError(
        "not-a-journal",
        f"`{name.removeprefix('sqlite:///')}` is a database without a journal",
        "use the state directory, journal file or URL of a control plane",
    )


def last_seq(connection: Connection) -> int:
    """Return the number of the last event; 0 if there is none."""
    found = connection.execute(select(func.max(EVENTS.c.seq))).scalar() or 0
    return max(found, connection.execute(select(func.max(EXPORTS.c.last_seq))).scalar() or 0)


def _url(where: str | Path) -> URL:
    text = str(where)
    if isinstance(where, Path) or "://" not in text:
        path = Path(text)
        if not path.parent.is_dir():
            raise InputError(
                "no-such-folder",
                f"the folder `{path.parent}` for the journal `{path.name}` does not exist",
                "create the folder first",
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
    """Return the URL with timeouts, so that a dead connection is noticed in time.

    Options in the URL take precedence. Without timeouts, a broken network link would block the loop
    for hours.
    """
    if url.get_backend_name() != "postgresql":
        return url
    return url.set(query={**TIMEOUTS, **url.query})


def _unknown(scheme: str) -> InputError:
    return InputError(
        "journal-driver",
        f"`{scheme}` is not a supported journal URL scheme",
        "use a file path, or a URL that starts with postgresql://",
    )


def _configure_sqlite(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def _(connection: Any, record: object) -> None:  # pyright: ignore[reportUnusedFunction]
        # By default the driver begins a transaction too late for a writer.
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
                f"SQLite cannot use a write-ahead log at `{engine.url.database}`",
                "put the journal on a local disk: network file systems do not support it",
            )

    @event.listens_for(engine, "begin")
    def _(connection: Connection) -> None:  # pyright: ignore[reportUnusedFunction]
        writes = connection.get_execution_options().get("tenfold_writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _configure_postgresql(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def _(connection: Any, record: object) -> None:  # pyright: ignore[reportUnusedFunction]
        # A server may be configured to confirm commits before they are on disk.
        connection.execute("SET synchronous_commit TO on")
        connection.execute(f"SET lock_timeout TO {WAIT_MS}")
        connection.commit()


@contextmanager
def database_errors(name: str) -> Generator[None, None, None]:
    """Turn a database error into one short error."""
    try:
        yield
    except SQLAlchemyError as error:
        if "not a database" in reason_of(error):
            raise Unreachable(
                "journal-unreachable",
                f"`{name.removeprefix('sqlite:///')}` is not a journal or a recorded run",
                "use a journal, a state directory, a database URL, or a recorded run that ends "
                "in .jsonl or .jsonl.gz",
            ) from error
        raise Unreachable(
            "journal-unreachable",
            f"cannot reach the journal `{name}`: {reason_of(error)}",
            "check that the file or server exists and that this user has access",
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(
            "journal-damaged",
            f"the journal `{name}` contains text that is not UTF-8",
            "restore the journal from a backup; do not edit it manually",
        ) from error


def reason_of(error: SQLAlchemyError) -> str:
    """Return the first line of the driver's error."""
    cause = getattr(error, "orig", None) or error
    return str(cause).strip().split("\n", 1)[0] or type(cause).__name__
