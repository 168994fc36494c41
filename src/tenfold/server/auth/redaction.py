"""What a token sees of events: its team's jobs and models, nodes, and redacted reasons.

A preemption may name the job that caused it, and a cordon the jobs that failed there. Below
`operator`, fields that name other teams' jobs, users or teams are removed, and so is free text from
before reasons had fields. The values of a job's environment and the diff of its code are shown only
to members of its team: they may be secrets, and neither dashboards nor operators need them.
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
    ModelEvent,
    NodeLost,
    NodeTested,
    ServiceDeployed,
    ServiceEvent,
    job_of,
    team_of_model,
)
from tenfold.model.job.origin import Origin
from tenfold.model.reason import Reason
from tenfold.model.service.spec import ServiceSpec
from tenfold.report.reasons.render import with_sentences
from tenfold.server.auth.tokens import Role, Token

AT_ONCE = 500
"""Ids per query, as databases limit them."""
REDACTED = "***"
_EVENT = msgspec.json.Decoder(Event)
_WITH_WORK = (KIND_OF[JobSubmitted], KIND_OF[ServiceDeployed])
_CODE = '"code":'
"""In the body of every event that has a reason."""


class EventRow(NamedTuple):
    """An event as stored in the journal."""

    seq: int
    kind: str
    body: str


def visible_events(token: Token, rows: list[EventRow], store: Store) -> list[EventRow]:
    """Return the events that a token may see, redacted."""
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
    """Return an event of a team's job, or of no job, redacted for a token."""
    if isinstance(event, JobSubmitted | ServiceDeployed):
        return _without_values(row, token)
    redacted = event if token.sees_all_teams else _without_prose(event)
    if _CODE in row.body:
        redacted = with_sentences(redacted, token.reader, team)
    return row if redacted is event else row._replace(body=msgspec.json.encode(redacted).decode())


def _without_prose(event: Event) -> Event:
    """Return an event without free text."""
    if isinstance(event, NodeLost):
        return replace(event, cause="") if event.cause else event
    if isinstance(event, NodeTested):
        notes = tuple(one for one in event.verdict.notes if isinstance(one, Reason))
        return replace(event, verdict=replace(event.verdict, notes=notes))
    if isinstance(event, JobStopped | JobEnded | ActionRefused) and event.failure is not UNSET:
        return replace(event, failure=replace(event.failure, message=UNSET))
    return event


def _without_values(row: EventRow, token: Token) -> EventRow:
    """Return an event without environment values and diff, unless they are the reader's own."""
    if row.kind not in _WITH_WORK or ('"env"' not in row.body and '"diff"' not in row.body):
        return row
    plain: dict[str, Any] = msgspec.json.decode(row.body)
    work: dict[str, Any] = plain.get("work") or {}
    origin: dict[str, Any] = work.get("origin") or {}
    code: dict[str, Any] = origin.get("code") or {}
    if ("env" not in work and "diff" not in code) or sees_secrets(token, plain["job"]["team"]):
        return row
    if "env" in work:
        work["env"] = [[pair[0], REDACTED] for pair in work["env"]]
    if "diff" in code:
        code["diff"] = REDACTED
    if "spec" in plain:
        _redact_spec(plain["spec"])
    return row._replace(body=msgspec.json.encode(plain).decode())


def _redact_spec(spec: dict[str, Any]) -> None:
    """Remove the environment and the diff from a service, as from its replicas."""
    spec["env"] = dict.fromkeys(spec.get("env", {}), REDACTED)
    origin: dict[str, Any] = spec.get("origin") or {}
    code: dict[str, Any] = origin.get("code") or {}
    if "diff" in code:
        code["diff"] = REDACTED


def without_secrets(spec: ServiceSpec) -> ServiceSpec:
    """Return a service without the values of its environment, and without the diff of its code."""
    env = dict.fromkeys(spec.env, REDACTED)
    return replace(spec, env=env, origin=without_diff(spec.origin))


def sees_secrets(token: Token, team: str) -> bool:
    """Tell whether a token sees environment values and diffs of a team's jobs."""
    return team == token.team and token.role >= Role.member


def without_diff(origin: Origin | None) -> Origin | None:
    """Return where a job was submitted from, without the diff of its code."""
    if origin is None or origin.code is None or not origin.code.diff:
        return origin
    return replace(origin, code=replace(origin.code, diff=REDACTED))


def _teams(connection: Connection, names: Iterable[str]) -> dict[str, str]:
    """Return the team of each of these jobs that exists."""
    job_ids, found = list(dict.fromkeys(names)), dict[str, str]()
    for at in range(0, len(job_ids), AT_ONCE):
        some = job_ids[at : at + AT_ONCE]
        query = select(JOBS.c.id, JOBS.c.team).where(JOBS.c.id.in_(some))
        found.update({row[0]: row[1] for row in connection.execute(query)})
    return found


def _team(event: Event, teams: dict[str, str]) -> str | None:
    """Return the team of what an event is about; None if it is of no team."""
    if isinstance(event, JobSubmitted):
        return event.job.team
    if isinstance(event, ServiceEvent):
        return event.team
    if isinstance(event, ModelEvent):
        return team_of_model(event)
    job_id = job_of(event)
    return None if job_id is None else teams.get(job_id, "")
