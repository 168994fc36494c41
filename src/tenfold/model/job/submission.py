"""A submission: one job, or an array of identical jobs.

Job files, the HTTP API and the Python client all produce the same record. It has no ids or times:
those are assigned at admission.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import Job, Shape
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.job.terms import Terms
from tenfold.model.units import Millis

ARRAY_MOST = 100_000
"""Maximum number of array members, to bound what one request writes to the journal."""
ARRAY_INDEX = "TENFOLD_ARRAY_INDEX"
"""The last variable in the environment of an array member: its index."""


ARRAY_INDEXES = "TENFOLD_ARRAY_INDEXES"
"""The indexes of all members of an array as ranges, for members with Slurm's variables."""


class Submission(Struct, frozen=True, kw_only=True):
    """One validated request."""

    team: TeamId
    shape: Shape
    run_spec: RunSpec
    user: str = ""
    priority: int = 0
    limit_ms: Millis | None = None
    terms: Terms | None = None
    array: int = 0
    """Number of array members; 0 means a single job."""
    indexes: tuple[int, ...] = ()
    """Indexes of the members, if they are not 0, 1, 2 and so on."""
    singleton: bool = False
    """Whether it waits for its user's unfinished jobs of the same name."""
    event_bytes: int = 0
    """Size of the event of each of its jobs, once it was counted."""

    @property
    def all_bytes(self) -> int:
        """Size of the events of all its jobs."""
        return self.event_bytes * (self.array or 1)

    @property
    def members(self) -> Sequence[int]:
        """The indexes of its members; none for a single job."""
        return self.indexes or range(self.array)


class SubmitKey(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """The idempotency key of a request: a repeated request returns the same jobs."""

    team: TeamId
    """The team of the caller, not of the jobs."""
    key: str
    digest: str
    """Digest of the request, so that a different request with the same key is rejected."""


class Admitted(Struct, frozen=True):
    """A job with its id and number, and what it runs."""

    job: Job
    run_spec: RunSpec


def admitted(submission: Submission, number: int, now_ms: Millis) -> list[Admitted]:
    """Return the jobs of a submission; ids are made from `number`, the number of the first.

    Numbers are never reused, so ids are unique.
    """
    base = f"{submission.run_spec.name}-{number}"
    if not submission.array:
        return [_one(submission, JobId(base), number, now_ms)]
    return [
        _one(submission, JobId(f"{base}[{member}]"), number + place, now_ms, base, member)
        for place, member in enumerate(submission.members)
    ]


def last_member(submission: Submission, number: int, now_ms: Millis) -> Admitted:
    """Return the last of the jobs that `admitted` returns, without the others."""
    base = f"{submission.run_spec.name}-{number}"
    if not submission.array:
        return _one(submission, JobId(base), number, now_ms)
    member, place = submission.members[-1], submission.array - 1
    return _one(submission, JobId(f"{base}[{member}]"), number + place, now_ms, base, member)


def names_of(submissions: Sequence[Submission], number: int) -> tuple[JobId, ...]:
    """Return the ids that `admitted` assigns to these submissions, starting at `number`."""
    names: list[JobId] = []
    for one in submissions:
        base = f"{one.run_spec.name}-{number + len(names)}"
        names += [JobId(f"{base}[{member}]") for member in one.members] or [JobId(base)]
    return tuple(names)


def _one(
    submission: Submission,
    job_id: JobId,
    number: int,
    now_ms: Millis,
    array: str = "",
    member: int = 0,
) -> Admitted:
    terms, run_spec = submission.terms, submission.run_spec
    if array:
        terms = replace(terms or Terms(), array=array)
        run_spec = replace(run_spec, env=(*run_spec.env, (ARRAY_INDEX, str(member))))
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
    return Admitted(job, run_spec)
