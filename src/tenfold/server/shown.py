"""What of an event a token is shown: its team's jobs, nodes, and no name of another team's job.

An order to stop one team's job may say for whose sake, and a cordon whose jobs failed there.
Below `operator` such names are struck out. The values of a job's environment are shown to members
of its team alone: they may be secrets, and neither a dashboard nor an operator needs them.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, cast

import msgspec
from sqlalchemy import Connection, select

from tenfold.journal.store import Store
from tenfold.journal.tables import JOBS, NODES
from tenfold.model.events import KIND_OF, Event, JobSubmitted, NodeJoined, job_of
from tenfold.server.masked import OTHERS, is_like_a_job, names_in, without_names
from tenfold.server.tokens import Role, Token

AT_ONCE = 500
"""Names in one question: databases limit how many there may be."""
STRUCK = "***"
_EVENT = msgspec.json.Decoder(Event)
_SUBMITTED = KIND_OF[JobSubmitted]


class Line(NamedTuple):
    """An event as it stands in the journal."""

    seq: int
    kind: str
    body: str


def seen_by(token: Token, lines: list[Line], store: Store) -> list[Line]:
    """Return the events that a token may see, as it may see them."""
    if token.sees_all_teams or not lines:
        return [_without_values(line, token) for line in lines]
    events = [(line, _EVENT.decode(line.body)) for line in lines]
    with store.reading() as connection:
        teams = _teams(connection, (name for _, event in events if (name := job_of(event))))
        own = [pair for pair in events if _team(pair[1], teams) in (None, token.team)]
        quoted = _Quoted(connection, token.team, [line.body for line, _ in own])
    return [_shown(line, event, token, quoted) for line, event in own]


class _Quoted:
    """Whose the names are that some texts quote."""

    def __init__(self, connection: Connection, team: str, texts: list[str]) -> None:
        names = dict.fromkeys(name for text in texts for name in names_in(text))
        # An array stands in the table by its members.
        asked = [*names, *(f"{name}[0]" for name in names)]
        self._team = team
        self._teams = _teams(connection, asked)
        self._places = _places(connection) if names else {}

    def is_secret(self, name: str) -> bool:
        """Tell whether a name is that of another team's job, or of one that nobody knows now."""
        team = self._teams.get(name) or self._teams.get(f"{name}[0]")
        if team is not None:
            return team != self._team
        return is_like_a_job(name) and name not in self._places


def _shown(line: Line, event: Event, token: Token, quoted: _Quoted) -> Line:
    if isinstance(event, JobSubmitted):
        return _without_values(line, token)
    if isinstance(event, NodeJoined) or "`" not in line.body:
        return line
    body: object = _struck(msgspec.json.decode(line.body), quoted)
    return line._replace(body=msgspec.json.encode(body).decode())


def _struck(value: object, quoted: _Quoted) -> object:
    if isinstance(value, str):
        return without_names(value, quoted.is_secret, OTHERS)
    if isinstance(value, dict):
        table = cast("dict[str, object]", value)
        return {key: _struck(item, quoted) for key, item in table.items()}
    if isinstance(value, list):
        return [_struck(item, quoted) for item in cast("list[object]", value)]
    return value


def _without_values(line: Line, token: Token) -> Line:
    """Return an event without the values of an environment that is not the reader's own."""
    if line.kind != _SUBMITTED or '"env"' not in line.body:
        return line
    plain: dict[str, Any] = msgspec.json.decode(line.body)
    work: dict[str, Any] = plain.get("work") or {}
    if "env" not in work or (plain["job"]["team"] == token.team and token.role >= Role.member):
        return line
    work["env"] = [[pair[0], STRUCK] for pair in work["env"]]
    return line._replace(body=msgspec.json.encode(plain).decode())


def _teams(connection: Connection, names: Iterable[str]) -> dict[str, str]:
    """Return the team of each job that there is among these."""
    asked, found = list(dict.fromkeys(names)), dict[str, str]()
    for at in range(0, len(asked), AT_ONCE):
        some = asked[at : at + AT_ONCE]
        question = select(JOBS.c.id, JOBS.c.team).where(JOBS.c.id.in_(some))
        found.update({row[0]: row[1] for row in connection.execute(question)})
    return found


def _places(connection: Connection) -> dict[str, None]:
    """Return the names of nodes, pools and sites, which are for everybody."""
    columns = (NODES.c.id, NODES.c.pool, NODES.c.site, NODES.c.accelerator)
    return dict.fromkeys(name for row in connection.execute(select(*columns)) for name in row)


def _team(event: Event, teams: dict[str, str]) -> str | None:
    """Return whose job an event is about; None where it is about none."""
    if isinstance(event, JobSubmitted):
        return event.job.team
    job_id = job_of(event)
    return None if job_id is None else teams.get(job_id, "")
