"""Check the read tables by their sum, and build them from the events if it differs."""

from sqlalchemy import Connection, delete, update

from tenfold.journal.append import JournalWriter
from tenfold.journal.integrity.chain import check_chain, read_chain
from tenfold.journal.integrity.table_sum import MASK, READ_TABLES, sum_of_tables
from tenfold.journal.read import event_pages
from tenfold.journal.read_tables import update_read_tables
from tenfold.journal.tables import CHAIN
from tenfold.model.fleet.finding import Finding


def tables_match(connection: Connection) -> bool:
    """Return whether the rows of the read tables match their sum, or it is not known yet."""
    expected = read_chain(connection).tables
    return expected is None or sum_of_tables(connection) == expected


def check_read_tables(writer: JournalWriter) -> Finding | None:
    """Rebuild the read tables if they differ from their sum; return a warning then.

    After an upgrade there is no sum yet: then it is taken from the rows that are there.
    """
    with writer.store.reading() as connection:
        is_known, is_match = read_chain(connection).tables is not None, tables_match(connection)
    if not is_known:
        with writer.writing() as connection:
            connection.execute(update(CHAIN).values(tables=sum_of_tables(connection)))
        return None
    if is_match:
        return None
    rebuild_read_tables(writer)
    return Finding(
        code="read-tables-rebuilt",
        message="the tables of jobs and nodes did not match the events: rebuilt from the events",
        hint="check the disk, and who else can write to the journal",
        severity="warning",
    )


def rebuild_read_tables(writer: JournalWriter) -> None:
    """Fill the read tables from the events alone, in one transaction."""
    check_chain(writer.store, writer.seq)
    with writer.writing() as connection:
        for table in READ_TABLES:
            connection.execute(delete(table))
        total = 0
        for page in event_pages(writer.store, 0, writer.seq):
            total += update_read_tables(connection, page)
        connection.execute(update(CHAIN).values(tables=total & MASK))
