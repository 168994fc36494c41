"""Update the read tables with new events: load the affected rows, change and save them.

Each write returns how it changes the sum of the tables, which shows rows that were changed
otherwise.
"""

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
    insert,
    or_,
    select,
    tuple_,
)
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from tenfold.journal.derive import ReadTableUpdate
from tenfold.journal.integrity.table_sum import digest_of, sum_of_values
from tenfold.journal.models.rows import ModelRows, alias_row, rows_needed, version_row
from tenfold.journal.rows import AttemptRow, JobRow, KeyRow, NodeRow
from tenfold.journal.tables import (
    ATTEMPTS,
    JOBS,
    MODEL_ALIASES,
    MODEL_VERSIONS,
    NODES,
    SUBMIT_KEYS,
)
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


Stored = dict[tuple[str, object], RowMapping]
"""Rows before an update, by table and key."""


def update_read_tables(connection: Connection, events: Sequence[Numbered]) -> int:
    """Apply events to the read tables, in the transaction that adds them.

    Return the change of the sum of the tables.
    """
    update, before = load_update(connection, [event for _, event in events])
    for seq, event in events:
        update.apply(seq, event)
    return save_update(connection, update, before)


def load_update(connection: Connection, events: Sequence[Event]) -> tuple[ReadTableUpdate, Stored]:
    """Return the current rows that events are about, decoded and as they are stored."""
    jobs: dict[str, None] = {}
    nodes: dict[str, None] = {}
    for event in events:
        if (job_id := job_of(event)) is not None:
            jobs[job_id] = None
        elif (node_id := node_of(event)) is not None:
            nodes[node_id] = None
    before: Stored = {}
    job_rows: list[JobRow] = []
    for row in _by_name(connection, JOBS, list(jobs)):
        job_rows.append(job_row(row))
        before["jobs", row["id"]] = row
    attempts: list[AttemptRow] = []
    for row in _latest_attempts(connection, [row.id for row in job_rows if row.attempts]):
        attempts.append(attempt_row(row))
        before["attempts", (row["job_id"], row["number"])] = row
    node_rows: list[NodeRow] = []
    for row in _by_name(connection, NODES, list(nodes)):
        node_rows.append(node_row(row))
        before["nodes", row["id"]] = row
    models = _load_models(connection, events, before)
    return ReadTableUpdate(job_rows, attempts, node_rows, models), before


def _load_models(connection: Connection, events: Sequence[Event], before: Stored) -> ModelRows:
    versions, aliases = rows_needed(events)
    for row in _by_name(connection, MODEL_VERSIONS, versions):
        before["model_versions", row["id"]] = row
    for row in _by_name(connection, MODEL_ALIASES, aliases):
        before["model_aliases", row["id"]] = row
    return ModelRows(
        [version_row(row) for (table, _), row in before.items() if table == "model_versions"],
        [alias_row(row) for (table, _), row in before.items() if table == "model_aliases"],
    )


def save_update(connection: Connection, update: ReadTableUpdate, before: Stored) -> int:
    """Write the rows that changed, and return the change of the sum."""
    jobs = [_job_values(update.jobs[job_id]) for job_id in update.changed_jobs]
    attempts = [_attempt_values(row) for row in update.changed_attempts.values()]
    nodes = [_node_values(update.nodes[node_id]) for node_id in update.changed_nodes]
    changed: Sequence[tuple[Table, Iterable[object], Sequence[dict[str, Any]]]] = (
        (JOBS, update.changed_jobs, jobs),
        (ATTEMPTS, update.changed_attempts, attempts),
        (NODES, update.changed_nodes, nodes),
        *update.models.changed(),
    )
    change = 0
    for table, keys, rows in changed:
        if rows:
            connection.execute(_upsert(table, connection.dialect.name), rows)
            change += sum_of_values(table, rows)
        if before:
            for key in keys:
                if (old := before.get((table.name, key))) is not None:
                    change -= digest_of(table, tuple(old.values()))
    if update.new_keys:
        change += keep_keys(connection, list(update.new_keys.values()))
    return change


def keep_keys(connection: Connection, rows: Sequence[KeyRow]) -> int:
    """Add idempotency keys, and delete those too old to be used again; return the change."""
    change, oldest_ms = 0, max(row.at_ms for row in rows) - KEY_KEPT_MS
    rows = [row for row in rows if row.at_ms >= oldest_ms]
    for at in range(0, len(rows), AT_ONCE):
        some = rows[at : at + AT_ONCE]
        names = [(row.team, row.key) for row in some]
        values = {"oldest_ms": oldest_ms, NAMES: names}
        for old in connection.execute(_replaced_keys(), values).all():
            change -= digest_of(SUBMIT_KEYS, tuple(old))
        made = [asdict(row) for row in some]
        connection.execute(insert(SUBMIT_KEYS), made)
        change += sum_of_values(SUBMIT_KEYS, made)
    return change


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


def _latest_attempts(connection: Connection, names: Sequence[str]) -> Iterable[RowMapping]:
    for at in range(0, len(names), AT_ONCE):
        some = names[at : at + AT_ONCE]
        yield from connection.execute(_newest(), {NAMES: some}).mappings()


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
def _replaced_keys() -> Any:
    """Return the statement that deletes keys that are too old or about to be written."""
    named = tuple_(SUBMIT_KEYS.c.team, SUBMIT_KEYS.c.key).in_(bindparam(NAMES, expanding=True))
    is_old = SUBMIT_KEYS.c.at_ms < bindparam("oldest_ms")
    return delete(SUBMIT_KEYS).where(or_(is_old, named)).returning(*SUBMIT_KEYS.c)


@cache
def _upsert(table: Table, dialect: str) -> Any:
    """Return the statement that inserts a row or replaces the one with that key."""
    insert_into = postgresql_insert if dialect == "postgresql" else sqlite_insert
    statement = insert_into(table)
    keys = [column.name for column in table.primary_key]
    others = {
        column.name: statement.excluded[column.name]
        for column in table.columns
        if column.name not in keys
    }
    return statement.on_conflict_do_update(index_elements=keys, set_=others)
