"""Jobs: submit, show and cancel them, and explain why one is pending."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from tenfold.model.api.nodes import CordonedNode
from tenfold.model.job.array_spec import read_array
from tenfold.model.job.job import ENDED, JobState
from tenfold.model.job.origin import Origin
from tenfold.model.job.usage import Measure

PAGE_MAX = 1_000
"""Jobs per page, and attempts per page of one job."""
ATTEMPTS_SHOWN = 20
"""Latest attempts of a job that is shown, unless more are requested."""
ATTEMPTS_LISTED = 5
"""Latest attempts of each job of a list."""
Outcome = Literal["starts", "waits", "never"]


class Submitted(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job that is on disk. An array has the id that its members share."""

    id: str
    name: str
    team: str
    state: JobState
    count: int = 0
    """Members of an array; 0 for a single job."""
    members: tuple[str, ...] = ()
    """The ids of the first members."""
    indexes: str = ""
    """Indexes of the members as ranges, if they are not 0, 1, 2 and so on."""
    notes: tuple[str, ...] = ()
    """Keys of the job that the policy ignores, and dependencies that a rerun leaves out."""

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all jobs: the one, or all members of the array."""
        if not self.count:
            return (self.id,)
        members = read_array(self.indexes, self.count).indexes if self.indexes else ()
        return tuple(f"{self.id}[{member}]" for member in members or range(self.count))


class Batch(Struct, frozen=True, kw_only=True):
    """The results of several submissions, in order."""

    jobs: tuple[Submitted, ...]


class Attempt(Struct, frozen=True, kw_only=True):
    """One attempt to run a job."""

    number: int
    started_at: str | None
    ended_at: str | None
    nodes: tuple[str, ...]
    exit_code: int | None
    reason: str
    log_bytes_dropped: int | UnsetType = UNSET
    """Bytes dropped from its log because it wrote too many; `UNSET` if none."""
    failed_member: int | UnsetType = UNSET
    """The process of a gang that failed first; `UNSET` if none did or the job has one process."""


class Reason(Struct, frozen=True, kw_only=True):
    """Why a job is in its state."""

    code: str
    sentence: str


class Eta(Struct, frozen=True, kw_only=True):
    """Forecast start: half of such jobs start by `p50_at`, nine of ten by `p90_at`."""

    p50_at: str
    p90_at: str | None
    """None if it is not known."""
    basis: str
    calibrated: bool
    error_factor: float | None = None
    """How far P50 was off in the median of the latest starts; None if too few were checked."""


class Members(Struct, frozen=True, kw_only=True):
    """The members of an array, counted."""

    count: int
    states: dict[str, int]
    """Members by state; states without members are left out."""
    failed: tuple[str, ...]
    """The first members that failed."""


class Use(Struct, frozen=True, kw_only=True):
    """Usage of a running job in the last sample."""

    at: str | None
    measure: Measure
    """`gpu`: read from its GPUs. `cpu`: used instead if GPUs are virtual or it has none."""
    share: float
    """With `gpu`, the share of its GPUs' time; with `cpu`, the number of CPUs."""
    gpu_memory_bytes: int | None
    """Memory used on its GPUs; None if they were not read."""


class Requested(Struct, frozen=True, kw_only=True):
    """What a job runs and what it requests; CPUs and memory are those of all its nodes."""

    command: tuple[str, ...] = ()
    """Empty if the journal no longer has the submission."""
    workdir: str = ""
    """Its working directory on the node; empty if it is not known."""
    image: str = ""
    env: tuple[str, ...] = ()
    """Names of the variables that the job sets, without their values."""
    origin: Origin | None = None
    """Where it was submitted from, and the code there; `diff` only for members of its team."""
    gpus_per_node: int = 0
    """0 if any number per node will do."""
    accelerators: tuple[str, ...] = ()
    """Acceptable accelerator types; empty means any."""
    cpus: float = 0.0
    memory_gib: float = 0.0
    memory_limit_of: str | UnsetType = UNSET
    """Whether its memory limits the `job` or each `process`; `UNSET` if not known, or none."""
    time_limit_s: float | None = None
    grace_s: float | None = None
    priority: int = 0
    preemptible: bool = True
    kind: str = "batch"
    after: tuple[str, ...] = ()
    """Jobs that must succeed first."""
    after_any: tuple[str, ...] | UnsetType = UNSET
    """Jobs that must end first; `UNSET` if there are none."""
    rerun_of: str | UnsetType = UNSET
    """The job that it repeats; `UNSET` if it is no rerun."""
    array_most: int | UnsetType = UNSET
    """How many members of its array run at once; `UNSET` if all may."""


