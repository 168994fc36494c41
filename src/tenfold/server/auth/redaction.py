"""What of an event a token is redacted: its team's jobs, nodes, and reasons as it may read them.

An order to stop one team's job may say for whose sake, and a cordon whose jobs failed there.
Below `operator`, fields that name other teams' jobs, users or teams are left out; so is prose
from before reasons had fields, which may name anybody. The values of a job's environment are
redacted to members of its team alone: they may be secrets, and neither a dashboard nor an operator
needs them.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET
from msgspec.structs import replace
from sqlalchemy import Connection, select

from tenfold.journal.store import Store
from tenfold.journal.tables import JOBS
from tenfold.model.events import (
    KIND_OF,
    ActionRefused,
    Event,
    JobEnded,
    JobStopped,
    JobSubmitted,
    NodeLost,
    NodeTested,
    job_of,
)
from tenfold.model.reason import Reason
from tenfold.report.reasons.render import with_sentences
from tenfold.server.auth.tokens import Role, Token

AT_ONCE = 500
"""Names in one query: databases limit how many there may be."""
REDACTED = "***"
_EVENT = msgspec.json.Decoder(Event)
_SUBMITTED = KIND_OF[JobSubmitted]
_CODE = '"code":'
"""In the body of every event that has a reason."""


class EventRow(NamedTuple):
    """An event as it stands in the journal."""

    seq: int
    kind: str
    body: str


def visible_events(token: Token, rows: list[EventRow], store: Store) -> list[EventRow]:
    """Return the events that a token may see, as it may see them."""
    if not rows:
        return []
    if token.sees_all_teams:
        return [_redacted(row, _EVENT.decode(row.body), token, None) for row in rows]
    events = [(row, _EVENT.decode(row.body)) for row in rows]
    with store.reading() as connection:
        teams = _teams(connection, (name for _, event in events if (name := job_of(event))))
    return [
        _redacted(row, event, token, team)
        for row, event in events
        if (team := _team(event, teams)) in (None, token.team)
    ]


def _redacted(row: EventRow, event: Event, token: Token, team: str | None) -> EventRow:
    """Return an event of a team's job, or of none, as a token may see it."""
    if isinstance(event, JobSubmitted):
        return _without_values(row, token)
    redacted = event if token.sees_all_teams else _without_prose(event)
    if _CODE in row.body:
        redacted = with_sentences(redacted, token.reader, team)
    return row if redacted is event else row._replace(body=msgspec.json.encode(redacted).decode())


def _without_prose(event: Event) -> Event:
    """Return an event without what somebody wrote freely, or was written before fields were."""
    if isinstance(event, NodeLost):
        return replace(event, cause="") if event.cause else event
    if isinstance(event, NodeTested):
        notes = tuple(one for one in event.verdict.notes if isinstance(one, Reason))
        return replace(event, verdict=replace(event.verdict, notes=notes))
    if isinstance(event, JobStopped | JobEnded | ActionRefused) and event.failure is not UNSET:
        return replace(event, failure=replace(event.failure, message=UNSET))
    return event


def _without_values(row: EventRow, token: Token) -> EventRow:
    """Return an event without the values of an environment that is not the reader's own."""
    if row.kind != _SUBMITTED or '"env"' not in row.body:
        return row
    plain: dict[str, Any] = msgspec.json.decode(row.body)
    work: dict[str, Any] = plain.get("work") or {}
    if "env" not in work or (plain["job"]["team"] == token.team and token.role >= Role.member):
        return row
    work["env"] = [[pair[0], REDACTED] for pair in work["env"]]
    return row._replace(body=msgspec.json.encode(plain).decode())


def _teams(connection: Connection, names: Iterable[str]) -> dict[str, str]:
    """Return the team of each job that there is among these."""
    job_ids, found = list(dict.fromkeys(names)), dict[str, str]()
    for at in range(0, len(job_ids), AT_ONCE):
        some = job_ids[at : at + AT_ONCE]
        query = select(JOBS.c.id, JOBS.c.team).where(JOBS.c.id.in_(some))
        found.update({row[0]: row[1] for row in connection.execute(query)})
    return found


def _team(event: Event, teams: dict[str, str]) -> str | None:
    """Return whose job an event is about; None where it is about none."""
    if isinstance(event, JobSubmitted):
        return event.job.team
    job_id = job_of(event)
    return None if job_id is None else teams.get(job_id, "")
