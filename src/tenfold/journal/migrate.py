"""Upgrade the tables of a journal with alembic revisions, run by the program itself.

A database that is up to date, the common case, is detected with one query and loads nothing. If two
programs open an old database at once, the second waits and finds it upgraded.
"""

from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

from tenfold.model.errors import InputError

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "0011"
"""The newest revision; a test compares it with the folder of revisions."""

LOCK = 0x7E4F01D
"""The advisory lock held while PostgreSQL is upgraded; SQLite has a single writer anyway."""


def bring_up_to_date(connection: Connection, to: str = HEAD) -> None:
    """Run the missing revisions, in the transaction of this connection."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK})"))
    found = revision_of(connection)
    if found == to:
        return
    if found > to:
        raise InputError(
            "journal-newer",
            f"the journal has revision {found}, but this version of Tenfold reads up to {to}",
            "use the version of Tenfold that wrote it, or a newer one",
        )
    from alembic import command  # noqa: PLC0415

    command.upgrade(alembic_config(connection), to)


def revision_of(connection: Connection) -> str:
    """Return the revision of a database; empty if it has none."""
    if not inspect(connection).has_table("alembic_version"):
        return ""
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar() or ""


def alembic_config(connection: Connection | None = None) -> "Config":
    """Return the alembic configuration with the connection to use."""
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", "tenfold.journal:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config
