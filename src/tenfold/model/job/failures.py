"""How an attempt came to an end that nobody asked for, and the node that may be at fault.

Only the live world knows this: a simulated failure has its cause from the start. It stands in
the fact that tells of the end, so that whoever judges nodes, counts crashes or times failures
reads one record.
"""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from tenfold.model.ids import JobId, NodeId
from tenfold.model.reason import Reason
from tenfold.model.units import Millis

MishapKind = Literal["exited", "silent", "out-of-memory", "start-failed", "lost", "refused"]
HARD: tuple[MishapKind, ...] = ("silent", "lost", "refused")
"""Ends that a command seldom brings about by itself."""


class Mishap(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """What went wrong with one attempt."""

    attempt: int
    kind: MishapKind
    died_ms: Millis
    """When its processes were last known to live, or when it was refused."""
    node_id: NodeId | UnsetType = UNSET
    """The node of the member that failed first, where that is known."""
    saved_ms: Millis | UnsetType = UNSET
    """When the newest checkpoint was made that the job could go on from."""
    said: str | UnsetType = UNSET
    """The same as `why` in prose, in records from before reasons had fields."""
    why: Reason | UnsetType = UNSET
    """What whoever ran it said of it; nothing where a command merely failed."""


class Failure(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A mishap as the node remembers it."""

    job_id: JobId
    attempt: int
    kind: MishapKind
    at_ms: Millis
    kin: str
    """The array that the job belongs to, or the job itself: members of an array fail alike."""
    owner: str
    """The team and the person whose job it was."""
    cleared: bool = False
    """Whether the job ran to its end elsewhere, which clears the job and not the node."""


class Crashes(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """Crashes of a job, one after another, that saved nothing new in between."""

    count: int
    saved_ms: Millis = Millis(0)
    """When the newest checkpoint was made that was known at the last of them."""
