"""What a control plane answers, as values.

Keys that a newer control plane adds are passed over, so that an older client goes on.
Moments are ISO 8601 in UTC, as they were sent.
"""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field

JobState = Literal["pending", "starting", "running", "stopping", "succeeded", "failed", "cancelled"]
OVER: tuple[JobState, ...] = ("succeeded", "failed", "cancelled")
Role = Literal["viewer", "member", "operator", "admin"]


class Submitted(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job that will not be lost. An array has the name that its members share."""

    id: str
    name: str = ""
    team: str = ""
    state: JobState = "pending"
    count: int = 0
    """Members of an array; 0 for one job."""
    members: tuple[str, ...] = ()
    """The first of them by name."""
    notes: tuple[str, ...] = ()
    """What was asked for and will not be looked at there."""

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
    started_at: str | None = None
    ended_at: str | None = None
    nodes: tuple[str, ...] = ()
    exit_code: int | None = None
    reason: str = ""
    log_bytes_dropped: int | UnsetType = UNSET
    """Bytes of its log that are gone because it wrote too many; `UNSET` where none are."""


class Reason(Struct, frozen=True, kw_only=True):
    """Why a job stands where it stands."""

    code: str
    sentence: str


class Eta(Struct, frozen=True, kw_only=True):
    """Moments by which a waiting job starts in half, and in nine of ten, such cases."""

    p50_at: str
    p90_at: str
    basis: str = ""
    calibrated: bool = False


class Members(Struct, frozen=True, kw_only=True):
    """The members of an array, counted."""

    count: int
    states: dict[str, int] = field(default_factory=dict[str, int])
    """How many stand in each state that has any."""
    failed: tuple[str, ...] = ()
    """The first of those that failed."""


class Use(Struct, frozen=True, kw_only=True):
    """What a job that runs used, at the last look."""

    at: str | None = None
    measure: str = ""
    """`gpu` asked its devices; `cpu` stands in where they are only numbers, or it holds none."""
    share: float = 0.0
    """By `gpu` of all its devices' time; by `cpu` in CPUs."""
    gpu_memory_bytes: int | None = None
    """On its devices, where they were asked."""


class Job(Struct, frozen=True, kw_only=True):
    """One job as it stands, or an array as a whole."""

    id: str
    name: str = ""
    team: str = ""
    state: JobState
    attempts: tuple[Attempt, ...] = ()
    reason: Reason
    eta: Eta | None = None
    array: Members | UnsetType = UNSET
    """Its members, where the name is that of an array; else `UNSET`, which is not written."""
    use: Use | UnsetType = UNSET
    """What it uses, where it runs and was measured; else `UNSET`."""
    idle_since: str | UnsetType | None = UNSET
    """Since when it has used next to nothing of what it holds; else `UNSET`."""

    @property
    def is_over(self) -> bool:
        """Whether it has come to its end, and will not run again."""
        return self.state in OVER

    @property
    def exit_code(self) -> int | None:
        """What its last attempt left behind; None where there is none, or it still runs."""
        return self.attempts[-1].exit_code if self.attempts else None


class IdleJob(Struct, frozen=True, kw_only=True):
    """One job that idles."""

    id: str
    team: str = ""
    kind: str = ""
    gpus: float = 0.0
    idle_since: str | None = None
    gpu_hours_lost: float = 0.0
    use: Use | None = None


class IdleTeam(Struct, frozen=True, kw_only=True):
    """What the jobs of one team hold for nothing."""

    team: str
    jobs: int = 0
    gpus: float = 0.0
    gpu_hours_lost: float = 0.0


class Idle(Struct, frozen=True, kw_only=True):
    """Who idles now; hours are lost since each began to."""

    at: str | None = None
    gpus: float = 0.0
    gpu_hours_lost: float = 0.0
    teams: tuple[IdleTeam, ...] = ()
    jobs: tuple[IdleJob, ...] = ()


class JobPage(Struct, frozen=True, kw_only=True):
    """A page of jobs, the newest first."""

    jobs: tuple[Job, ...]
    next: int | None = None
    """What to give as `before` for the page that follows; None at the end."""


class Taken(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A wish about a job or a node that was taken, and how that stands now."""

    id: str
    state: str
    count: int = 0
    """Members of an array that it was about; 0 for one job."""


class NodesTaken(Struct, frozen=True, kw_only=True):
    """How several nodes stand after what was asked of all of them."""

    nodes: tuple[Taken, ...]


class Why(Struct, frozen=True, kw_only=True):
    """Why a job stands where it stands; of one that waits, what would let it start."""

    id: str
    state: JobState
    at: str | None = None
    reason: Reason
    why: dict[str, Any] | None = None
    """Room, holders, standing and remedies of a job that waits."""
    eta: Eta | None = None
    nodes_out: tuple["NodeOut", ...] = ()
    """Nodes that a job that waits cannot have because jobs kept failing there."""


class NodeOut(Struct, frozen=True, kw_only=True):
    """A node that is out of use, and why."""

    id: str
    code: str
    sentence: str


class NodeFigure(Struct, frozen=True, kw_only=True):
    """One rate that an acceptance test gave, beside the median of the pool."""

    name: str
    value: float | None = None
    unit: str = ""
    median: float | None = None
    deviation: float | None = None
    allowed: float | None = None
    judged: str = ""


class NodeTest(Struct, frozen=True, kw_only=True):
    """How a node did in its last acceptance test."""

    tested_at: str
    outcome: str
    """`accepted`, `refused` or `overridden`."""
    accepted_by: str = ""
    basis: str = ""
    nodes: int = 0
    code: str = ""
    sentence: str = ""
    figures: tuple[NodeFigure, ...] = ()
    unmeasured: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class CouldHold(Struct, frozen=True, kw_only=True):
    """Nodes of the kinds that could hold a job, or a member of its gang, if they were free."""

    count: int
    nodes: tuple[str, ...] = ()
    """The first of them by name."""


class DryRun(Struct, frozen=True, kw_only=True):
    """What would become of a job if it were handed in now; of an array, of its first member."""

    name: str
    team: str
    count: int = 0
    """Members of an array; 0 for one job."""
    outcome: Literal["starts", "waits", "never"]
    at: str | None = None
    nodes: tuple[str, ...] = ()
    """Where it would start, if it would start at once."""
    could_hold: CouldHold
    reason: Reason
    why: dict[str, Any] | None = None
    """Room, holders, standing and remedies, as `why` tells them of a job that waits."""
    eta: Eta | None = None
    is_brief: bool = False
    """Whether the queue was too long to try remedies or to forecast."""
    notes: tuple[str, ...] = ()
    """What is asked for and would not be looked at there."""


class Node(Struct, frozen=True, kw_only=True):
    """One node as it stands."""

    id: str
    site: str = ""
    pool: str = ""
    accelerator: str = ""
    gpus: int = 0
    state: str
    cause: str = ""
    changed_at: str | None = None
    sentence: str = ""
    test: NodeTest | None = None
    """How it did in its acceptance test; None where it had none."""


class Nodes(Struct, frozen=True, kw_only=True):
    """Every node that ever joined."""

    nodes: tuple[Node, ...]


class FleetNow(Struct, frozen=True, kw_only=True):
    """What there is and what it does, counted by state."""

    at: str | None = None
    nodes: dict[str, int] = field(default_factory=dict[str, int])
    gpus: dict[str, int] = field(default_factory=dict[str, int])
    accelerators: dict[str, int] = field(default_factory=dict[str, int])
    jobs: dict[str, int] = field(default_factory=dict[str, int])
    event: int = 0
    """The last event that is counted in."""


class Token(Struct, frozen=True, kw_only=True):
    """A token without what makes it one."""

    id: str
    name: str
    team: str
    role: str
    created_at: str | None = None
    expires_at: str | None = None
    revoked_at: str | None = None
    last_used_on: str | None = None


class NewToken(Struct, frozen=True, kw_only=True):
    """A token, the one time that it is shown."""

    token: str
    record: Token


class Tokens(Struct, frozen=True, kw_only=True):
    """Every token, the oldest first."""

    tokens: tuple[Token, ...]


class JournalEvent(Struct, frozen=True, kw_only=True):
    """One fact of the journal."""

    seq: int
    kind: str
    """Its name in the past tense: `JobStarted`."""
    body: dict[str, Any]
    """Its fields, `at_ms` first."""
