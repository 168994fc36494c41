"""Move old events out of the journal: into a bundle first, and only then away.

An export ends at a snapshot that holds, and what it takes goes in one transaction. Facts about
jobs that are not over, and what tells how each node stands, stay in the journal too: so the
read tables can always be built anew from the events that are left, and a job that waits can
still be asked what it runs. Jobs that were over by then are told of by the bundle alone.
"""

import gzip
import os
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, delete, insert, select

from tenfold.engine.decision_log import Cycle
from tenfold.engine.digest import fleet_digest
from tenfold.files.replay_bundle import BundleEnd, BundleHeader, open_new_bundle
from tenfold.fleet.fleet import Fleet, FleetView
from tenfold.journal.append import JournalWriter
from tenfold.journal.derive import job_of, node_of
from tenfold.journal.read import events_after, last_number, lines_between
from tenfold.journal.rows import OVER
from tenfold.journal.snapshots import exported_until, fleet_at, snapshots_of
from tenfold.journal.store import Store
from tenfold.journal.tables import ATTEMPTS, CYCLES, EVENTS, EXPORTS, JOBS, SNAPSHOTS
from tenfold.model.decision import NOTHING, Decision
from tenfold.model.errors import InputError
from tenfold.model.events import Event, JobCancelled, JobEnded, JobRefused, NodeJoined
from tenfold.model.units import Millis

AT_ONCE = 500
"""Numbers in one statement: databases limit how many there may be."""


class Export(Struct, frozen=True, kw_only=True):
    """Events that were moved into a bundle."""

    file: Path
    first_seq: int
    last_seq: int
    kept: int
    """Events up to the last that stay in the journal: of nodes, and of jobs that are not over."""


def export_older(
    writer: JournalWriter, folder: Path, header: BundleHeader | None = None
) -> Export | None:
    """Move events up to the newest snapshot that holds; None where there is nothing to move.

    To be called between cycles. A crash on the way leaves the journal whole and perhaps a
    file, which the next try writes over.
    """
    writer.flush()
    store = writer.store
    with store.reading() as connection:
        seqs, begun = snapshots_of(connection), exported_until(connection)
    last, end = _newest_that_holds(store, [seq for seq in seqs if seq > begun])
    if end is None:
        return None
    first = begun + 1
    fleet = _fleet_before(store, begun)
    path = folder / f"events-{first:012d}-{last:012d}.jsonl.gz"
    _write(store, path, header or BundleHeader(), fleet, last)
    digest = fleet_digest(fleet)
    if digest != fleet_digest(end):
        raise _broken(last, "it does not follow from the events before it")
    _check_written(path, last - begun, digest)
    staying = _staying(store, last)
    with writer.writing() as connection:
        connection.execute(
            insert(EXPORTS),
            {
                "last_seq": last,
                "first_seq": first,
                "last_number": last_number(connection),
                "file": str(path),
                "digest": digest,
            },
        )
        _delete(connection, last, staying)
    return Export(file=path, first_seq=first, last_seq=last, kept=len(staying))


class _Named:
    """A decider in name alone: the bundle's record asks for no more."""

    def __init__(self, name: str) -> None:
        self.name = name

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        return NOTHING


def _newest_that_holds(store: Store, seqs: Sequence[int]) -> tuple[int, Fleet | None]:
    for seq in seqs:
        fleet = fleet_at(store, seq)
        if isinstance(fleet, Fleet):
            return seq, fleet
    return 0, None


def _fleet_before(store: Store, begun: int) -> Fleet:
    """Return the fleet that the first event of an export meets."""
    if not begun:
        return Fleet()
    fleet = fleet_at(store, begun)
    if isinstance(fleet, str):
        raise _broken(begun, fleet)
    return fleet


def _write(store: Store, path: Path, header: BundleHeader, fleet: Fleet, last: int) -> None:
    """Write the events after those that a fleet has applied, and apply them to it."""
    events: list[Event] = []
    with open_new_bundle(path, header, force=True) as bundle:
        for line in lines_between(store, fleet.version + 1, last):
            if not isinstance(line, Cycle):
                events.append(line)
                continue
            bundle.append(events)
            fleet.apply_all(events)
            events.clear()
            decision = Decision(line.actions, line.wake_at_ms)
            bundle.cycle(fleet, line.at_ms, _Named(line.decider), decision)
        bundle.append(events)
        fleet.apply_all(events)
        bundle.finish(fleet)


def _check_written(path: Path, events: int, digest: str) -> None:
    """Read a bundle from the disk to its end, and see that its name is on the disk as well."""
    with gzip.open(path) as stream:
        last_row = deque(stream, maxlen=1)
    end = msgspec.json.decode(last_row[0], type=BundleEnd)
    if (end.events, end.fleet) != (events, digest):
        raise InputError(
            "bundle-damaged",
            f"`{path}` does not read as it was written; nothing was deleted",
            "check the disk",
            file=str(path),
        )
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _staying(store: Store, last: int) -> list[int]:
    """Return the events that tell of jobs that are not over, and of nodes as they stand."""
    jobs: dict[str, list[int]] = {}
    joined: dict[str, int] = {}
    since: dict[str, int] = {}
    for seq, event in events_after(store, 0, last):
        if isinstance(event, JobEnded | JobCancelled | JobRefused):
            jobs.pop(event.job_id, None)
        elif (job_id := job_of(event)) is not None:
            jobs.setdefault(job_id, []).append(seq)
        elif (node_id := node_of(event)) is not None:
            (joined if isinstance(event, NodeJoined) else since)[node_id] = seq
    of_jobs = [seq for seqs in jobs.values() for seq in seqs]
    return sorted([*of_jobs, *joined.values(), *since.values()])


def _delete(connection: Connection, last: int, staying: Sequence[int]) -> None:
    low = 0
    for at in range(0, len(staying), AT_ONCE):
        some = staying[at : at + AT_ONCE]
        between = (EVENTS.c.seq > low, EVENTS.c.seq <= some[-1])
        connection.execute(delete(EVENTS).where(*between, EVENTS.c.seq.not_in(some)))
        low = some[-1]
    connection.execute(delete(EVENTS).where(EVENTS.c.seq > low, EVENTS.c.seq <= last))
    connection.execute(delete(CYCLES).where(CYCLES.c.after_seq <= last))
    connection.execute(delete(SNAPSHOTS).where(SNAPSHOTS.c.seq < last))
    over = (JOBS.c.state.in_(OVER), JOBS.c.changed_seq <= last)
    names = select(JOBS.c.id).where(*over)
    connection.execute(delete(ATTEMPTS).where(ATTEMPTS.c.job_id.in_(names)))
    connection.execute(delete(JOBS).where(*over))


def _broken(seq: int, why: str) -> InputError:
    return InputError(
        "snapshot-broken",
        f"nothing was exported: the snapshot after event {seq:,} does not hold: {why}",
        "check the disk; a new snapshot will do, or a backup",
    )
