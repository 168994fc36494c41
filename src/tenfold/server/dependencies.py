"""Jobs that a submission is to come after: there for the one who asks, or not there at all.

A name that is another team's is answered like one that nobody has, so that nothing is learnt by
asking. The name of an array stands for its members. The fleet forgets jobs that are over, so one
that did not succeed is found out here.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace
from sqlalchemy import select

from tenfold.journal import arrays
from tenfold.journal.store import Store
from tenfold.journal.tables import JOBS
from tenfold.model.fleet.finding import Finding
from tenfold.model.ids import JobId
from tenfold.model.job.submission import Submission
from tenfold.server.auth.tokens import Token
from tenfold.server.problems import faulty
from tenfold.server.submissions import HandedIn

AFTER_MOST = 10_000
"""Jobs that one may come after, members of arrays counted."""
AT_ONCE = 500
NOT_SUCCEEDED = ("failed", "cancelled")


class _Known(NamedTuple):
    """The jobs that a name stands for, and the first of them that did not succeed."""

    jobs: list[JobId]
    failed: tuple[JobId, str] | None


def comes_after(asked: HandedIn) -> bool:
    """Tell whether something of a request is to come after other jobs."""
    return any(one.terms is not None and one.terms.after for one in asked.submissions)


def with_after(asked: HandedIn, store: Store, token: Token) -> HandedIn:
    """Return a request whose arrays stand as their members; raise where a job is not there."""
    names = dict.fromkeys(name for one in asked.submissions for name in _after(one))
    known = _known(list(names), store, token)
    findings: list[Finding] = []
    made: list[Submission] = []
    for place, one in enumerate(asked.submissions):
        path = ("jobs", place, "after") if asked.is_batch else ("after",)
        findings += _faults(_after(one), known, path)
        wanted = [job for name in _after(one) if name in known for job in known[name].jobs]
        terms = one.terms and replace(one.terms, after=tuple(dict.fromkeys(wanted)))
        made.append(replace(one, terms=terms))
    if findings:
        raise faulty(findings, "the submission")
    return HandedIn(tuple(made), asked.is_batch)


def _after(one: Submission) -> tuple[JobId, ...]:
    return one.terms.after if one.terms is not None else ()


def _known(names: Sequence[JobId], store: Store, token: Token) -> dict[JobId, _Known]:
    """Return the jobs that each name stands for, where it stands for any that is there."""
    found: dict[JobId, _Known] = {}
    for at in range(0, len(names), AT_ONCE):
        question = select(JOBS.c.id, JOBS.c.team, JOBS.c.state)
        asked = question.where(JOBS.c.id.in_(names[at : at + AT_ONCE]))
        with store.reading() as connection:
            for job_id, team, state in connection.execute(asked):
                if token.sees_all_teams or team == token.team:
                    found[JobId(job_id)] = _told([(JobId(job_id), state)])
    for name in names:
        if name not in found and "[" not in name and "\0" not in name:
            rows = arrays.members(store, name)
            if rows and (token.sees_all_teams or rows[0].team == token.team):
                found[name] = _told((row.id, row.state) for row in rows)
    return found


def _told(jobs: Iterable[tuple[JobId, str]]) -> _Known:
    each = list(jobs)
    failed = next((one for one in each if one[1] in NOT_SUCCEEDED), None)
    return _Known([job_id for job_id, _ in each], failed)


def _faults(
    after: Sequence[JobId], known: dict[JobId, _Known], path: tuple[str | int, ...]
) -> Iterator[Finding]:
    for number, name in enumerate(after):
        if name not in known:
            yield Finding(
                code="no-such-job",
                message=f"`after` names job `{name}`, and there is no such job",
                hint="list your jobs; one that was over long ago can be left out",
                path=(*path, number),
            )
        elif (failed := known[name].failed) is not None:
            yield Finding(
                code="dependency-failed",
                message=f"`after` names job `{failed[0]}`, which is {failed[1]}",
                hint="submit that one again first, or leave it out",
                path=(*path, number),
            )
    count = sum(len(known[name].jobs) for name in after if name in known)
    if count > AFTER_MOST:
        said = f"`after` stands for {count:,} jobs; it may stand for {AFTER_MOST:,}"
        yield Finding(code="wrong-value", message=said, hint="name fewer jobs", path=path)
