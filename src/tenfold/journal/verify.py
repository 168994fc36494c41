"""Check a journal from end to end: what it holds follows from its events, and none is missing.

It only reads, and a control plane may go on writing meanwhile: all is compared as of one moment.
"""

import gzip
import zlib
from collections import deque
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, select, text

from tenfold.engine.digest import fleet_digest
from tenfold.files.records.replay_bundle import BundleEnd
from tenfold.fleet.fleet import Fleet
from tenfold.journal.derive import Draft
from tenfold.journal.read import event_pages
from tenfold.journal.read_tables import attempt_row, job_row, node_row
from tenfold.journal.rows import JobRow, NodeRow
from tenfold.journal.snapshots import exported_until, fleet_at, snapshots_of
from tenfold.journal.store import Store, last_seq
from tenfold.journal.tables import ATTEMPTS, EXPORTS, JOBS, NODES
from tenfold.model.errors import InputError, TenfoldError
from tenfold.model.fleet.finding import Finding

TOLD_MOST = 20
"""Rows of a table that are named; a journal with more wrong is told by its count."""
MEND = "restore a backup, or build the tables anew; the journal is not meant to be changed by hand"


class Verified(Struct, frozen=True, kw_only=True):
    """What was checked, and what was found wrong."""

    events: int
    last_seq: int
    snapshots: int
    jobs: int
    bundles: int
    """Bundles of older events that were read to their end."""
    findings: tuple[Finding, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong; a warning is not."""
        return all(one.severity == "warning" for one in self.findings)


class _Moment(Struct, frozen=True, kw_only=True):
    """What the journal says of itself, all at one moment."""

    last: int
    begun: int
    """The last event that was moved out."""
    snapshots: tuple[int, ...]
    exports: tuple[tuple[int, int, str, str], ...]
    jobs: dict[str, Struct]
    attempts: dict[str, Struct]
    nodes: dict[str, Struct]


def verify(store: Store) -> Verified:
    """Return what holds and what does not."""
    while True:
        with store.reading() as connection:
            begun = exported_until(connection)
        found = _verified(store)
        with store.reading() as connection:
            # Events that were moved out meanwhile would be told as missing.
            if found.is_whole or exported_until(connection) == begun:
                return found


def _verified(store: Store) -> Verified:
    findings: list[Finding] = []
    if store.dialect == "sqlite":
        with store.reading() as connection:
            told = connection.execute(text("PRAGMA integrity_check")).scalars().all()
        if list(told) != ["ok"]:
            findings.append(_fault("journal-damaged", f"the file is damaged: {told[0]}"))
    with store.reading() as connection:
        moment = _moment(connection)
    draft = Draft()
    events = _events(store, moment, draft, findings)
    jobs = {str(job_id): row for job_id, row in draft.jobs.items()}
    attempts = {f"{key[0]} #{key[1]}": row for key, row in draft.changed_attempts.items()}
    nodes = {str(node_id): row for node_id, row in draft.nodes.items()}
    _compare("job", moment.jobs, jobs, findings)
    _compare("attempt", moment.attempts, attempts, findings)
    _compare("node", moment.nodes, nodes, findings)
    return Verified(
        events=events,
        last_seq=moment.last,
        snapshots=len(moment.snapshots),
        jobs=len(moment.jobs),
        bundles=sum(_bundle_holds(one, findings) for one in moment.exports),
        findings=tuple(findings),
    )


def _moment(connection: Connection) -> _Moment:
    exports = select(EXPORTS.c.first_seq, EXPORTS.c.last_seq, EXPORTS.c.file, EXPORTS.c.digest)
    jobs = [job_row(row) for row in connection.execute(select(JOBS)).mappings()]
    attempts = [attempt_row(row) for row in connection.execute(select(ATTEMPTS)).mappings()]
    nodes = [node_row(row) for row in connection.execute(select(NODES)).mappings()]
    return _Moment(
        last=last_seq(connection),
        begun=exported_until(connection),
        snapshots=tuple(snapshots_of(connection)),
        exports=tuple((row[0], row[1], row[2], row[3]) for row in connection.execute(exports)),
        jobs={row.id: row for row in jobs},
        attempts={f"{row.job_id} #{row.number}": row for row in attempts},
        nodes={row.id: row for row in nodes},
    )


def _events(store: Store, moment: _Moment, draft: Draft, findings: list[Finding]) -> int:
    """Apply every event, stop at what cannot be, and compare with each snapshot on the way."""
    count, fleet = 0, _begins_with(store, moment, findings)
    left = deque(sorted(seq for seq in moment.snapshots if moment.begun < seq <= moment.last))
    try:
        for page in event_pages(store, 0, moment.last):
            for seq, event in page:
                count += 1
                draft.apply(seq, event)
                if seq > moment.begun and fleet is not None:
                    _follows(fleet, seq)
                    fleet.apply(event)
                    if left and left[0] == seq:
                        _check_snapshot(store, left.popleft(), fleet, findings)
        if fleet is not None:
            _follows(fleet, moment.last + 1)
    except (KeyError, AssertionError) as error:
        at = fleet.version + 1 if fleet is not None else count
        findings.append(_fault("impossible-fact", f"event {at:,} cannot have happened: {error}"))
    except TenfoldError as error:
        findings.append(_fault(error.code, error.message))
    return count


def _follows(fleet: Fleet, seq: int) -> None:
    if seq != fleet.version + 1:
        said = f"events are missing after event {fleet.version:,}"
        raise InputError("journal-gap", said, MEND)


def _begins_with(store: Store, moment: _Moment, findings: list[Finding]) -> Fleet | None:
    if not moment.begun:
        return Fleet()
    found = fleet_at(store, moment.begun)
    if isinstance(found, Fleet):
        return found
    said = f"the snapshot with which the events begin, after {moment.begun:,}, is broken: {found}"
    findings.append(_fault("snapshot-broken", said))
    return None


def _check_snapshot(store: Store, seq: int, fleet: Fleet, findings: list[Finding]) -> None:
    found = fleet_at(store, seq)
    if isinstance(found, str):
        said = f"the snapshot after event {seq:,} is broken: {found}"
    elif fleet_digest(found) != fleet_digest(fleet):
        said = f"the snapshot after event {seq:,} does not follow from the events before it"
        findings.append(_fault("snapshot-broken", said))
        return
    else:
        return
    # It saves time and is never the truth.
    hint = "nothing is lost, the restart takes longer; check the disk"
    findings.append(Finding(code="snapshot-broken", message=said, hint=hint, severity="warning"))


def _compare(
    what: str,
    stands: Mapping[str, Struct],
    follows: Mapping[str, Struct],
    findings: list[Finding],
) -> None:
    wrong = [
        key
        for key in {**stands, **follows}
        if _without_words(stands.get(key)) != _without_words(follows.get(key))
    ]
    for key in wrong[:TOLD_MOST]:
        said = f"{what} `{key}` does not stand in its table as the events tell"
        findings.append(_fault("read-table-differs", said))
    if len(wrong) > TOLD_MOST:
        said = f"{len(wrong) - TOLD_MOST:,} more rows of {what}s differ"
        findings.append(_fault("read-table-differs", said))


def _without_words(row: Struct | None) -> Struct | None:
    """Leave out what an older version may have said in other words; the code beside it counts."""
    return replace(row, fields={}, sentence="") if isinstance(row, JobRow | NodeRow) else row


def _bundle_holds(export: tuple[int, int, str, str], findings: list[Finding]) -> bool:
    first, last, file, digest = export
    if not Path(file).exists():
        said = f"events {first:,} to {last:,} were moved to `{file}`, which is not there now"
        hint = "if it was moved elsewhere, nothing is wrong"
        findings.append(Finding(code="bundle-missing", message=said, hint=hint, severity="warning"))
        return False
    try:
        with gzip.open(file) as stream:
            row = deque(stream, maxlen=1)[0]
        end = msgspec.json.decode(row, type=BundleEnd)
    except (OSError, EOFError, zlib.error, IndexError, msgspec.DecodeError) as error:
        findings.append(_fault("bundle-damaged", f"`{file}` is damaged: {error}"))
        return False
    if (end.events, end.fleet) != (last - first + 1, digest):
        findings.append(_fault("bundle-damaged", f"`{file}` does not hold what was moved to it"))
        return False
    return True


def _fault(code: str, message: str) -> Finding:
    return Finding(code=code, message=message, hint=MEND)
