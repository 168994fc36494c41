"""Resolve the `after` of a submission: jobs that must succeed before it starts.

Another team's job gets the same answer as a job that does not exist, so that names of other teams'
jobs do not leak. The name of an array means all its members. The fleet forgets ended jobs, so a
dependency that failed is found here, in the journal.
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
from tenfold.model.reason import Reason
from tenfold.server.auth.tokens import Token
from tenfold.server.problems import Problem, validation_problem
from tenfold.server.submissions import SubmissionRequest, sized

DEPENDENCIES_MAX = 10_000
"""Jobs that one submission may depend on, counting members of arrays."""
DEPENDENCIES_ALL_MAX = 1_000_000
"""The same for all jobs of one request, where each member of an array has its own."""
QUERY_BATCH = 500
HAS_ENDED = {"failed": "failed", "cancelled": "was cancelled"}
"""Jobs that ended without success, in words."""


class _ResolvedName(NamedTuple):
    """The jobs that a name stands for, and the first of them that did not succeed."""

    jobs: list[JobId]
    failed: tuple[JobId, str] | None


def has_dependencies(request: SubmissionRequest) -> bool:
    """Tell whether any job of a request depends on other jobs."""
    return any(one.terms is not None and one.terms.after for one in request.submissions)


def resolve_dependencies(
    request: SubmissionRequest, store: Store, token: Token
) -> SubmissionRequest:
    """Return a request with arrays replaced by their members; raise if a job does not exist."""
    names = dict.fromkeys(name for one in request.submissions for name in _after(one))
    resolved = _resolve_names(list(names), store, token)
    findings: list[Finding] = []
    made: list[Submission] = []
    shared: dict[tuple[JobId, ...], tuple[JobId, ...]] = {}
    """Jobs of a batch that name the same jobs share one tuple."""
    count = 0
    for place, one in enumerate(request.submissions):
        path = ("jobs", place, "after") if request.is_batch else ("after",)
        findings += _findings(_after(one), resolved, path)
        if (after := _after(one)) not in shared:
            wanted = (job for name in after if name in resolved for job in resolved[name].jobs)
            shared[after] = tuple(dict.fromkeys(wanted))
        count += len(shared[after]) * (one.array or 1)
        if count > DEPENDENCIES_ALL_MAX:
            raise _too_many()
        terms = one.terms and replace(one.terms, after=shared[after])
        made.append(replace(one, terms=terms))
    if findings:
        raise validation_problem(findings, "the submission")
    return replace(request, submissions=sized(made))


def _too_many() -> Problem:
    message = f"the jobs depend on over {DEPENDENCIES_ALL_MAX:,} jobs in all"
    hint = "name fewer jobs in `after`, or submit fewer jobs per request"
    return Problem(422, Reason("too-many-jobs", sentence=message), hint)


def _after(one: Submission) -> tuple[JobId, ...]:
    return one.terms.after if one.terms is not None else ()


def _resolve_names(
    names: Sequence[JobId], store: Store, token: Token
) -> dict[JobId, _ResolvedName]:
    """Return the jobs that each name stands for; names that do not exist are left out."""
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
    failed = next((one for one in each if one[1] in HAS_ENDED), None)
    return _ResolvedName([job_id for job_id, _ in each], failed)


def _findings(
    after: Sequence[JobId], resolved: dict[JobId, _ResolvedName], path: tuple[str | int, ...]
) -> Iterator[Finding]:
    for number, name in enumerate(after):
        if name not in resolved:
            yield Finding(
                code="no-such-job",
                message=f"`after` names job `{name}`, which does not exist",
                hint="check `tenfold job list`; if the job ended long ago, remove it from `after`",
                path=(*path, number),
            )
        elif (failed := resolved[name].failed) is not None:
            yield Finding(
                code="dependency-failed",
                message=f"`after` names job `{failed[0]}`, which {HAS_ENDED[failed[1]]}",
                hint="resubmit that job first, or remove it from `after`",
                path=(*path, number),
            )
    count = sum(len(resolved[name].jobs) for name in after if name in resolved)
    if count > DEPENDENCIES_MAX:
        message = f"`after` resolves to {count:,} jobs; the limit is {DEPENDENCIES_MAX:,}"
        yield Finding(code="wrong-value", message=message, hint="name fewer jobs", path=path)
