"""Strike out the names of other teams' jobs, wherever an answer would say them.

A reason may name the job that goes first, a remedy the jobs that would be stopped. Below
`operator`, what is another team's is not there, and so not said either.
"""

import re
from typing import cast

from tenfold.fleet.fleet import Fleet
from tenfold.model.ids import JobId
from tenfold.model.reason import Reason

OTHERS = "another team's"
_NAMED = re.compile(r"`([^`]+)`")


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


def _masked_text(text: str, fleet: Fleet, team: str) -> str:
    def told(match: re.Match[str]) -> str:
        return f"`{OTHERS}`" if _is_foreign(match[1], fleet, team) else match[0]

    return _NAMED.sub(told, text) if "`" in text else text


def _is_foreign(name: str, fleet: Fleet, team: str) -> bool:
    job_id = JobId(name)
    job = fleet.pending.get(job_id)
    held = fleet.running.get(job_id) or fleet.orders.get(job_id)
    if held is not None:
        job = held.job
    return job is not None and job.team != team
