"""Failures: how an attempt ended unexpectedly, and which node may be at fault.

Only the live world records these: a simulated failure has its cause from the start. A failure is
part of the event that reports the end, so node health, crash counts and failure metrics all read
the same record.
"""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType, field

from tenfold.model.ids import JobId, NodeId
from tenfold.model.reason import Reason
from tenfold.model.units import Millis

FailureKind = Literal["exited", "silent", "out-of-memory", "start-failed", "lost", "refused"]
LIKELY_NODE_FAULTS: tuple[FailureKind, ...] = ("silent", "lost", "refused")
"""Failures that are rarely caused by the command itself."""


class AttemptFailure(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """What went wrong in one attempt."""

    attempt: int
    kind: FailureKind
    last_alive_ms: Millis = field(name="died_ms")
    """When its processes were last known to be alive, or when the start was refused."""
    node_id: NodeId | UnsetType = UNSET
    """The node of the member that failed first, where known."""
    saved_ms: Millis | UnsetType = UNSET
    """Time of the newest checkpoint that the job could resume from."""
    message: str | UnsetType = field(default=UNSET, name="said")
    """The same as `reason`, as text, in records from before reasons had fields."""
    reason: Reason | UnsetType = field(default=UNSET, name="why")
    """What the executor reported; unset where the command just failed, or the node was lost."""


class NodeFailure(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """An attempt failure in the history of a node."""

    job_id: JobId
    attempt: int
    kind: FailureKind
    at_ms: Millis
    array_or_job: str = field(name="kin")
    """The array of the job, or the job itself: members of an array tend to fail the same way."""
    owner: str
    """The team and user of the job."""
    cleared: bool = False
    """Whether the job later completed on another node: that clears the job, not the node."""


class Crashes(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """Consecutive crashes and losses of a job without a new checkpoint in between."""

    count: int
    saved_ms: Millis = Millis(0)
    """Time of the newest checkpoint known at the last crash."""
