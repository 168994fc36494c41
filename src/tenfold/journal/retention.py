"""Export old events: written to a bundle first, and only then deleted from the journal.

An export ends where a cycle was closed. Its deletion is one transaction, which also saves a
snapshot of the fleet at that point. Events about unfinished jobs, the latest state of each
node, and those of the model registry, stay in the journal too: the read tables can always be
rebuilt from the remaining events, and the run spec of a pending job can still be read. Jobs that
had ended are only in the bundle.
"""

import gzip
import hashlib
import os
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace
from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from tenfold.engine.decision_log import Cycle
from tenfold.engine.digest import fleet_digest
from tenfold.files.records.replay_bundle import BundleEnd, BundleHeader, open_new_bundle
from tenfold.fleet.fleet import Fleet
from tenfold.fleet.image import image_of
from tenfold.journal.append import JournalWriter
from tenfold.journal.integrity.chain import check_chain, digest_at, kept_links
from tenfold.journal.integrity.table_sum import add_to_sum, digest_of
from tenfold.journal.policies import stretches_from
from tenfold.journal.read import events_after, last_number, lines_between
from tenfold.journal.shared.texts import unused_texts
from tenfold.journal.snapshots import exported_until, fleet_at, snapshot_row
from tenfold.journal.store import Store
from tenfold.journal.tables import ATTEMPTS, CYCLES, EVENTS, EXPORTS, JOBS, SHARED_TEXTS, SNAPSHOTS
from tenfold.model.errors import InputError, Refused
from tenfold.model.events import (
    Event,
    JobCancelled,
    JobEnded,
    JobRefused,
    ModelEvent,
    NodeTested,
    job_of,
    node_of,
)
from tenfold.model.job.job import ENDED

AT_ONCE = 500
"""Numbers per statement: databases limit the number of parameters."""

_RELINK = update(EVENTS).where(EVENTS.c.seq == bindparam("of")).values(chain=bindparam("to"))


class Export(Struct, frozen=True, kw_only=True):
    """Events that were moved to a bundle."""

    file: Path
    first_seq: int
    last_seq: int
    kept: int
    """Exported events that also stay in the journal: of nodes, models and unfinished jobs."""


def export_events(
    writer: JournalWriter,
    folder: Path,
    last: int,
    header: BundleHeader | None = None,
    digest: str | None = None,
) -> Export:
    """Move events up to `last`, where a cycle was closed, and save a snapshot at that point.

    `digest` is the expected digest of that fleet, where known.
    """
    store = writer.store
    # Damage must not move to a bundle, from which it could no longer be told.
    check_chain(store, last)
    with store.reading() as connection:
        exported, chain = exported_until(connection), digest_at(connection, last)
    first = exported + 1
    fleet = _base_fleet(store, exported)
    path = folder / f"events-{first:012d}-{last:012d}.jsonl.gz"
    told_in = _header_for(store, header or BundleHeader(), fleet, last)
    _write(store, path, told_in, fleet, last)
    rows = fleet_digest(fleet)
    if digest is not None and digest != rows:
        raise _broken(last, "it does not match the events before it")
    _check_written(path, last - exported, rows)
    moved = {"file": str(path), "bundle": file_digest(path), "chain": chain}
    retained = _retained(store, last)
    with writer.writing() as connection:
        if exported_until(connection) != exported:
            raise Refused(
                "compacted-meanwhile",
                f"another process exported events after {exported:,} from this journal",
                "no data is lost; try again",
            )
        _record_export(connection, fleet, {**moved, "first_seq": first})
        add_to_sum(connection, -_delete(connection, last, retained))
        _link_kept(connection, last)
    return Export(file=path, first_seq=first, last_seq=last, kept=len(retained))


def _record_export(connection: Connection, fleet: Fleet, moved: Mapping[str, object]) -> None:
    """Record the export, and the snapshot that the remaining events start from."""
    row = snapshot_row(fleet)
    last = fleet.version
    connection.execute(delete(SNAPSHOTS).where(SNAPSHOTS.c.seq == last))
    connection.execute(insert(SNAPSHOTS), row)
    connection.execute(
        insert(EXPORTS),
        {
            **moved,
            "last_seq": last,
            "last_number": last_number(connection),
            "digest": row["digest"],
        },
    )


def _link_kept(connection: Connection, last: int) -> None:
    """Make a chain of the events that stay, as those in between are gone."""
    kept, links = kept_links(connection, last)
    for at in range(0, len(links), AT_ONCE):
        values = [{"of": seq, "to": digest} for seq, digest in links[at : at + AT_ONCE]]
        connection.execute(_RELINK, values)
    connection.execute(update(EXPORTS).where(EXPORTS.c.last_seq == last).values(kept=kept))


