"""Facts, in the past tense. The journal holds nothing else.

Adding an event means adding it to `Event` and to `Fleet.apply`; a test compares the two.
`at_ms` comes first in each, so that every fact says when.

Events are stored, and so is all that they hold. msgspec drops a field that it does not know in
silence, so that a renamed one would come back as its default: stored types forbid that. Tags are
said in full, and a field with a new Python name keeps its old one by `field(name=...)`; the wire
names of all stored types are listed beside the tests that read old records.
"""

from typing import get_args

from msgspec import UNSET, Struct, UnsetType, field

from tenfold.model.acceptance import NodeTest, NodeVerdict
from tenfold.model.actions import Action
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.failures import AttemptFailure
from tenfold.model.job.job import Job, JobStatus, StopCause
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.job.submission import SubmitKey
from tenfold.model.reason import Reason
from tenfold.model.units import Millis


class NodeJoined(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="NodeJoined"):
    """A node was added to the fleet, up and empty."""

    at_ms: Millis
    node: Node


class NodeLost(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="NodeLost"):
    """A node stopped answering; what ran on it is reported by its own events."""

    at_ms: Millis
    node_id: NodeId
    cause: str = ""


class NodeReturned(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="NodeReturned"):
    """A lost or cordoned node is up and may take work again."""

    at_ms: Millis
    node_id: NodeId


class NodeCordoned(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="NodeCordoned"):
    """A node takes no new work; what runs there may end."""

    at_ms: Millis
    node_id: NodeId
    cause: Reason | UnsetType = UNSET
    """Why, where something other than a person's word was the reason; else not written."""


class NodeTested(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="NodeTested"):
    """A node was measured and held against its pool; what follows from it is a fact of its own."""

    at_ms: Millis
    node_id: NodeId
    test: NodeTest
    verdict: NodeVerdict


class NodeAccepted(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="NodeAccepted"):
    """Somebody took a node in spite of what its test gave."""

    at_ms: Millis
    node_id: NodeId
    by: str


class JobSubmitted(
    Struct,
    frozen=True,
    forbid_unknown_fields=True,
    gc=False,
    tag="JobSubmitted",
    omit_defaults=True,
):
    """A team asked for a job to be run."""

    at_ms: Millis
    job: Job
    run_spec: RunSpec | None = field(default=None, name="work")
    """What it runs, where the world is real."""
    key: SubmitKey | None = None
    """Under which key it was asked for; only the first job of a request says so."""


class JobRefused(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="JobRefused"):
    """A job that this fleet can never hold was turned away, with the reasons."""

    at_ms: Millis
    job_id: JobId
    reasons: tuple[Reason, ...]


class JobStarted(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="JobStarted"):
    """Every member of a gang is running."""

    at_ms: Millis
    job_id: JobId


class JobStopped(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="JobStopped"):
    """A running job gave back its slots unfinished; `progress_ms` of its work is saved."""

    at_ms: Millis
    job_id: JobId
    cause: StopCause
    progress_ms: Millis
    exit_code: int | UnsetType = UNSET
    """What its first member to end left behind, where the world is real; else not written."""
    failure: AttemptFailure | UnsetType = field(default=UNSET, name="mishap")
    """What went wrong, where nobody asked for the stop and the world is real."""
    ended_ms: Millis | UnsetType = UNSET
    """When its last process was gone, where that was seen only later."""


class JobEnded(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="JobEnded"):
    """A job is over, for better or worse."""

    at_ms: Millis
    job_id: JobId
    status: JobStatus = "completed"
    exit_code: int | UnsetType = UNSET
    """What its first member to fail left behind, or 0, where the world is real."""
    failure: AttemptFailure | UnsetType = field(default=UNSET, name="mishap")
    """What went wrong with its last attempt, where that failed and the world is real."""
    by: str | UnsetType = UNSET
    """Who took it back, where somebody did and is known."""
    ended_ms: Millis | UnsetType = UNSET
    """When its last process was gone, where that was seen only later."""


class JobCancelled(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="JobCancelled"):
    """The submitter took back a job that was still waiting."""

    at_ms: Millis
    job_id: JobId
    by: str | UnsetType = UNSET
    """Who did, where that is known."""


class JobResized(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="JobResized"):
    """A running job goes on with the slots that its resize ordered."""

    at_ms: Millis
    job_id: JobId


class JobIdled(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="JobIdled"):
    """A job that holds GPUs, or a session, has had nothing to do since `since_ms`."""

    at_ms: Millis
    job_id: JobId
    since_ms: Millis


class JobBusy(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="JobBusy"):
    """An idle job is in use again, or nobody can say any more that it is not."""

    at_ms: Millis
    job_id: JobId
    cause: Reason | UnsetType = UNSET
    """Why it is no longer said to idle, where nobody saw it in use; else not written."""


class ActionOrdered(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="ActionOrdered"):
    """The engine accepted a wish. Until its outcome arrives it is in flight."""

    at_ms: Millis
    action: Action


class ActionRefused(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="ActionRefused"):
    """The world could not carry out an order, which was stale or impossible by then."""

    at_ms: Millis
    action: Action
    reason: Reason
    failure: AttemptFailure | UnsetType = field(default=UNSET, name="mishap")
    """Set where a start was refused by what a node is like, and not by what was asked."""


Event = (
    NodeJoined
    | NodeLost
    | NodeReturned
    | NodeCordoned
    | NodeTested
    | NodeAccepted
    | JobSubmitted
    | JobRefused
    | JobStarted
    | JobStopped
    | JobEnded
    | JobCancelled
    | JobResized
    | JobIdled
    | JobBusy
    | ActionOrdered
    | ActionRefused
)

KIND_OF: dict[type[Event], str] = {
    kind: str(kind.__struct_config__.tag) for kind in get_args(Event)
}
"""The name of each event on the wire and in the journal; what the class is called is no matter."""

NodeEvent = NodeJoined | NodeLost | NodeReturned | NodeCordoned | NodeTested | NodeAccepted


def job_of(event: Event) -> JobId | None:
    """Return the job that a fact is about, if it is about one."""
    if isinstance(event, JobSubmitted):
        return event.job.id
    if isinstance(event, ActionOrdered | ActionRefused):
        return event.action.job_id
    return None if isinstance(event, NodeEvent) else event.job_id


def node_of(event: Event) -> NodeId | None:
    """Return the node that a fact is about, if it is about one."""
    if isinstance(event, NodeJoined):
        return event.node.id
    return event.node_id if isinstance(event, NodeEvent) else None
