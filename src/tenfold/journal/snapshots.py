"""Come back after a stop: the newest snapshot that holds, and the events that came after it.

A snapshot saves time and is never the truth. It is unpacked, made into a fleet, and the fleet
must have the digest that was noted; one that has not is passed over with a warning.
"""

import zlib
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, delete, func, select

from tenfold.engine.digest import fleet_digest
from tenfold.engine.loop import Decider
from tenfold.fleet.fleet import Fleet
from tenfold.fleet.image import FleetImage, fleet_from, image_of
from tenfold.journal.append import JournalWriter
from tenfold.journal.read import event_pages
from tenfold.journal.store import Store, last_seq
from tenfold.journal.tables import EXPORTS, SNAPSHOTS
from tenfold.model.decision import Decision
from tenfold.model.errors import InputError
from tenfold.model.fleet.finding import Finding
from tenfold.model.units import Millis

EVERY = 50_000
"""Events from one snapshot to the next: reading that many again takes about a second."""
KEPT = 3
"""Snapshots that are kept: one may be broken."""

_IMAGE = msgspec.json.Decoder(FleetImage)


class Restored(Struct, frozen=True, kw_only=True):
    """A fleet as the journal tells of it."""

    fleet: Fleet
    seq: int
    """The last event that was applied."""
    snapshot_seq: int
    """The snapshot it began with; 0 means that it began with nothing."""
    warnings: tuple[Finding, ...] = ()


class Snapshotter:
    """A witness that saves a snapshot every so many events."""

    def __init__(self, writer: JournalWriter, *, every: int = EVERY) -> None:
        self._writer = writer
        self._every = every
        self._last = newest_snapshot(writer.store)

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        """Save the fleet where the last snapshot is old enough."""
        if fleet.version - self._last >= self._every:
            save_snapshot(self._writer, fleet)
            self._last = fleet.version


def save_snapshot(writer: JournalWriter, fleet: Fleet) -> None:
    """Keep the fleet as it is after the last event, and let go of old snapshots."""
    assert fleet.version == writer.seq, (
        f"the fleet has applied {fleet.version} events, the journal holds {writer.seq}"
    )
    seq, row = fleet.version, snapshot_row(fleet)
    with writer.writing() as connection:
        connection.execute(delete(SNAPSHOTS).where(SNAPSHOTS.c.seq == seq))
        connection.execute(SNAPSHOTS.insert(), row)
        kept = connection.execute(
            select(SNAPSHOTS.c.seq).order_by(SNAPSHOTS.c.seq.desc()).limit(KEPT)
        ).scalars()
        # The one that the events begin with stays: nothing else tells of what came before.
        retained = [*kept, exported_until(connection)]
        connection.execute(delete(SNAPSHOTS).where(SNAPSHOTS.c.seq.not_in(retained)))


def snapshot_row(fleet: Fleet) -> dict[str, Any]:
    """Return what the table holds of a fleet."""
    body = zlib.compress(msgspec.json.encode(image_of(fleet)), 1)
    return {"seq": fleet.version, "digest": fleet_digest(fleet), "body": body}


def restore(store: Store, base: Fleet | None = None) -> Restored:
    """Return the fleet after the last event; never start from what cannot be checked.

    `base` is a fleet from exported bundles, for a journal whose snapshots are all broken.
    """
    while True:
        exported = _exported(store)
        try:
            return _restored(store, base)
        except InputError:
            # Old events may be moved out at this moment, and with them what it began with.
            if _exported(store) == exported:
                raise


def _restored(store: Store, base: Fleet | None) -> Restored:
    with store.reading() as connection:
        seqs = snapshots_of(connection)
        end = last_seq(connection)
        exported = exported_until(connection)
    warnings: list[Finding] = []
    fleet: Fleet | None = None
    for seq in seqs:
        fleet = _load_snapshot(store, seq, end, warnings)
        if fleet is not None:
            break
    if fleet is None:
        fleet = base or Fleet()
    base_seq = fleet.version
    if base_seq < exported:
        raise InputError(
            "journal-begins-late",
            f"events up to {exported:,} were exported, and no snapshot of the journal holds",
            "give the fleet that the exported bundles tell of, or restore a backup",
        )
    _apply_rest(store, fleet)
    return Restored(fleet=fleet, seq=fleet.version, snapshot_seq=base_seq, warnings=tuple(warnings))


def snapshots_of(connection: Connection) -> Sequence[int]:
    """Return the events after which there is a snapshot, the newest first."""
    query = select(SNAPSHOTS.c.seq).order_by(SNAPSHOTS.c.seq.desc())
    return list(connection.execute(query).scalars())


def newest_snapshot(store: Store) -> int:
    """Return the event that the newest snapshot follows, 0 where there is none."""
    with store.reading() as connection:
        return next(iter(snapshots_of(connection)), 0)


def exported_until(connection: Connection) -> int:
    """Return the last event that was moved into a bundle, 0 where none was."""
    return connection.execute(select(func.max(EXPORTS.c.last_seq))).scalar() or 0


def _exported(store: Store) -> int:
    with store.reading() as connection:
        return exported_until(connection)


def fleet_at(store: Store, seq: int) -> Fleet | str:
    """Return the fleet of one snapshot, or what is wrong with it."""
    with store.reading() as connection:
        row = connection.execute(select(SNAPSHOTS).where(SNAPSHOTS.c.seq == seq)).one_or_none()
    if row is None:
        return "there is none"
    try:
        fleet = fleet_from(_IMAGE.decode(zlib.decompress(row.body)))
    except (zlib.error, msgspec.DecodeError, RecursionError) as error:
        return str(error)
    if fleet.version != seq:
        return f"it is of a fleet after {fleet.version:,} events"
    if fleet_digest(fleet) != row.digest:
        return "its digest is not that of the fleet it holds"
    return fleet


def _load_snapshot(store: Store, seq: int, end: int, warnings: list[Finding]) -> Fleet | None:
    found = fleet_at(store, seq) if seq <= end else "it is newer than the last event"
    if isinstance(found, Fleet):
        return found
    warnings.append(
        Finding(
            code="snapshot-broken",
            message=f"the snapshot after event {seq:,} was passed over: {found}",
            hint="nothing is lost, the restart takes longer; check the disk",
            severity="warning",
        )
    )
    return None


def _apply_rest(store: Store, fleet: Fleet) -> None:
    for page in event_pages(store, fleet.version):
        first, last = page[0][0], page[-1][0]
        if first != fleet.version + 1 or last - first + 1 != len(page):
            raise InputError(
                "journal-gap",
                f"events are missing from the journal after event {fleet.version:,}",
                "restore the journal from a backup; it is not meant to be changed by hand",
            )
        try:
            fleet.apply_all([event for _, event in page])
        except (KeyError, AssertionError) as error:
            raise InputError(
                "impossible-fact",
                f"one of the events {first:,} to {last:,} cannot have happened: {error}",
                "restore the journal from a backup; it is not meant to be changed by hand",
            ) from None
