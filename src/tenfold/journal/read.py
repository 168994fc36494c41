"""Read a journal: events after a point, jobs newest first, one job with its attempts.

Long reads go page by page, each in its own short transaction: events never change, so nothing is
missed in between, and compaction is not blocked.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

import msgspec
from msgspec.structs import replace
from sqlalchemy import ColumnElement, Connection, Select, func, or_, select

from tenfold.engine.decision_log import Cycle
from tenfold.engine.recording import Line
from tenfold.journal.arrays import members_of
from tenfold.journal.read_tables import Numbered, attempt_row, job_row, node_row
from tenfold.journal.rows import (
    AttemptRow,
    JobRow,
    JobWithAttempts,
    KeyRow,
    NodeRow,
    RunTime,
    WriterRow,
)
from tenfold.journal.shared.members import MemberSharing, share
from tenfold.journal.shared.texts import TextReader
from tenfold.journal.store import Store
from tenfold.journal.tables import (
    ATTEMPTS,
    CYCLES,
    EVENTS,
    EXPORTS,
    JOBS,
    NODES,
    SUBMIT_KEYS,
    WRITERS,
)
from tenfold.model.actions import Action
from tenfold.model.api.jobs import ATTEMPTS_SHOWN, PAGE_MAX
from tenfold.model.errors import InputError
from tenfold.model.events import ActionOrdered, Event, JobSubmitted
from tenfold.model.job.job import ENDED, JOB_STATES, JobState


def find_key(store: Store, team: str, key: str) -> KeyRow | None:
    """Return the request of a team with a key; None if there is none."""
    named = (SUBMIT_KEYS.c.team == team, SUBMIT_KEYS.c.key == key)
    with store.reading() as connection:
        row = connection.execute(select(SUBMIT_KEYS).where(*named)).mappings().one_or_none()
    return None if row is None else KeyRow(**row)


def latest_keys(store: Store, most: int) -> list[KeyRow]:
    """Return the latest requests with a key, oldest first."""
    query = select(SUBMIT_KEYS).order_by(SUBMIT_KEYS.c.at_ms.desc()).limit(most)
    with store.reading() as connection:
        rows = [KeyRow(**row) for row in connection.execute(query).mappings()]
    return rows[::-1]


PAGE = 10_000
"""Events per page."""
PAGE_CHARACTERS = 8 << 20
"""A page ends early at this size: one submission may have megabytes."""
ROWS_AHEAD = 64
"""Rows that a database server may prefetch."""
NAMES_AT_ONCE = 500
"""Ids per query: databases limit the number of parameters."""
NAMED_MOST = 30_000
"""Ids that a listing may be restricted to, for the same reason."""
COUNT_MOST = 1_000_000
"""Matching jobs that are counted."""

NO_MORE: tuple[int, Cycle | None] = (0, None)

_EVENT = msgspec.json.Decoder(Event)
_NAMES = msgspec.json.Decoder(list[str])
_CYCLE = msgspec.json.Decoder(Cycle)


def events_after(store: Store, seq: int = 0, last: int | None = None) -> Iterator[Numbered]:
    """Yield events with their numbers, in order, starting after `seq`."""
    for page in event_pages(store, seq, last):
        yield from page


def event_pages(store: Store, seq: int = 0, last: int | None = None) -> Iterator[list[Numbered]]:
    """Yield pages of events in order; use this to read millions of events."""
    while True:
        query = select(EVENTS.c.seq, EVENTS.c.body, EVENTS.c.shared).where(EVENTS.c.seq > seq)
        if last is not None:
            query = query.where(EVENTS.c.seq <= last)
        with store.reading() as connection:
            rows = _page(connection, query.order_by(EVENTS.c.seq).limit(PAGE))
        if not rows:
            return
        seq = rows[-1][0]
        yield decode_rows(rows)


def lines_between(store: Store, first: int = 1, last: int | None = None) -> Iterator[Line]:
    """Yield events and, after the event it followed, each cycle with its orders."""
    orders: list[Action] = []
    if first == 1:
        yield from (cycle for _, cycle in _cycles(store, 0, 0) if cycle is not None)
    for page in event_pages(store, first - 1, last):
        cycles = _cycles(store, page[0][0], page[-1][0])
        after, cycle = next(cycles, NO_MORE)
        for seq, event in page:
            yield event
            if isinstance(event, ActionOrdered):
                orders.append(event.action)
            while cycle is not None and after == seq:
                yield replace(cycle, actions=tuple(orders)) if orders else cycle
                orders = []
                after, cycle = next(cycles, NO_MORE)


class JobFilter(NamedTuple):
    """Restrictions of a listing."""

    since_ms: int | None = None
    """Only jobs submitted at or after this time."""
    array: str | None = None
    """Only tasks of this array."""
    named: Sequence[str] | None = None
    """Only these ids."""
    user: str | None = None
    """Only jobs that this user submitted."""


def jobs(
    store: Store,
    *,
    team: str | None = None,
    state: JobState | None = None,
    before: int | None = None,
    limit: int = 100,
    within: JobFilter | None = None,
) -> list[JobRow]:
    """Return jobs, newest first; `before` is the `seq` of the last job already seen."""
    query = select(JOBS).order_by(JOBS.c.seq.desc()).limit(max(1, min(limit, PAGE_MAX)))
    if before is not None:
        query = query.where(JOBS.c.seq < before)
    with store.reading() as connection:
        query = query.where(*_matching(connection, team, state, within))
        return [job_row(row) for row in connection.execute(query).mappings()]


def job_count(
    store: Store,
    *,
    team: str | None = None,
    state: JobState | None = None,
    within: JobFilter | None = None,
) -> int:
    """Return how many jobs match; it stops at `COUNT_MOST`."""
    with store.reading() as connection:
        matching = select(JOBS.c.seq).where(*_matching(connection, team, state, within))
        some = matching.limit(COUNT_MOST).subquery()
        return connection.execute(select(func.count()).select_from(some)).scalar_one()


def _matching(
    connection: Connection, team: str | None, state: JobState | None, within: JobFilter | None
) -> list[ColumnElement[bool]]:
    since_ms, array, named, user = within or JobFilter()
    found: list[ColumnElement[bool]] = []
    if team is not None:
        found.append(JOBS.c.team == team)
    if state is not None:
        found.append(JOBS.c.state == state)
    if since_ms is not None:
        found.append(JOBS.c.submitted_ms >= since_ms)
    if named is not None:
        found.append(JOBS.c.id.in_(named[:NAMED_MOST]))
    if array is not None:
        found.append(members_of(connection, array))
    if user is not None:
        by_name = JOBS.c.user_name == user
        # As `model.job.users.is_user`: `root@host` is the token of a local user.
        local = JOBS.c.user_name.startswith(f"{user}@", autoescape=True)
        found.append(by_name if "@" in user else or_(by_name, local))
    return found


def job(
    store: Store, job_id: str, before: int | None = None, attempts_most: int = ATTEMPTS_SHOWN
) -> JobWithAttempts | None:
    """Return one job with its latest attempts, or those before a number; None if there is none."""
    attempts = select(ATTEMPTS).where(ATTEMPTS.c.job_id == job_id)
    if before is not None:
        attempts = attempts.where(ATTEMPTS.c.number < before)
    attempts = attempts.order_by(ATTEMPTS.c.number.desc()).limit(attempts_most)
    with store.reading() as connection:
        row = connection.execute(select(JOBS).where(JOBS.c.id == job_id)).mappings().one_or_none()
        if row is None:
            return None
        found_rows = [attempt_row(one) for one in connection.execute(attempts).mappings()]
    return JobWithAttempts(job=job_row(row), attempts=tuple(reversed(found_rows)))


def attempts_of(
    store: Store, job_ids: Sequence[str], *, latest: int | None = None
) -> dict[str, tuple[AttemptRow, ...]]:
    """Return the attempts of several jobs, for a page of a listing only the latest of each."""
    found_rows: dict[str, list[AttemptRow]] = {name: [] for name in job_ids}
    names = list(found_rows)
    with store.reading() as connection:
        for first in range(0, len(names), NAMES_AT_ONCE):
            some = names[first : first + NAMES_AT_ONCE]
            query = select(ATTEMPTS).where(ATTEMPTS.c.job_id.in_(some))
            if latest is not None:
                # Attempts are numbered from 1, so the count of a job is the number of its last.
                is_latest = ATTEMPTS.c.number > JOBS.c.attempts - latest
                query = query.join(JOBS, JOBS.c.id == ATTEMPTS.c.job_id).where(is_latest)
            for row in connection.execute(query.order_by(ATTEMPTS.c.number)).mappings():
                found_rows[row["job_id"]].append(attempt_row(row))
    return {name: tuple(rows) for name, rows in found_rows.items()}


def run_times(store: Store, job_id: str, now_ms: int) -> list[RunTime]:
    """Return how long all attempts of a job ran until now, by the nodes they ran on."""
    ran_ms = func.sum(func.coalesce(ATTEMPTS.c.ended_ms, now_ms) - ATTEMPTS.c.started_ms)
    query = (
        select(ATTEMPTS.c.nodes, ran_ms)
        .where(ATTEMPTS.c.job_id == job_id, ATTEMPTS.c.started_ms.is_not(None))
        .group_by(ATTEMPTS.c.nodes)
    )
    with store.reading() as connection:
        rows = connection.execute(query).all()
    return [RunTime(len(_NAMES.decode(row[0])), max(0, int(row[1]))) for row in rows]


def submission(store: Store, job_id: str) -> JobSubmitted | None:
    """Return the submission of a job, with its run spec; None if the event was exported."""
    where = EVENTS.c.seq == JOBS.c.seq
    columns = select(EVENTS.c.seq, EVENTS.c.body, EVENTS.c.shared)
    with store.reading() as connection:
        row = connection.execute(columns.join(JOBS, where).where(JOBS.c.id == job_id)).one_or_none()
        if row is None:
            return None
        body = TextReader(connection).joined(*row)
    found = decode_rows([(row[0], body)])[0][1]
    return found if isinstance(found, JobSubmitted) else None


def open_submissions(store: Store) -> list[tuple[JobRow, JobSubmitted]]:
    """Return unfinished jobs with their submissions, oldest first."""
    query = (
        select(JOBS, EVENTS.c.body, EVENTS.c.shared)
        .join(EVENTS, EVENTS.c.seq == JOBS.c.seq)
        .where(JOBS.c.state.not_in(ENDED))
        .order_by(JOBS.c.seq)
    )
    found_rows: list[tuple[JobRow, JobSubmitted]] = []
    with store.reading() as connection:
        texts, members = TextReader(connection), MemberSharing()
        ahead = connection.execution_options(stream_results=True, max_row_buffer=ROWS_AHEAD)
        # One at a time: the stored text of a job may be much larger than what is kept of it.
        for found in ahead.execute(query).mappings():
            row = dict(found)
            body = texts.joined(row["seq"], row.pop("body"), row.pop("shared"))
            event = _one(row["seq"], body)
            if isinstance(event, JobSubmitted):
                found_rows.append((JobRow(**row), members.event(event)))
    return found_rows


def last_number(connection: Connection) -> int:
    """Return the largest job number ever assigned; 0 if none."""
    numbers = (select(func.max(JOBS.c.number)), select(func.max(EXPORTS.c.last_number)))
    return max(connection.execute(query).scalar() or 0 for query in numbers)


def counts(store: Store, team: str | None = None) -> dict[JobState, int]:
    """Return the number of jobs in each state that has any."""
    query = select(JOBS.c.state, func.count()).group_by(JOBS.c.state)
    if team is not None:
        query = query.where(JOBS.c.team == team)
    with store.reading() as connection:
        rows = connection.execute(query).all()
    found: dict[str, int] = {row[0]: row[1] for row in rows}
    return {state: found[state] for state in JOB_STATES if state in found}


def nodes(store: Store) -> list[NodeRow]:
    """Return every node that ever joined, in order."""
    with store.reading() as connection:
        rows = connection.execute(select(NODES).order_by(NODES.c.seq)).mappings()
        return [node_row(row) for row in rows]


def writers(store: Store) -> list[WriterRow]:
    """Return the writers of the journal, in order."""
    with store.reading() as connection:
        rows = connection.execute(select(WRITERS).order_by(WRITERS.c.epoch)).mappings()
        return [WriterRow(**row) for row in rows]


def cycles_after(store: Store, number: int, most: int) -> list[tuple[int, int, Cycle]]:
    """Return cycles after one, each with its number and the event that it followed."""
    query = (
        select(CYCLES.c.number, CYCLES.c.after_seq, CYCLES.c.body)
        .where(CYCLES.c.number > number)
        .order_by(CYCLES.c.number)
        .limit(most)
    )
    with store.reading() as connection:
        rows = connection.execute(query).all()
    return [(row[0], row[1], _CYCLE.decode(row[2])) for row in rows]


def _cycles(store: Store, first: int, last: int) -> Iterator[tuple[int, Cycle | None]]:
    query = (
        select(CYCLES.c.after_seq, CYCLES.c.body)
        .where(CYCLES.c.after_seq >= first, CYCLES.c.after_seq <= last)
        .order_by(CYCLES.c.number)
    )
    with store.reading() as connection:
        rows = connection.execute(query).all()
    for row in rows:
        yield row[0], _CYCLE.decode(row[1])


def _page(
    connection: Connection, query: "Select[int, str, int | None]"
) -> list[tuple[int, str | bytes]]:
    """Return as many rows as fit in a page, at least one."""
    ahead = {"stream_results": True, "max_row_buffer": ROWS_AHEAD}
    rows: list[tuple[int, str | bytes]] = []
    held, texts = 0, TextReader(connection)
    with connection.execution_options(**ahead).execute(query) as found:
        for row in found:
            own = cast("object", row[1])
            if not isinstance(own, str):
                raise _not_text(row[0], own)
            body = texts.joined(row[0], own, row[2])
            rows.append((row[0], body))
            held += len(body)
            if held >= PAGE_CHARACTERS:
                break
    return rows


def _not_text(seq: int, body: object) -> InputError:
    # SQLite stores any type in any column.
    return InputError(
        "journal-damaged",
        f"cannot read event {seq:,} of the journal: it is {type(body).__name__}, not text",
        "restore the journal from a backup; do not edit it manually",
    )


def decode_rows(rows: Sequence[tuple[int, str | bytes]]) -> list[Numbered]:
    """Return the events of some rows; raise if one cannot be read."""
    try:
        # Decoding a page in one call takes half the time.
        events = _EVENT.decode_lines(b"\n".join([_bytes(body) for _, body in rows]))
        return [(row[0], event) for row, event in zip(rows, share(events), strict=True)]
    except (msgspec.DecodeError, ValueError, RecursionError):
        return [(seq, _one(seq, body)) for seq, body in rows]


def _bytes(body: str | bytes) -> bytes:
    return body.encode() if isinstance(body, str) else body


def _one(seq: int, body: str | bytes) -> Event:
    try:
        return _EVENT.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InputError(
            "journal-damaged",
            f"cannot read event {seq:,} of the journal: {error}",
            "restore the journal from a backup; do not edit it manually",
        ) from None
