"""Bring the tables of a journal up to date: alembic's revisions, run by the program itself.

The common case, a database that is up to date, is told by one query and loads nothing. Two
programs that open an old database at once take turns: the second finds it upgraded.
"""

from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

from tenfold.model.errors import InputError

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "0007"
"""The newest revision; a test compares it with the folder of revisions."""

LOCK = 0x7E4F01D
"""Names the lock under which PostgreSQL is upgraded; SQLite has one writer anyway."""


def bring_up_to_date(connection: Connection, to: str = HEAD) -> None:
    """Run the revisions that are missing, all in the transaction of this connection."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK})"))
    found = revision_of(connection)
    if found == to:
        return
    if found > to:
        raise InputError(
            "journal-newer",
            f"the journal has the tables of revision {found}; this program knows up to {to}",
            "use the version of tenfold that wrote it, or a newer one",
        )
    from alembic import command  # noqa: PLC0415

    command.upgrade(alembic_config(connection), to)


def revision_of(connection: Connection) -> str:
    """Return the revision of a database; empty where there is none yet."""
    if not inspect(connection).has_table("alembic_version"):
        return ""
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar() or ""


def alembic_config(connection: Connection | None = None) -> "Config":
    """Return what alembic needs to find the revisions, and the connection to use."""
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", "tenfold.journal:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config