def _header_for(store: Store, header: BundleHeader, fleet: Fleet, last: int) -> BundleHeader:
    """Return a header with the policy spans and the fleet before the first event."""
    with store.reading() as connection:
        stretches = stretches_from(connection, fleet.version + 1, last)
    base = image_of(fleet) if fleet.version else UNSET
    if not stretches:
        return replace(header, base=base)
    return replace(header, base=base, stretches=tuple(stretches), policy=stretches[-1].policy)


def _base_fleet(store: Store, exported: int) -> Fleet:
    """Return the fleet before the first exported event."""
    if not exported:
        return Fleet()
    fleet = fleet_at(store, exported)
    if isinstance(fleet, str):
        raise _broken(exported, fleet)
    return fleet


def _write(store: Store, path: Path, header: BundleHeader, fleet: Fleet, last: int) -> None:
    """Write the events after the fleet's version, and apply them to it."""
    events: list[Event] = []
    with open_new_bundle(path, header, force=True) as bundle:
        for line in lines_between(store, fleet.version + 1, last):
            if not isinstance(line, Cycle):
                events.append(line)
                continue
            bundle.append(events)
            fleet.apply_all(events)
            events.clear()
            bundle.note(line)
        bundle.append(events)
        fleet.apply_all(events)
        bundle.finish(fleet)


def _check_written(path: Path, events: int, digest: str) -> None:
    """Read a bundle back to its end, and sync its directory entry."""
    with gzip.open(path) as stream:
        last_row = deque(stream, maxlen=1)
    end = msgspec.json.decode(last_row[0], type=BundleEnd)
    if (end.events, end.fleet) != (events, digest):
        raise InputError(
            "bundle-damaged",
            f"`{path}` differs from what was written; nothing was deleted",
            "check the disk",
            file=str(path),
        )
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def file_digest(path: Path) -> str:
    """Return the digest of a bundle as a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _retained(store: Store, last: int) -> list[int]:
    """Return the events of unfinished jobs, nodes and models from which their rows are derived."""
    jobs: dict[str, list[int]] = {}
    nodes: dict[tuple[str, type], int] = {}
    """The latest event of each kind gives the state of the node."""
    kept: list[int] = []
    for seq, event in events_after(store, 0, last):
        if isinstance(event, JobEnded | JobCancelled | JobRefused):
            jobs.pop(event.job_id, None)
        elif (job_id := job_of(event)) is not None:
            jobs.setdefault(job_id, []).append(seq)
        elif isinstance(event, NodeTested | ModelEvent):
            # Later tests are compared with the results of passed ones; the registry has no end.
            kept.append(seq)
        elif (node_id := node_of(event)) is not None:
            nodes[node_id, type(event)] = seq
    of_jobs = [seq for seqs in jobs.values() for seq in seqs]
    return sorted([*of_jobs, *nodes.values(), *kept])


def _delete(connection: Connection, last: int, retained: Sequence[int]) -> int:
    """Delete what was moved, and return what its rows added to the sum of the read tables."""
    low = 0
    for at in range(0, len(retained), AT_ONCE):
        some = retained[at : at + AT_ONCE]
        between = (EVENTS.c.seq > low, EVENTS.c.seq <= some[-1])
        connection.execute(delete(EVENTS).where(*between, EVENTS.c.seq.not_in(some)))
        low = some[-1]
    connection.execute(delete(EVENTS).where(EVENTS.c.seq > low, EVENTS.c.seq <= last))
    connection.execute(delete(SHARED_TEXTS).where(SHARED_TEXTS.c.seq <= last, unused_texts()))
    # The newest stays: it gives the next number, and shows which orders are closed.
    newest = connection.execute(select(func.max(CYCLES.c.number))).scalar() or 0
    connection.execute(delete(CYCLES).where(CYCLES.c.after_seq <= last, CYCLES.c.number < newest))
    connection.execute(delete(SNAPSHOTS).where(SNAPSHOTS.c.seq < last))
    over = (JOBS.c.state.in_(ENDED), JOBS.c.changed_seq <= last)
    names = select(JOBS.c.id).where(*over)
    attempts = delete(ATTEMPTS).where(ATTEMPTS.c.job_id.in_(names)).returning(*ATTEMPTS.c)
    removed = sum(digest_of(ATTEMPTS, tuple(row)) for row in connection.execute(attempts))
    jobs = delete(JOBS).where(*over).returning(*JOBS.c)
    return removed + sum(digest_of(JOBS, tuple(row)) for row in connection.execute(jobs))


def _broken(seq: int, why: str) -> InputError:
    return InputError(
        "snapshot-broken",
        f"nothing was exported: the snapshot after event {seq:,} is not intact: {why}",
        "check the disk; a new snapshot fixes this, or restore a backup",
    )
