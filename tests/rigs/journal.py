"""Move a journal's events to bundles, and build its fleet anew from the record."""

from collections.abc import Sequence
from pathlib import Path

from tenfold.engine.digest import fleet_digest
from tenfold.engine.recording import events_of
from tenfold.files.records.replay_bundle import BundleHeader, read_bundle
from tenfold.fleet.fleet import Fleet
from tenfold.journal.append import JournalWriter
from tenfold.journal.retention import Export, export_events
from tenfold.journal.snapshots import exported_until, fleet_at, snapshots_of


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