class Job(Struct, frozen=True, kw_only=True):
    """One job, or an array as a whole."""

    id: str
    name: str
    team: str
    state: JobState
    attempts: tuple[Attempt, ...]
    """The latest attempts, oldest first."""
    reason: Reason
    eta: Eta | None = None
    """When a pending job will start, if requested or reserved."""
    eta_unknown: str | UnsetType = UNSET
    """Why there is no forecast, where one was requested; otherwise `UNSET`."""
    array: Members | UnsetType = UNSET
    """Its members if this is an array; otherwise `UNSET`, which is not written."""
    use: Use | UnsetType = UNSET
    """Its usage, if it is running and was sampled; otherwise `UNSET`."""
    idle_since: str | UnsetType | None = UNSET
    """Since when it has hardly used what it holds; otherwise `UNSET`."""
    attempts_total: int | UnsetType = UNSET
    """Number of attempts, if `attempts` does not have all of them; otherwise `UNSET`."""
    attempts_next: int | UnsetType = UNSET
    """Pass this as `attempts_before` for earlier attempts; `UNSET` if there are none."""
    user: str | UnsetType = UNSET
    """The name of the token that submitted it."""
    gpus: float | UnsetType = UNSET
    """GPUs that it requests in all."""
    submitted_at: str | UnsetType | None = UNSET
    elapsed_s: float | UnsetType = UNSET
    """How long its latest attempt has run, or ran; `UNSET` if it has not started."""
    service: str | UnsetType = UNSET
    """The service that it is a replica of, while it has not ended."""
    gpu_hours: float | UnsetType = UNSET
    """GPU-hours of all its attempts, where a single job is shown."""
    requested: Requested | UnsetType = UNSET
    """Its command, resources and limits, where a single job is shown."""

    @property
    def is_over(self) -> bool:
        """Whether it has ended and will not run again."""
        return self.state in ENDED

    @property
    def attempt_count(self) -> int:
        """The number of its attempts, including those that are not in `attempts`."""
        return len(self.attempts) if self.attempts_total is UNSET else self.attempts_total

    @property
    def exit_code(self) -> int | None:
        """The exit code of its last attempt; None if there is none, or it is running."""
        return self.attempts[-1].exit_code if self.attempts else None


class JobPage(Struct, frozen=True, kw_only=True):
    """A page of jobs, newest first."""

    jobs: tuple[Job, ...]
    next: int | None
    """Pass this as `before` for the next page; None at the end."""
    total: int | UnsetType = UNSET
    """How many jobs match, on all pages, up to 1,000,000; `UNSET` unless `count` was set."""
    at: str | UnsetType | None = UNSET
    """The time of this response, with `total`."""


class CancelledJob(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job after it was cancelled."""

    id: str
    state: str
    count: int = 0
    """Members of an array that were cancelled; 0 for a single job."""


class ReleasedJob(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A held job after it was released."""

    id: str
    state: str
    count: int = 0
    """Members of an array that were released; 0 for a single job."""


class HistoryEvent(Struct, frozen=True, kw_only=True):
    """One thing that happened to a job, and why."""

    at: str
    event: str
    reason: Reason
    nodes: tuple[str, ...] = ()


class Why(Struct, frozen=True, kw_only=True):
    """Why a job is in its state and, if it is pending, what would start it."""

    id: str
    state: JobState
    at: str | None
    reason: Reason
    why: dict[str, Any] | None
    """Capacity, holders, order and fixes of a pending job."""
    eta: Eta | None
    is_brief: bool
    """Whether the queue was too long to search for fixes or to forecast."""
    nodes_out: tuple[CordonedNode, ...] = ()
    """Nodes a pending job cannot use because they were cordoned for failing jobs."""
    eta_unknown: str | UnsetType = UNSET
    """Why there is no forecast, where one was requested; otherwise `UNSET`."""
    history: tuple[HistoryEvent, ...] | UnsetType = UNSET
    """What happened to a job that is not pending, in order, and why."""
    stopped: str | UnsetType = UNSET
    """Why the last attempt of a pending job was stopped."""
    stopped_at: str | UnsetType = UNSET


class CouldHold(Struct, frozen=True, kw_only=True):
    """Nodes that could hold the job, or a member of its gang, if they were free."""

    count: int = 0
    nodes: tuple[str, ...] = ()
    """The first of them by name."""


class DryRun(Struct, frozen=True, kw_only=True):
    """What would happen to a job if it were submitted now; for an array, to its first member."""

    name: str
    team: str
    count: int
    """Members of an array; 0 for a single job."""
    outcome: Outcome
    """Whether it `starts` now, `waits`, or can `never` start."""
    at: str | None
    nodes: tuple[str, ...]
    """Where it would start, if it would start now."""
    could_hold: CouldHold
    reason: Reason
    why: dict[str, Any]
    """Capacity, holders, order and fixes, as in `Why`."""
    eta: Eta | None
    is_brief: bool
    """Whether the queue was too long to search for fixes or to forecast."""
    notes: tuple[str, ...] = ()
    """Keys of the job that the policy ignores."""
    eta_unknown: str | UnsetType = UNSET
    """Why there is no forecast, where one was requested; otherwise `UNSET`."""
