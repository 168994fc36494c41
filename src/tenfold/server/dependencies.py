"""Resolve the `after` of a submission: jobs that must succeed before it starts.

Another team's job gets the same answer as a job that does not exist, so that names of other teams'
jobs do not leak. The name of an array means all its members. The fleet forgets ended jobs, so a
dependency that failed is found here, in the journal.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import UNSET
from msgspec.structs import replace
from sqlalchemy import select

from tenfold.journal import arrays, read
from tenfold.journal.store import Store
from tenfold.journal.tables import JOBS
from tenfold.model.fleet.finding import Finding
from tenfold.model.ids import JobId
from tenfold.model.job.job import ENDED
from tenfold.model.job.submission import Submission
from tenfold.model.job.terms import Terms
from tenfold.model.reason import Reason
from tenfold.server.auth.tokens import Token
from tenfold.server.problems import Problem, validation_problem
from tenfold.server.submissions import SubmissionRequest, sized

DEPENDENCIES_MAX = 10_000
"""Jobs that one submission may depend on, counting members of arrays."""
DEPENDENCIES_ALL_MAX = 1_000_000
"""The same for all jobs of one request, where each member of an array has its own."""
QUERY_BATCH = 500
REPAIRED_MAX, RERUNS_MAX = 100, 200
"""Failed jobs of a name for which reruns are looked for, and later jobs that may be reruns."""
NAMED_MOST = 3
"""Reruns that a note names."""
HAS_ENDED = {"failed": "failed", "cancelled": "was cancelled"}
"""Jobs that ended without success, in words."""


class _ResolvedName(NamedTuple):
    """The jobs that a name stands for, and the first of them that did not succeed."""

    states: list[tuple[JobId, str]]
    failed: tuple[JobId, str] | None
    reruns: tuple[tuple[JobId, JobId], ...] = ()
    """Jobs that failed, and the reruns that stand for them."""

    @property
    def jobs(self) -> list[JobId]:
        """The jobs."""
        return [job_id for job_id, _ in self.states]


def has_dependencies(request: SubmissionRequest) -> bool:
    """Tell whether any job of a request depends on other jobs."""
    return any(
        one.singleton or (one.terms is not None and (one.terms.after or one.terms.ended_first))
        for one in request.submissions
    )


def resolve_dependencies(
    request: SubmissionRequest, store: Store, token: Token
) -> SubmissionRequest:
    """Return a request with arrays replaced by their members; raise if a job does not exist."""
    names = dict.fromkeys(
        name for one in request.submissions for name in (*_after(one), *_ended_first(one))
    )
    resolved = _resolve_names(list(names), store, token)
    findings: list[Finding] = []
    made: list[Submission] = []
    shared: dict[tuple[JobId, ...], tuple[JobId, ...]] = {}
    """Jobs of a batch that name the same jobs share one tuple."""
    count = 0
    for place, one in enumerate(request.submissions):
        path = ("jobs", place, "after") if request.is_batch else ("after",)
        findings += _findings(_after(one), resolved, path)
        findings += _missing(_ended_first(one), resolved, (*path[:-1], "after_any"))
        if (after := _after(one)) not in shared:
            wanted = (job for name in after if name in resolved for job in resolved[name].jobs)
            shared[after] = tuple(dict.fromkeys(wanted))
        first = _unfinished(one, resolved, store, token)
        count += (len(shared[after]) + len(first)) * (one.array or 1)
        if count > DEPENDENCIES_ALL_MAX:
            raise _too_many()
        terms = one.terms and replace(one.terms, after=shared[after])
        if first or _ended_first(one):
            terms = replace(terms or Terms(), after_any=first or UNSET)
        made.append(replace(one, terms=terms))
    if findings:
        raise validation_problem(findings, "the submission")
    notes = {
        place: note
        for place, one in enumerate(request.submissions)
        if (note := _rerun_note((*_after(one), *_ended_first(one)), resolved))
    }
    return replace(request, submissions=sized(made), rerun_notes=notes)


def _rerun_note(names: Sequence[JobId], resolved: dict[JobId, "_ResolvedName"]) -> str:
    """Return that reruns stand for jobs that failed; empty if none does."""
    found = dict.fromkeys(
        one for name in names if name in resolved for one in resolved[name].reruns
    )
    if not found:
        return ""
    pairs = [
        f"`{name}` did not succeed and was rerun: its rerun `{rerun}` counts"
        for name, rerun in found
    ]
    more = f"; and {len(pairs) - NAMED_MOST:,} more" if len(pairs) > NAMED_MOST else ""
    return "; ".join(pairs[:NAMED_MOST]) + more


def _too_many() -> Problem:
    message = f"the jobs depend on over {DEPENDENCIES_ALL_MAX:,} jobs in all"
    hint = "name fewer jobs in `after`, or submit fewer jobs per request"
    return Problem(422, Reason("too-many-jobs", sentence=message), hint)


def _after(one: Submission) -> tuple[JobId, ...]:
    return one.terms.after if one.terms is not None else ()


def _ended_first(one: Submission) -> tuple[JobId, ...]:
    return one.terms.ended_first if one.terms is not None else ()


def _unfinished(
    one: Submission, resolved: dict[JobId, "_ResolvedName"], store: Store, token: Token
) -> tuple[JobId, ...]:
    """Return the jobs that must end first: those named and, for a singleton, its namesakes."""
    named = [job for name in _ended_first(one) if name in resolved for job in resolved[name].jobs]
    if one.singleton:
        columns = select(JOBS.c.id).where(
            JOBS.c.name == one.run_spec.name,
            JOBS.c.user_name == token.name,
            JOBS.c.team == one.team,
            JOBS.c.state.not_in(ENDED),
        )
        with store.reading() as connection:
            found = connection.execute(columns.order_by(JOBS.c.number).limit(DEPENDENCIES_MAX))
            named += [JobId(job_id) for job_id in found.scalars()]
    return tuple(dict.fromkeys(named))


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
            rows = arrays.members(store, _array_name(store, name))
            if rows and (token.sees_all_teams or rows[0].team == token.team):
                found[name] = _resolved((row.id, row.state) for row in rows)
            elif (job := job_with_number(store, name, token)) is not None:
                found[name] = _resolved([job])
    return {name: _repaired(one, store, token) for name, one in found.items()}


def _array_name(store: Store, name: str) -> str:
    """Return the name of the array that a number alone means; other names as they are."""
    row = _numbered(store, name)
    return name if row is None or "[" not in row[0] else row[0].rpartition("[")[0]


def job_with_number(store: Store, text: str, token: Token) -> tuple[JobId, str] | None:
    """Return the job and its state that a number alone means, as in Slurm."""
    row = _numbered(store, text)
    if row is None or not (token.sees_all_teams or row[1] == token.team):
        return None
    return JobId(row[0]), row[2]


def _numbered(store: Store, text: str) -> tuple[str, str, str] | None:
    """Return the id, team and state of the job with a number."""
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        return None
    columns = select(JOBS.c.id, JOBS.c.team, JOBS.c.state).where(JOBS.c.number == int(text))
    with store.reading() as connection:
        row = connection.execute(columns.limit(1)).one_or_none()
    return None if row is None else (row[0], row[1], row[2])


def _repaired(one: _ResolvedName, store: Store, token: Token) -> _ResolvedName:
    """Return the jobs of a name with failed ones replaced by their latest reruns."""
    if one.failed is None:
        return one
    names = [name for name, state in one.states if state in HAS_ENDED]
    if len(names) > REPAIRED_MAX:
        return one
    jobs = dict(one.states)
    reruns: list[tuple[JobId, JobId]] = []
    for name in names:
        rerun = _rerun_of(name, store, token)
        if rerun is not None:
            reruns.append((name, rerun[0]))
            jobs = {rerun[0] if job == name else job: state for job, state in jobs.items()}
            jobs[rerun[0]] = rerun[1]
    return _resolved(jobs.items())._replace(reruns=tuple(reruns))


def _rerun_of(name: JobId, store: Store, token: Token) -> tuple[JobId, str] | None:
    """Return the latest rerun of a job, or of its reruns, that has not failed."""
    columns = select(JOBS.c.number, JOBS.c.name, JOBS.c.team).where(JOBS.c.id == name)
    with store.reading() as connection:
        first = connection.execute(columns).one_or_none()
        if first is None:
            return None
        later = (
            select(JOBS.c.id, JOBS.c.state)
            .where(JOBS.c.name == first[1], JOBS.c.team == first[2], JOBS.c.number > first[0])
            .order_by(JOBS.c.number)
            .limit(RERUNS_MAX)
        )
        rows = [(JobId(row[0]), row[1]) for row in connection.execute(later)]
    repeats, best = {str(name)}, None
    for job_id, state in rows:
        made = None if "[" in job_id else read.submission(store, job_id)
        if made is None or made.run_spec is None or made.run_spec.rerun_of not in repeats:
            continue
        repeats.add(job_id)
        if state not in HAS_ENDED:
            best = (job_id, state)
    return best


def _resolved(jobs: Iterable[tuple[JobId, str]]) -> _ResolvedName:
    each = list(jobs)
    failed = next((one for one in each if one[1] in HAS_ENDED), None)
    return _ResolvedName(each, failed)


def _missing(
    names: Sequence[JobId], resolved: dict[JobId, _ResolvedName], path: tuple[str | int, ...]
) -> Iterator[Finding]:
    for number, name in enumerate(names):
        if name not in resolved:
            yield Finding(
                code="no-such-job",
                message=f"`after_any`: there is no job with id `{name}`",
                hint="check `tenfold job list`",
                path=(*path, number),
            )


def _findings(
    after: Sequence[JobId], resolved: dict[JobId, _ResolvedName], path: tuple[str | int, ...]
) -> Iterator[Finding]:
    for number, name in enumerate(after):
        if name not in resolved:
            yield Finding(
                code="no-such-job",
                message=f"`after`: there is no job with id `{name}`",
                hint="check `tenfold job list`; if the job ended long ago, remove it from `after`",
                path=(*path, number),
            )
        elif (failed := resolved[name].failed) is not None:
            yield Finding(
                code="dependency-failed",
                message=f"`after` names job `{failed[0]}`, which {HAS_ENDED[failed[1]]}",
                hint=f"run it again: `tenfold job rerun '{failed[0]}'`; to start after its end"
                f" in any case, use `after_any` (-d afterany:{name})",
                path=(*path, number),
            )
    count = sum(len(resolved[name].jobs) for name in after if name in resolved)
    if count > DEPENDENCIES_MAX:
        message = f"`after` resolves to {count:,} jobs; the limit is {DEPENDENCIES_MAX:,}"
        yield Finding(code="wrong-value", message=message, hint="name fewer jobs", path=path)
