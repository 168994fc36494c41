"""What read tables tell: jobs, their attempts and nodes, as they stand."""

from collections.abc import Mapping

from msgspec import Struct

from tenfold.model.acceptance import Acceptance
from tenfold.model.fleet.node import NodeState
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import JobState, JobStatus
from tenfold.model.reason import Value

_FOREMOST: tuple[JobState, ...] = (
    *("running", "starting", "stopping", "pending"),
    *("failed", "cancelled", "succeeded"),
)
"""The state of an array is the first of these that a member is in."""

STATE_OF: dict[JobStatus, JobState] = {
    "completed": "succeeded",
    "failed": "failed",
    "timeout": "failed",
    "cancelled": "cancelled",
}


class JobRow(Struct, frozen=True, kw_only=True):
    """One job as it stands."""

    id: JobId
    seq: int
    """The event that submitted it: newer jobs have larger ones."""
    number: int
    """What it was given at admission."""
    team: str
    user_name: str
    name: str
    state: JobState
    reason: str = ""
    """Why it stands where it stands, as a code; empty where there is nothing to say."""
    fields: Mapping[str, Value] = {}
    """What the reason is about."""
    sentence: str = ""
    """The reason as prose, where it was written before reasons had fields."""
    gpus_milli: int
    submitted_ms: int
    changed_ms: int
    changed_seq: int
    """The last event that changed it."""
    attempts: int = 0
    """Starts that were ordered so far."""


class AttemptRow(Struct, frozen=True, kw_only=True):
    """One start that was ordered, and what became of it."""

    job_id: JobId
    number: int
    ordered_ms: int
    started_ms: int | None = None
    ended_ms: int | None = None
    nodes: tuple[NodeId, ...] = ()
    nodes_next: tuple[NodeId, ...] | None = None
    """Where it will run once a resize that was ordered is done."""
    exit_code: int | None = None
    reason: str = ""
    """How it ended: `completed`, `preempted`, `node-lost`, the code of a refusal ..."""


class NodeRow(Struct, frozen=True, kw_only=True):
    """One node as it stands."""

    id: NodeId
    seq: int
    """The event with which it joined."""
    site: str
    pool: str
    accelerator: str
    gpus: int
    state: NodeState
    cause: str = ""
    """Why it was lost or takes no work, where that was said; a code where there is one."""
    changed_ms: int
    fields: Mapping[str, Value] = {}
    """What the cause is about, where it is a code."""
    sentence: str = ""
    """The cause as prose, where it was written before reasons had fields."""
    acceptance: Acceptance | None = None
    """How it did in its acceptance test; None where it had none."""


class KeyRow(Struct, frozen=True, kw_only=True):
    """A request that was admitted under a key."""

    team: str
    key: str
    digest: str
    number: int
    """That of the first job."""
    at_ms: int


class JobWithAttempts(Struct, frozen=True, kw_only=True):
    """A job with all its attempts, the first one first."""

    job: JobRow
    attempts: tuple[AttemptRow, ...] = ()


class ArraySummary(Struct, frozen=True, kw_only=True):
    """An array in few words."""

    first: JobRow
    """The first member that is known: all of them were handed in as one."""
    states: dict[JobState, int]
    """How many members stand in each state that has any."""
    failed: tuple[JobId, ...] = ()
    """The first of those that failed."""

    @property
    def count(self) -> int:
        """How many members are known."""
        return sum(self.states.values())

    @property
    def state(self) -> JobState:
        """Where the whole stands: it is over once all are, and succeeds if all do."""
        return next(state for state in _FOREMOST if state in self.states)


class WriterRow(Struct, frozen=True, kw_only=True):
    """One who wrote the journal; a cycle that its successor did not find closed was cut off."""

    epoch: int
    first_seq: int
    """The first event that it could write."""
    holder: str
    taken_ms: int
