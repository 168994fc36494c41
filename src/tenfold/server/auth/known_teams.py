"""Teams that nothing else names: a team in a submission may be mistyped.

A token that sees all teams may submit for any team, so a name that is not known is no error.
"""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from sqlalchemy import func, select

from tenfold.journal.store import Store
from tenfold.journal.tables import JOBS
from tenfold.model.policy.policy import Policy
from tenfold.server.auth.tokens import Tokens

TEAMS_MOST = 200
"""Teams of jobs among which a similar name is looked for."""


def unknown_teams(
    teams: Iterable[str], store: Store, tokens: Tokens, policy: Policy
) -> dict[str, str]:
    """Return a note for each of these teams that no job, token or quota names."""
    named: set[str] = {token.team for token in tokens.all()}
    if policy.govern is not None:
        named |= {team.id for team in policy.govern.teams}
    notes: dict[str, str] = {}
    for team in dict.fromkeys(teams):
        if team in named or _has_jobs(store, team):
            continue
        near = get_close_matches(team, [*sorted(named), *_teams_of_jobs(store)], 1)
        hint = f"; did you mean `{near[0]}`?" if near else ""
        notes[team] = f"no other job, token or quota names team `{team}`{hint}"
    return notes


def _has_jobs(store: Store, team: str) -> bool:
    query = select(JOBS.c.seq).where(JOBS.c.team == team).limit(1)
    with store.reading() as connection:
        return connection.execute(query).first() is not None


def _teams_of_jobs(store: Store) -> Iterator[str]:
    """Yield the teams of jobs by name, each found in the index without reading its jobs."""
    last = ""
    with store.reading() as connection:
        for _ in range(TEAMS_MOST):
            query = select(func.min(JOBS.c.team)).where(JOBS.c.team > last)
            found: str | None = connection.execute(query).scalar_one()
            if found is None:
                return
            last = found
            yield found
