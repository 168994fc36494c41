"""Move a journal's events to bundles, and build its read tables and fleet anew from the record."""

from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import delete

from tenfold.engine.digest import fleet_digest
from tenfold.engine.recording import events_of
from tenfold.files.records.replay_bundle import BundleHeader, read_bundle
from tenfold.fleet.fleet import Fleet
from tenfold.journal.append import JournalWriter
from tenfold.journal.read import event_pages
from tenfold.journal.read_tables import update_read_tables
from tenfold.journal.retention import Export, export_events
from tenfold.journal.snapshots import exported_until, fleet_at, snapshots_of
from tenfold.journal.tables import ATTEMPTS, JOBS, NODES, SUBMIT_KEYS

READ_TABLES = (JOBS, ATTEMPTS, NODES, SUBMIT_KEYS)


def rebuild_read_tables(writer: JournalWriter) -> None:
    """Fill the read tables from the events alone, in one transaction."""
    with writer.writing() as connection:
        for table in READ_TABLES:
            connection.execute(delete(table))
        for page in event_pages(writer.store):
            update_read_tables(connection, page)


def export_older(
    writer: JournalWriter, folder: Path, header: BundleHeader | None = None
) -> Export | None:
    """Move events up to the newest snapshot that is intact; None where there is nothing to move."""
    writer.flush()
    with writer.store.reading() as connection:
        seqs, begun = snapshots_of(connection), exported_until(connection)
    for seq in seqs:
        fleet = fleet_at(writer.store, seq) if seq > begun else None
        if isinstance(fleet, Fleet):
            return export_events(writer, folder, seq, header, fleet_digest(fleet))
    return None


def fleet_of_parts(parts: Sequence[Path]) -> Fleet:
    """Return the fleet after the last of some exports, the first of which began with nothing."""
    fleet = Fleet()
    for path in parts:
        bundle = read_bundle(path)
        fleet.apply_all(list(events_of(bundle.lines)))
        assert fleet_digest(fleet) == bundle.end.fleet, f"{path} follows the export before it"
    return fleet
