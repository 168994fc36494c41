"""Restart from a snapshot: the newest intact one, plus the events after it.

A snapshot only saves time; the events are authoritative. A loaded snapshot must match its recorded
digest; one that does not is skipped with a warning. Events after it must match their digest chain.
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
from tenfold.fleet.image import fleet_from, image_of
from tenfold.journal.append import JournalWriter
from tenfold.journal.integrity.chain import check_end, checked_pages
from tenfold.journal.shared.image import decode_image, encode_image
from tenfold.journal.store import Store, last_seq
from tenfold.journal.tables import EXPORTS, SNAPSHOTS
from tenfold.model.decision import Decision
from tenfold.model.errors import InputError
from tenfold.model.fleet.finding import Finding
from tenfold.model.units import Millis

EVERY = 50_000
"""Events between snapshots: reading this many takes about a second."""
KEPT = 3
"""Snapshots kept: one may be damaged."""


class Restored(Struct, frozen=True, kw_only=True):
    """A fleet restored from the journal."""

    fleet: Fleet
    seq: int
    """The last event applied."""
    snapshot_seq: int
    """The snapshot it started from; 0 means none."""
    warnings: tuple[Finding, ...] = ()


class Snapshotter:
    """A witness that saves a snapshot at an interval of events."""

    def __init__(self, writer: JournalWriter, *, every: int = EVERY) -> None:
        self._writer = writer
        self._every = every
        self._last = newest_snapshot(writer.store)

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        """Save a snapshot if the last one is old enough."""
        if fleet.version - self._last >= self._every:
            save_snapshot(self._writer, fleet)
            self._last = fleet.version


def save_snapshot(writer: JournalWriter, fleet: Fleet) -> None:
    """Save a snapshot after the last event, and delete old ones."""
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
        # The snapshot before the first event stays: nothing else records what came before it.
        retained = [*kept, exported_until(connection)]
        connection.execute(delete(SNAPSHOTS).where(SNAPSHOTS.c.seq.not_in(retained)))


def snapshot_row(fleet: Fleet) -> dict[str, Any]:
    """Return the table row for a fleet."""
    body = zlib.compress(encode_image(image_of(fleet)), 1)
    return {"seq": fleet.version, "digest": fleet_digest(fleet), "body": body}


def restore(store: Store, base: Fleet | None = None) -> Restored:
    """Return the fleet after the last event, using only what can be verified.

    `base` is a fleet from exported bundles, for a journal whose snapshots are all damaged.
    """
    while True:
        exported = _exported(store)
        try:
            return _restored(store, base)
        except InputError:
            # A compaction may have just replaced the snapshot it started from.
            if _exported(store) == exported:
                raise


def _restored(store: Store, base: Fleet | None) -> Restored:
    with store.reading() as connection:
        check_end(connection)
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
            f"events up to {exported:,} were exported, and the journal has no intact snapshot",
            "restore a backup, or pass the fleet of the exported bundles as `base`",
        )
    _apply_rest(store, fleet)
    return Restored(fleet=fleet, seq=fleet.version, snapshot_seq=base_seq, warnings=tuple(warnings))


def snapshots_of(connection: Connection) -> Sequence[int]:
    """Return the events after which there is a snapshot, newest first."""
    query = select(SNAPSHOTS.c.seq).order_by(SNAPSHOTS.c.seq.desc())
    return list(connection.execute(query).scalars())


def newest_snapshot(store: Store) -> int:
    """Return the event of the newest snapshot; 0 if there is none."""
    with store.reading() as connection:
        return next(iter(snapshots_of(connection)), 0)


def exported_until(connection: Connection) -> int:
    """Return the last exported event; 0 if there is none."""
    return connection.execute(select(func.max(EXPORTS.c.last_seq))).scalar() or 0


def _exported(store: Store) -> int:
    with store.reading() as connection:
        return exported_until(connection)


def fleet_at(store: Store, seq: int) -> Fleet | str:
    """Return the fleet of one snapshot, or what is wrong with it."""
    with store.reading() as connection:
        row = connection.execute(select(SNAPSHOTS).where(SNAPSHOTS.c.seq == seq)).one_or_none()
    if row is None:
        return "it does not exist"
    try:
        fleet = fleet_from(decode_image(zlib.decompress(row.body)))
    except (zlib.error, msgspec.DecodeError, ValueError, IndexError, RecursionError) as error:
        return str(error)
    if fleet.version != seq:
        return f"it is of event {fleet.version:,}"
    if fleet_digest(fleet) != row.digest:
        return "its digest does not match its content"
    return fleet


def _load_snapshot(store: Store, seq: int, end: int, warnings: list[Finding]) -> Fleet | None:
    found = fleet_at(store, seq) if seq <= end else "it is newer than the last event"
    if isinstance(found, Fleet):
        return found
    warnings.append(
        Finding(
            code="snapshot-broken",
            message=f"skipped the snapshot after event {seq:,}: {found}",
            hint="no data is lost, but the restart takes longer; check the disk",
            severity="warning",
        )
    )
    return None


def _apply_rest(store: Store, fleet: Fleet) -> None:
    for page in checked_pages(store, fleet.version):
        first, last = page[0][0], page[-1][0]
        try:
            fleet.apply_all([event for _, event in page])
        except (KeyError, AssertionError) as error:
            raise InputError(
                "impossible-fact",
                f"one of the events {first:,} to {last:,} contradicts earlier ones: {error}",
                "restore the journal from a backup; do not edit it manually",
            ) from None
