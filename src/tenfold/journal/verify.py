"""Verify a journal: no event is missing or changed, and everything else matches the events.

It only reads, and a control plane may keep writing: everything is compared at one point in time.
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
from tenfold.journal.derive import ReadTableUpdate
from tenfold.journal.integrity.chain import check_chain, check_end, read_chain
from tenfold.journal.integrity.head_file import check_head
from tenfold.journal.integrity.rebuild import tables_match
from tenfold.journal.models.rows import alias_row, version_row
from tenfold.journal.read import event_pages
from tenfold.journal.read_tables import attempt_row, job_row, node_row
from tenfold.journal.retention import file_digest
from tenfold.journal.rows import JobRow, NodeRow
from tenfold.journal.shared.texts import unused_texts
from tenfold.journal.snapshots import exported_until, fleet_at, snapshots_of
from tenfold.journal.store import Store, last_seq
from tenfold.journal.tables import (
    ATTEMPTS,
    EXPORTS,
    JOBS,
    MODEL_ALIASES,
    MODEL_VERSIONS,
    NODES,
    SHARED_TEXTS,
)
from tenfold.model.errors import InputError, TenfoldError
from tenfold.model.fleet.finding import Finding

NAMED_MAX = 20
"""Rows listed per table; further ones are only counted."""
REPAIR_HINT = "restore a backup; do not edit the journal manually"


class VerifyResult(Struct, frozen=True, kw_only=True):
    """What was checked, and the findings."""

    events: int
    last_seq: int
    snapshots: int
    jobs: int
    bundles: int
    """Bundles of older events that were read to their end."""
    chained_from: int = 1
    """The first event in the digest chain; a change of an older event cannot be found."""
    head_file: bool = False
    """Whether the last event was compared with the head in a file."""
    findings: tuple[Finding, ...] = ()

    @property
    def is_valid(self) -> bool:
        """Whether there are no errors; warnings are allowed."""
        return all(one.severity == "warning" for one in self.findings)


class _JournalState(Struct, frozen=True, kw_only=True):
    """Contents of the journal at one point in time."""

    last: int
    exported: int
    """The last exported event."""
    snapshots: tuple[int, ...]
    exports: tuple[tuple[int, int, str, str, str | None], ...]
    unused_texts: tuple[int, ...]
    """Shared texts that no event uses."""
    is_sum_right: bool
    """Whether the read tables match their sum."""
    jobs: dict[str, Struct]
    attempts: dict[str, Struct]
    nodes: dict[str, Struct]
    model_versions: dict[str, Struct]
    model_aliases: dict[str, Struct]


def verify(store: Store, head: Path | None = None) -> VerifyResult:
    """Return what was checked and what is wrong; `head` is the file with the head of the chain."""
    while True:
        with store.reading() as connection:
            exported = exported_until(connection)
        found = _verified(store, head)
        with store.reading() as connection:
            # Events exported meanwhile would be reported as missing.
            if found.is_valid or exported_until(connection) == exported:
                return found


def _verified(store: Store, head: Path | None) -> VerifyResult:
    findings: list[Finding] = []
    has_head = head is not None and head.exists()
    if store.dialect == "sqlite":
        with store.reading() as connection:
            results = connection.execute(text("PRAGMA integrity_check")).scalars().all()
        if list(results) != ["ok"]:
            findings.append(_error("journal-damaged", f"the file is damaged: {results[0]}"))
    chained_from = _chain(store, head, findings)
    try:
        with store.reading() as connection:
            state = _read_state(connection)
    except (TenfoldError, msgspec.DecodeError, TypeError) as error:
        findings.append(_differs(f"a read table cannot be read: {error}"))
        return VerifyResult(
            events=0, last_seq=0, snapshots=0, jobs=0, bundles=0, findings=tuple(findings)
        )
    if state.unused_texts:
        said = f"no event uses the shared text {state.unused_texts[0]:,}"
        findings.append(_error("journal-damaged", said))
    events = _compare_with_events(store, state, findings)
    return VerifyResult(
        events=events,
        last_seq=state.last,
        snapshots=len(state.snapshots),
        jobs=len(state.jobs),
        bundles=sum(_bundle_is_valid(one, findings) for one in state.exports),
        chained_from=chained_from,
        head_file=has_head,
        findings=tuple(findings),
    )


def _chain(store: Store, head: Path | None, findings: list[Finding]) -> int:
    """Check the digest chain and its head; return the first event in the chain."""
    found = 1
    try:
        with store.reading() as connection:
            found, last = read_chain(connection).first_seq, last_seq(connection)
        # From the first event on, so that the first bad one is named.
        check_chain(store, last)
        with store.reading() as connection:
            check_end(connection)
    except TenfoldError as error:
        findings.append(Finding(code=error.code, message=error.message, hint=error.hint))
    try:
        warning = None if head is None else check_head(store, head)
    except TenfoldError as error:
        warning = Finding(code=error.code, message=error.message, hint=error.hint)
    if warning is not None and all(warning.code != one.code for one in findings):
        findings.append(warning)
    return found


def _compare_with_events(store: Store, state: _JournalState, findings: list[Finding]) -> int:
    """Compare snapshots and read tables with the events, and return how many there are."""
    update = ReadTableUpdate()
    events = _events(store, state, update, findings)
    if any(one.severity != "warning" for one in findings):
        # Rows cannot be compared with damaged events.
        return events
    jobs = {str(job_id): row for job_id, row in update.jobs.items()}
    attempts = {f"{key[0]} #{key[1]}": row for key, row in update.changed_attempts.items()}
    nodes = {str(node_id): row for node_id, row in update.nodes.items()}
    before = len(findings)
    _compare("job", state.jobs, jobs, findings)
    _compare("attempt", state.attempts, attempts, findings)
    _compare("node", state.nodes, nodes, findings)
    _compare("model version", state.model_versions, update.models.versions, findings)
    _compare("model alias", state.model_aliases, update.models.aliases, findings)
    if before == len(findings) and not state.is_sum_right:
        findings.append(_differs("a read table was changed by something other than an event"))
    return events


def _read_state(connection: Connection) -> _JournalState:
    exports = select(
        EXPORTS.c.first_seq,
        EXPORTS.c.last_seq,
        EXPORTS.c.file,
        EXPORTS.c.digest,
        EXPORTS.c.bundle,
    )
    unused = select(SHARED_TEXTS.c.seq).where(unused_texts()).order_by(SHARED_TEXTS.c.seq)
    jobs = [job_row(row) for row in connection.execute(select(JOBS)).mappings()]
    attempts = [attempt_row(row) for row in connection.execute(select(ATTEMPTS)).mappings()]
    nodes = [node_row(row) for row in connection.execute(select(NODES)).mappings()]
    versions = [version_row(row) for row in connection.execute(select(MODEL_VERSIONS)).mappings()]
    aliases = [alias_row(row) for row in connection.execute(select(MODEL_ALIASES)).mappings()]
    return _JournalState(
        last=last_seq(connection),
        exported=exported_until(connection),
        snapshots=tuple(snapshots_of(connection)),
        exports=tuple((row[0], row[1], *row[2:]) for row in connection.execute(exports)),
        unused_texts=tuple(connection.execute(unused).scalars()),
        is_sum_right=tables_match(connection),
        jobs={row.id: row for row in jobs},
        attempts={f"{row.job_id} #{row.number}": row for row in attempts},
        nodes={row.id: row for row in nodes},
        model_versions={row.id: row for row in versions},
        model_aliases={row.id: row for row in aliases},
    )


def _events(
    store: Store, state: _JournalState, update: ReadTableUpdate, findings: list[Finding]
) -> int:
    """Apply every event, stop at a contradiction, and compare each snapshot on the way."""
    count, fleet = 0, _base_fleet(store, state, findings)
    left = deque(sorted(seq for seq in state.snapshots if state.exported < seq <= state.last))
    try:
        for page in event_pages(store, 0, state.last):
            for seq, event in page:
                count += 1
                update.apply(seq, event)
                if seq > state.exported and fleet is not None:
                    _check_no_gap(fleet, seq)
                    fleet.apply(event)
                    if left and left[0] == seq:
                        _check_snapshot(store, left.popleft(), fleet, findings)
        if fleet is not None:
            _check_no_gap(fleet, state.last + 1)
    except (KeyError, AssertionError) as error:
        at = fleet.version + 1 if fleet is not None else count
        findings.append(
            _error("impossible-fact", f"event {at:,} contradicts earlier ones: {error}")
        )
    except TenfoldError as error:
        findings.append(_error(error.code, error.message))
    return count


def _check_no_gap(fleet: Fleet, seq: int) -> None:
    if seq != fleet.version + 1:
        said = f"events after event {fleet.version:,} are missing"
        raise InputError("journal-gap", said, REPAIR_HINT)


def _base_fleet(store: Store, state: _JournalState, findings: list[Finding]) -> Fleet | None:
    if not state.exported:
        return Fleet()
    found = fleet_at(store, state.exported)
    if isinstance(found, Fleet):
        return found
    said = f"the snapshot with which the events begin, after {state.exported:,}, is broken: {found}"
    findings.append(_error("snapshot-broken", said))
    return None


def _check_snapshot(store: Store, seq: int, fleet: Fleet, findings: list[Finding]) -> None:
    found = fleet_at(store, seq)
    if isinstance(found, str):
        said = f"the snapshot after event {seq:,} is damaged: {found}"
    elif fleet_digest(found) != fleet_digest(fleet):
        said = f"the snapshot after event {seq:,} does not match the events before it"
        findings.append(_error("snapshot-broken", said))
        return
    else:
        return
    # A snapshot only saves time; the events are authoritative.
    hint = "no data is lost, but the restart takes longer; check the disk"
    findings.append(Finding(code="snapshot-broken", message=said, hint=hint, severity="warning"))


def _compare(
    what: str,
    stored: Mapping[str, Struct],
    derived: Mapping[str, Struct],
    findings: list[Finding],
) -> None:
    wrong = [
        key
        for key in {**stored, **derived}
        if _without_text(stored.get(key)) != _without_text(derived.get(key))
    ]
    for key in wrong[:NAMED_MAX]:
        said = f"the stored state of {what} `{key}` does not match the events"
        findings.append(_differs(said))
    if len(wrong) > NAMED_MAX:
        said = f"{len(wrong) - NAMED_MAX:,} more rows of {what}s differ"
        findings.append(_differs(said))


def _without_text(row: Struct | None) -> Struct | None:
    """Drop text that an older version may have worded differently; the code is compared."""
    return replace(row, fields={}, sentence="") if isinstance(row, JobRow | NodeRow) else row


def _bundle_is_valid(
    export: tuple[int, int, str, str, str | None], findings: list[Finding]
) -> bool:
    first, last, file, digest, bundle = export
    if not Path(file).exists():
        said = f"events {first:,} to {last:,} were moved to `{file}`, which no longer exists"
        hint = "ignore this if you moved the file"
        findings.append(Finding(code="bundle-missing", message=said, hint=hint, severity="warning"))
        return False
    try:
        with gzip.open(file) as stream:
            row = deque(stream, maxlen=1)[0]
        end = msgspec.json.decode(row, type=BundleEnd)
    except (OSError, EOFError, ValueError, zlib.error, IndexError, msgspec.DecodeError) as error:
        findings.append(_error("bundle-damaged", f"`{file}` is damaged: {error}"))
        return False
    is_same = bundle is None or file_digest(Path(file)) == bundle
    if not is_same or (end.events, end.fleet) != (last - first + 1, digest):
        findings.append(_error("bundle-damaged", f"`{file}` does not contain the moved events"))
        return False
    return True


def _differs(said: str) -> Finding:
    hint = "restart the control plane: it rebuilds these tables from the events"
    return Finding(code="read-table-differs", message=said, hint=hint)


def _error(code: str, message: str) -> Finding:
    return Finding(code=code, message=message, hint=REPAIR_HINT)
