"""What somebody hands in to be run: one job, or an array of jobs alike.

The same record comes from a job file, from the HTTP API and from the Python client. It says
what is wanted; ids and times are given at admission.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import Job, Shape
from tenfold.model.job.terms import Terms
from tenfold.model.job.work import Work
from tenfold.model.units import Millis

ARRAY_MOST = 100_000
"""Members of an array, at most: what one request may ask the journal to hold."""


class Submission(Struct, frozen=True, kw_only=True):
    """One request, checked."""

    team: TeamId
    shape: Shape
    work: Work
    user: str = ""
    priority: int = 0
    limit_ms: Millis | None = None
    terms: Terms | None = None
    array: int = 0
    """How many alike; 0 means one job that is no array."""


class SubmitKey(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """What names one request: asked again under it, the same jobs are meant and none is new."""

    team: TeamId
    """Whose key it is: that of whoever asked, not that of the jobs."""
    key: str
    digest: str
    """Of what was asked, so that another request under the same key is not taken for this one."""


class Admitted(Struct, frozen=True):
    """A job with its name and number, and what it runs."""

    job: Job
    work: Work


def admitted(submission: Submission, number: int, now_ms: Millis) -> list[Admitted]:
    """Return the jobs of a submission; `number` is that of the first, and names them.

    Numbers are never given twice, so neither are names.
    """
    base = f"{submission.work.name}-{number}"
    if not submission.array:
        return [_one(submission, JobId(base), number, now_ms)]
    return [
        _one(submission, JobId(f"{base}[{member}]"), number + member, now_ms, base, member)
        for member in range(submission.array)
    ]


def names_of(submissions: Sequence[Submission], number: int) -> tuple[JobId, ...]:
    """Return the names that `admitted` gives, one submission after another, from `number` on."""
    names: list[JobId] = []
    for one in submissions:
        base = f"{one.work.name}-{number + len(names)}"
        names += [JobId(f"{base}[{member}]") for member in range(one.array)] or [JobId(base)]
    return tuple(names)


def _one(
    submission: Submission,
    job_id: JobId,
    number: int,
    now_ms: Millis,
    array: str = "",
    member: int = 0,
) -> Admitted:
    terms, work = submission.terms, submission.work
    if array:
        terms = replace(terms or Terms(), array=array)
        work = replace(work, env=(*work.env, ("TENFOLD_ARRAY_INDEX", str(member))))
    job = Job(
        id=job_id,
        shape=submission.shape,
        submitted_ms=now_ms,
        seq=number,
        team=submission.team,
        user=submission.user,
        priority=submission.priority,
        limit_ms=submission.limit_ms,
        terms=terms,
    )
    return Admitted(job, work)
