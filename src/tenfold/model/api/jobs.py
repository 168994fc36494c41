"""Jobs: submit them, look at them, cancel them, and ask why one waits."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from tenfold.model.api.nodes import CordonedNode
from tenfold.model.job.job import ENDED, JobState
from tenfold.model.job.usage import Measure

PAGE_MAX = 1_000
"""Jobs in one page of a listing."""
Outcome = Literal["starts", "waits", "never"]


class Submitted(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job that will not be lost. An array has the name that its members share."""

    id: str
    name: str
    team: str
    state: JobState
    count: int = 0
    """Members of an array; 0 for one job."""
    members: tuple[str, ...] = ()
    """The first of them by name."""
    notes: tuple[str, ...] = ()
    """What was asked for and that the policy ignores."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Every job by its name: the one, or all members of the array."""
        if not self.count:
            return (self.id,)
        return tuple(f"{self.id}[{member}]" for member in range(self.count))


class Batch(Struct, frozen=True, kw_only=True):
    """What became of several submissions, in their order."""

    jobs: tuple[Submitted, ...]


class Attempt(Struct, frozen=True, kw_only=True):
    """One start that was ordered, and what became of it."""

    number: int
    started_at: str | None
    ended_at: str | None
    nodes: tuple[str, ...]
    exit_code: int | None
    reason: str
    log_bytes_dropped: int | UnsetType = UNSET
    """Bytes of its log that are gone because it wrote too many; `UNSET` where none are."""


class Reason(Struct, frozen=True, kw_only=True):
    """Why a job stands where it stands, in words."""

    code: str
    sentence: str


class Eta(Struct, frozen=True, kw_only=True):
    """Times by which a waiting job starts in half, and in nine of ten, such cases."""

    p50_at: str
    p90_at: str
    basis: str
    calibrated: bool


class Members(Struct, frozen=True, kw_only=True):
    """The members of an array, counted."""

    count: int
    states: dict[str, int]
    """How many are in each state that has any."""
    failed: tuple[str, ...]
    """The first of those that failed."""


class Use(Struct, frozen=True, kw_only=True):
    """What a running job used when it was last measured."""

    at: str | None
    measure: Measure
    """`gpu` asked its devices; `cpu` stands in where they are only numbers, or it holds none."""
    share: float
    """By `gpu` of all its devices' time; by `cpu` in CPUs."""
    gpu_memory_bytes: int | None
    """On its devices, where they were asked."""


class Job(Struct, frozen=True, kw_only=True):
    """One job as it stands, or an array as a whole."""

    id: str
    name: str
    team: str
    state: JobState
    attempts: tuple[Attempt, ...]
    reason: Reason
    eta: Eta | None = None
    """When a waiting job will start, where that was asked for or is reserved."""
    array: Members | UnsetType = UNSET
    """Its members, where the name is that of an array; else `UNSET`, which is not written."""
    use: Use | UnsetType = UNSET
    """What it uses, where it runs and was measured; else `UNSET`."""
    idle_since: str | UnsetType | None = UNSET
    """Since when it has used next to nothing of what it holds; else `UNSET`."""

    @property
    def is_over(self) -> bool:
        """Whether it has ended and will not run again."""
        return self.state in ENDED

    @property
    def exit_code(self) -> int | None:
        """The exit code of its last attempt; None where there is none, or it still runs."""
        return self.attempts[-1].exit_code if self.attempts else None


class JobPage(Struct, frozen=True, kw_only=True):
    """A page of jobs, the newest first."""

    jobs: tuple[Job, ...]
    next: int | None
    """What to give as `before` for the page that follows; None at the end."""


class CancelledJob(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job after it was cancelled."""

    id: str
    state: str
    count: int = 0
    """Members of an array that were cancelled; 0 for one job."""


class Why(Struct, frozen=True, kw_only=True):
    """Why a job stands where it stands; of one that waits, what would let it start."""

    id: str
    state: JobState
    at: str | None
    reason: Reason
    why: dict[str, Any] | None
    """Room, holders, standing and remedies of a job that waits."""
    eta: Eta | None
    is_brief: bool
    """Whether the queue was too long to try remedies or to forecast."""
    nodes_out: tuple[CordonedNode, ...] = ()
    """Nodes that a waiting job cannot have because jobs kept failing there."""


class CouldHold(Struct, frozen=True, kw_only=True):
    """Nodes of the kinds that could hold a job, or a member of its gang, if they were free."""

    count: int = 0
    nodes: tuple[str, ...] = ()
    """The first of them by name."""


class DryRun(Struct, frozen=True, kw_only=True):
    """What would become of a job if it were submitted now; of an array, of its first member."""

    name: str
    team: str
    count: int
    """Members of an array; 0 for one job."""
    outcome: Outcome
    """Whether it `starts` at once, `waits`, or will `never` start."""
    at: str | None
    nodes: tuple[str, ...]
    """Where it would start, if it would start at once."""
    could_hold: CouldHold
    reason: Reason
    why: dict[str, Any]
    """Room, holders, standing and remedies, as `Why` has them of a job that waits."""
    eta: Eta | None
    is_brief: bool
    """Whether the queue was too long to try remedies or to forecast."""
    notes: tuple[str, ...] = ()
    """What is asked for and that the policy ignores."""
