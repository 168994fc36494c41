"""Rows of the read tables: the current state of jobs, attempts and nodes."""

from collections.abc import Mapping

from msgspec import Struct

from tenfold.model.acceptance import Acceptance
from tenfold.model.fleet.node import RecordedState
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import JobState, JobStatus
from tenfold.model.reason import Value

_FOREMOST: tuple[JobState, ...] = (
    *("running", "starting", "stopping", "pending"),
    *("failed", "cancelled", "succeeded"),
)
"""The state of an array is the first of these that any member is in."""

STATE_OF: dict[JobStatus, JobState] = {
    "completed": "succeeded",
    "failed": "failed",
    "timeout": "failed",
    "cancelled": "cancelled",
}


class JobRow(Struct, frozen=True, kw_only=True):
    """The current state of one job."""

    id: JobId
    seq: int
    """The event that submitted it: increases with submission order."""
    number: int
    """The number assigned at admission."""
    team: str
    user_name: str
    name: str
    state: JobState
    reason: str = ""
    """Code of the reason for its state; empty if there is none."""
    fields: Mapping[str, Value] = {}
    """Fields of the reason."""
    sentence: str = ""
    """The reason as text, in rows from before reasons had fields."""
    gpus_milli: int
    submitted_ms: int
    changed_ms: int
    changed_seq: int
    """The last event that changed it."""
    attempts: int = 0
    """Starts ordered so far."""


class AttemptRow(Struct, frozen=True, kw_only=True):
    """One ordered start, and its outcome."""

    job_id: JobId
    number: int
    ordered_ms: int
    started_ms: int | None = None
    ended_ms: int | None = None
    nodes: tuple[NodeId, ...] = ()
    nodes_next: tuple[NodeId, ...] | None = None
    """Its nodes after a resize that is in progress."""
    exit_code: int | None = None
    reason: str = ""
    """How it ended: `completed`, `preempted`, `node-lost`, the code of a refusal ..."""


class RunTime(Struct, frozen=True):
    """How long the attempts of a job ran on one set of nodes."""

    nodes: int
    run_ms: int


class NodeRow(Struct, frozen=True, kw_only=True):
    """The current state of one node."""

    id: NodeId
    seq: int
    """The event that added it."""
    site: str
    pool: str
    accelerator: str
    gpus: int
    state: RecordedState
    cause: str = ""
    """Why it is down or cordoned, where known; usually a code."""
    changed_ms: int
    fields: Mapping[str, Value] = {}
    """Fields of the cause, where it is a code."""
    sentence: str = ""
    """The cause as text, in rows from before reasons had fields."""
    acceptance: Acceptance | None = None
    """Result of its acceptance test; None if it was not tested."""


class KeyRow(Struct, frozen=True, kw_only=True):
    """An admitted request with an idempotency key."""

    team: str
    key: str
    digest: str
    number: int
    """Number of the first job."""
    at_ms: int


class JobWithAttempts(Struct, frozen=True, kw_only=True):
    """A job with some of its attempts, usually the latest, oldest first."""

    job: JobRow
    attempts: tuple[AttemptRow, ...] = ()


class ArraySummary(Struct, frozen=True, kw_only=True):
    """Summary of an array."""

    first: JobRow
    """The first known member: all were submitted together."""
    states: dict[JobState, int]
    """Number of members in each state that has any."""
    failed: tuple[JobId, ...] = ()
    """The first failed members."""

    @property
    def count(self) -> int:
        """Number of known members."""
        return sum(self.states.values())

    @property
    def state(self) -> JobState:
        """State of the array: it ends when all members end, and succeeds if all do."""
        return next(state for state in _FOREMOST if state in self.states)


class WriterRow(Struct, frozen=True, kw_only=True):
    """One writer of the journal; a cycle that its successor found open was cut off."""

    epoch: int
    first_seq: int
    """The first event it could write."""
    holder: str
    taken_ms: int
