"""Throw the read tables away and build them anew: the events alone say what they hold."""

from sqlalchemy import delete

from tenfold.journal.append import JournalWriter
from tenfold.journal.read import event_pages
from tenfold.journal.read_tables import keep_up
from tenfold.journal.tables import READ_TABLES


def rebuild_read_tables(writer: JournalWriter) -> None:
    """Fill the read tables from the events, in one transaction: listings see old or new."""
    with writer.writing() as connection:
        for table in READ_TABLES:
            connection.execute(delete(table))
        for page in event_pages(writer.store):
            keep_up(connection, page)
