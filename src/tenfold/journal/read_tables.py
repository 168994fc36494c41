"""Update the read tables with new events: load the affected rows, change and save them."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
from msgspec.structs import asdict
from sqlalchemy import (
    Connection,
    RowMapping,
    Select,
    Table,
    and_,
    bindparam,
    delete,
    func,
    select,
)
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from tenfold.journal.derive import ReadTableUpdate
from tenfold.journal.rows import AttemptRow, JobRow, KeyRow, NodeRow
from tenfold.journal.tables import ATTEMPTS, JOBS, NODES, SUBMIT_KEYS
from tenfold.model.acceptance import Acceptance
from tenfold.model.events import Event, job_of, node_of
from tenfold.model.reason import Value
from tenfold.model.units import HOUR

AT_ONCE = 500
"""Ids per query: databases limit the number of parameters."""

KEY_KEPT_MS = 25 * HOUR
"""Idempotency keys are kept for a day, plus an hour for clock differences."""

NAMES = "names"
_FIELDS = msgspec.json.Decoder(dict[str, Value])

Numbered = tuple[int, Event]
"""An event with its `seq`."""


def update_read_tables(connection: Connection, events: Sequence[Numbered]) -> None:
    """Apply events to the read tables, in the transaction that adds them."""
    update = load_update(connection, [event for _, event in events])
    for seq, event in events:
        update.apply(seq, event)
    save_update(connection, update)


def load_update(connection: Connection, events: Iterable[Event]) -> ReadTableUpdate:
    """Return the current rows that events are about."""
    jobs: dict[str, None] = {}
    nodes: dict[str, None] = {}
    for event in events:
        if (job_id := job_of(event)) is not None:
            jobs[job_id] = None
        elif (node_id := node_of(event)) is not None:
            nodes[node_id] = None
    job_rows = [job_row(row) for row in _by_name(connection, JOBS, list(jobs))]
    exported = [row.id for row in job_rows if row.attempts]
    return ReadTableUpdate(
        job_rows,
        _latest_attempts(connection, exported),
        [node_row(row) for row in _by_name(connection, NODES, list(nodes))],
    )


def save_update(connection: Connection, update: ReadTableUpdate) -> None:
    """Write the rows that changed."""
    jobs = [_job_values(update.jobs[job_id]) for job_id in update.changed_jobs]
    attempts = [_attempt_values(row) for row in update.changed_attempts.values()]
    nodes = [_node_values(update.nodes[node_id]) for node_id in update.changed_nodes]
    for table, rows in ((JOBS, jobs), (ATTEMPTS, attempts), (NODES, nodes)):
        if rows:
            connection.execute(_upsert(table, connection.dialect.name), rows)
    if update.new_keys:
        keep_keys(connection, list(update.new_keys.values()))


def keep_keys(connection: Connection, rows: Sequence[KeyRow]) -> None:
    """Add idempotency keys, and delete those too old to be used again."""
    connection.execute(_upsert(SUBMIT_KEYS, connection.dialect.name), [asdict(row) for row in rows])
    oldest_ms = max(row.at_ms for row in rows) - KEY_KEPT_MS
    connection.execute(delete(SUBMIT_KEYS).where(SUBMIT_KEYS.c.at_ms < oldest_ms))


def job_row(row: RowMapping) -> JobRow:
    """Return a row of the jobs table."""
    values: dict[str, Any] = dict(row)
    values["fields"] = _fields(row["fields"])
    return JobRow(**values)


def attempt_row(row: RowMapping) -> AttemptRow:
    """Return a row of the attempts table."""
    values: dict[str, Any] = dict(row)
    values["nodes"] = msgspec.json.decode(row["nodes"], type=tuple[str, ...])
    if row["nodes_next"] is not None:
        values["nodes_next"] = msgspec.json.decode(row["nodes_next"], type=tuple[str, ...])
    return AttemptRow(**values)


def node_row(row: RowMapping) -> NodeRow:
    """Return a row of the nodes table."""
    values: dict[str, Any] = dict(row)
    if row["acceptance"] is not None:
        values["acceptance"] = msgspec.json.decode(row["acceptance"], type=Acceptance)
    values["fields"] = _fields(row["fields"])
    return NodeRow(**values)


def _fields(text: str | None) -> dict[str, Value]:
    return {} if text is None else _FIELDS.decode(text)


def _fields_text(fields: Mapping[str, Value]) -> str | None:
    return msgspec.json.encode(fields).decode() if fields else None


def _job_values(row: JobRow) -> dict[str, Any]:
    values = asdict(row)
    values["fields"] = _fields_text(row.fields)
    return values


def _node_values(row: NodeRow) -> dict[str, Any]:
    values = asdict(row)
    if row.acceptance is not None:
        values["acceptance"] = msgspec.json.encode(row.acceptance).decode()
    values["fields"] = _fields_text(row.fields)
    return values


def _attempt_values(row: AttemptRow) -> dict[str, Any]:
    values = asdict(row)
    values["nodes"] = msgspec.json.encode(row.nodes).decode()
    if row.nodes_next is not None:
        values["nodes_next"] = msgspec.json.encode(row.nodes_next).decode()
    return values


def _by_name(connection: Connection, table: Table, names: Sequence[str]) -> Iterable[RowMapping]:
    for at in range(0, len(names), AT_ONCE):
        some = names[at : at + AT_ONCE]
        yield from connection.execute(_named(table), {NAMES: some}).mappings()


def _latest_attempts(connection: Connection, names: Sequence[str]) -> Iterable[AttemptRow]:
    for at in range(0, len(names), AT_ONCE):
        some = names[at : at + AT_ONCE]
        for row in connection.execute(_newest(), {NAMES: some}).mappings():
            yield attempt_row(row)


# Building a query costs as much as running it, so each is built once.


@cache
def _named(table: Table) -> Select[Any]:
    return select(table).where(table.c.id.in_(bindparam(NAMES, expanding=True)))


@cache
def _newest() -> Select[Any]:
    # A resize in progress already has a number, but no row until it is done.
    other = ATTEMPTS.alias()
    newest = select(func.max(other.c.number)).where(other.c.job_id == JOBS.c.id).scalar_subquery()
    latest = and_(ATTEMPTS.c.job_id == JOBS.c.id, ATTEMPTS.c.number == newest)
    named = JOBS.c.id.in_(bindparam(NAMES, expanding=True))
    return select(ATTEMPTS).select_from(ATTEMPTS.join(JOBS, latest)).where(named)


@cache
def _upsert(table: Table, dialect: str) -> Any:
    """Return the statement that inserts a row or replaces the one with that key."""
    insert = postgresql_insert if dialect == "postgresql" else sqlite_insert
    statement = insert(table)
    keys = [column.name for column in table.primary_key]
    others = {
        column.name: statement.excluded[column.name]
        for column in table.columns
        if column.name not in keys
    }
    return statement.on_conflict_do_update(index_elements=keys, set_=others)
