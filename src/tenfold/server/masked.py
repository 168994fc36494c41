"""Strike out the names of other teams' jobs, wherever an answer would say them.

A reason may name the job that goes first, a remedy the jobs that would be stopped. Below
`operator`, what is another team's is not there, and so not said either.
"""

import re
from collections.abc import Callable
from typing import cast

from tenfold.fleet.fleet import Fleet
from tenfold.model.ids import JobId
from tenfold.model.reason import Reason

OTHERS = "another team's"
ANOTHER = "another job"
_NAMED = re.compile(r"`([^`]+)`")
_ADMITTED = re.compile(r"-\d+(\[\d+\])?$")


def masked_reason(reason: Reason, fleet: Fleet, team: str) -> Reason:
    """Return a reason whose sentence names no job of another team."""
    return Reason(reason.code, _masked_text(reason.sentence, fleet, team))


def masked(value: object, fleet: Fleet, team: str) -> object:
    """Return plain data in which no text is, or quotes, the name of another team's job."""
    if isinstance(value, str):
        return OTHERS if _is_foreign(value, fleet, team) else _masked_text(value, fleet, team)
    if isinstance(value, dict):
        table = cast("dict[str, object]", value)
        return {key: masked(item, fleet, team) for key, item in table.items()}
    if isinstance(value, list | tuple):
        return [masked(item, fleet, team) for item in cast("list[object]", value)]
    return value


def names_in(text: str) -> list[str]:
    """Return what a text quotes."""
    return _NAMED.findall(text) if "`" in text else []


def without_names(text: str, is_secret: Callable[[str], bool], instead: str = OTHERS) -> str:
    """Return a text in which names that are not for the reader are struck out."""

    def told(match: re.Match[str]) -> str:
        return f"`{instead}`" if is_secret(match[1]) else match[0]

    return _NAMED.sub(told, text) if "`" in text else text


def is_like_a_job(name: str) -> bool:
    """Tell whether a name is of the form that jobs are given at admission."""
    return _ADMITTED.search(name) is not None


def masked_sentence(text: str, job_id: str, fleet: Fleet | None, team: str) -> str:
    """Return a sentence about a job that names no job but its own and those of its team.

    Jobs that are over stand in no fleet: whoever they belonged to, they are not named.
    """

    def is_secret(name: str) -> bool:
        if name == job_id or not is_like_a_job(name):
            return False
        return fleet is None or not _is_own(name, fleet, team)

    return without_names(text, is_secret, ANOTHER)


def _masked_text(text: str, fleet: Fleet, team: str) -> str:
    return without_names(text, lambda name: _is_foreign(name, fleet, team))


def _is_foreign(name: str, fleet: Fleet, team: str) -> bool:
    found = _team_of(name, fleet)
    return found is not None and found != team


def _is_own(name: str, fleet: Fleet, team: str) -> bool:
    return name in fleet.nodes or _team_of(name, fleet) == team


def _team_of(name: str, fleet: Fleet) -> str | None:
    job_id = JobId(name)
    job = fleet.pending.get(job_id)
    held = fleet.running.get(job_id) or fleet.orders.get(job_id)
    if held is not None:
        job = held.job
    return None if job is None else job.team
