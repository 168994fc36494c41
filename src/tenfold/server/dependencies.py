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
from tenfold.server.problems import validation_problem
from tenfold.server.submissions import SubmissionRequest

DEPENDENCIES_MAX = 10_000
"""Jobs that one may come after, members of arrays counted."""
QUERY_BATCH = 500
NOT_SUCCEEDED = ("failed", "cancelled")


class _ResolvedName(NamedTuple):
    """The jobs that a name stands for, and the first of them that did not succeed."""

    jobs: list[JobId]
    failed: tuple[JobId, str] | None


def has_dependencies(request: SubmissionRequest) -> bool:
    """Tell whether something of a request is to come after other jobs."""
    return any(one.terms is not None and one.terms.after for one in request.submissions)


def resolve_dependencies(
    request: SubmissionRequest, store: Store, token: Token
) -> SubmissionRequest:
    """Return a request whose arrays stand as their members; raise where a job is not there."""
    names = dict.fromkeys(name for one in request.submissions for name in _after(one))
    resolved = _resolve_names(list(names), store, token)
    findings: list[Finding] = []
    made: list[Submission] = []
    for place, one in enumerate(request.submissions):
        path = ("jobs", place, "after") if request.is_batch else ("after",)
        findings += _findings(_after(one), resolved, path)
        wanted = [job for name in _after(one) if name in resolved for job in resolved[name].jobs]
        terms = one.terms and replace(one.terms, after=tuple(dict.fromkeys(wanted)))
        made.append(replace(one, terms=terms))
    if findings:
        raise validation_problem(findings, "the submission")
    return SubmissionRequest(tuple(made), request.is_batch)


def _after(one: Submission) -> tuple[JobId, ...]:
    return one.terms.after if one.terms is not None else ()


def _resolve_names(
    names: Sequence[JobId], store: Store, token: Token
) -> dict[JobId, _ResolvedName]:
    """Return the jobs that each name stands for, where it stands for any that is there."""
    found: dict[JobId, _ResolvedName] = {}
    for at in range(0, len(names), QUERY_BATCH):
        columns = select(JOBS.c.id, JOBS.c.team, JOBS.c.state)
        query = columns.where(JOBS.c.id.in_(names[at : at + QUERY_BATCH]))
        with store.reading() as connection:
            for job_id, team, state in connection.execute(query):
                if token.sees_all_teams or team == token.team:
                    found[JobId(job_id)] = _resolved([(JobId(job_id), state)])
    for name in names:
        if name not in found and "[" not in name and "\0" not in name:
            rows = arrays.members(store, name)
            if rows and (token.sees_all_teams or rows[0].team == token.team):
                found[name] = _resolved((row.id, row.state) for row in rows)
    return found


def _resolved(jobs: Iterable[tuple[JobId, str]]) -> _ResolvedName:
    each = list(jobs)
    failed = next((one for one in each if one[1] in NOT_SUCCEEDED), None)
    return _ResolvedName([job_id for job_id, _ in each], failed)


def _findings(
    after: Sequence[JobId], resolved: dict[JobId, _ResolvedName], path: tuple[str | int, ...]
) -> Iterator[Finding]:
    for number, name in enumerate(after):
        if name not in resolved:
            yield Finding(
                code="no-such-job",
                message=f"`after` names job `{name}`, and there is no such job",
                hint="list your jobs; one that was over long ago can be left out",
                path=(*path, number),
            )
        elif (failed := resolved[name].failed) is not None:
            yield Finding(
                code="dependency-failed",
                message=f"`after` names job `{failed[0]}`, which is {failed[1]}",
                hint="submit that one again first, or leave it out",
                path=(*path, number),
            )
    count = sum(len(resolved[name].jobs) for name in after if name in resolved)
    if count > DEPENDENCIES_MAX:
        message = f"`after` stands for {count:,} jobs; it may stand for {DEPENDENCIES_MAX:,}"
        yield Finding(code="wrong-value", message=message, hint="name fewer jobs", path=path)
