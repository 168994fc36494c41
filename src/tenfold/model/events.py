"""Events, in the past tense. The journal contains nothing else.

A new event must be added to `Event` and to `Fleet.apply`; a test compares the two. `at_ms` comes
first in each, so every event has a time.

Events and everything they contain are stored. msgspec silently drops unknown fields, so a renamed
field would come back as its default: stored types forbid unknown fields. Tags are spelled out, and
a field with a new Python name keeps its wire name by `field(name=...)`; the wire names of all
stored types are listed next to the tests that read old records.
"""

from typing import get_args

from msgspec import UNSET, Struct, UnsetType, field

from tenfold.model.acceptance import NodeTest, NodeVerdict
from tenfold.model.actions import Action
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.failures import AttemptFailure
from tenfold.model.job.job import Job, JobStatus, StopCause
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.job.submission import SubmitKey
from tenfold.model.reason import Reason
from tenfold.model.registry import ModelVersion, Stage
from tenfold.model.service.spec import ServiceSpec
from tenfold.model.units import Millis


class NodeJoined(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="NodeJoined"):
    """A node joined the fleet, up and empty."""

    at_ms: Millis
    node: Node


class NodeLost(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="NodeLost"):
    """A node stopped responding; the jobs on it have their own events."""

    at_ms: Millis
    node_id: NodeId
    cause: str = ""


class NodeReturned(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="NodeReturned"):
    """A lost or cordoned node is up and schedulable again."""

    at_ms: Millis
    node_id: NodeId


class NodeCordoned(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="NodeCordoned"):
    """A node was cordoned: no new jobs start there; running ones may finish."""

    at_ms: Millis
    node_id: NodeId
    cause: Reason | UnsetType = UNSET
    """The reason, unless a user cordoned it without one."""


class NodeLeft(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="NodeLeft"):
    """An empty node left the fleet; if it joins again, it is a new node of this name."""

    at_ms: Millis
    node_id: NodeId
    by: str | UnsetType = UNSET
    """The user who asked, where known."""


class NodeTested(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="NodeTested"):
    """A node was tested and compared with its pool; the consequences are separate events."""

    at_ms: Millis
    node_id: NodeId
    test: NodeTest
    verdict: NodeVerdict


class NodeAccepted(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="NodeAccepted"):
    """A user accepted a node that failed its test."""

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
    """A job was submitted."""

    at_ms: Millis
    job: Job
    run_spec: RunSpec | None = field(default=None, name="work")
    """What it runs, in the live world."""
    key: SubmitKey | None = None
    """The idempotency key of the request, on its first job only."""


class JobRefused(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="JobRefused"):
    """A job that can never fit this fleet was rejected, with the reasons."""

    at_ms: Millis
    job_id: JobId
    reasons: tuple[Reason, ...]


class JobStarted(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="JobStarted"):
    """All members of a gang are running."""

    at_ms: Millis
    job_id: JobId


class JobStopped(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="JobStopped"):
    """A running job released its slots unfinished; `progress_ms` of its work is saved."""

    at_ms: Millis
    job_id: JobId
    cause: StopCause
    progress_ms: Millis
    exit_code: int | UnsetType = UNSET
    """Exit code of the first member to exit, in the live world."""
    failure: AttemptFailure | UnsetType = field(default=UNSET, name="mishap")
    """What went wrong, if the stop was not requested, in the live world."""
    ended_ms: Millis | UnsetType = UNSET
    """When its last process exited, if that was noticed later."""


class JobEnded(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="JobEnded"):
    """A job ended."""

    at_ms: Millis
    job_id: JobId
    status: JobStatus = "completed"
    exit_code: int | UnsetType = UNSET
    """Exit code of the first member to fail, or 0, in the live world."""
    failure: AttemptFailure | UnsetType = field(default=UNSET, name="mishap")
    """What went wrong in its last attempt, if it failed, in the live world."""
    by: str | UnsetType = UNSET
    """The user who cancelled it, where known."""
    ended_ms: Millis | UnsetType = UNSET
    """When its last process exited, if that was noticed later."""


class JobCancelled(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="JobCancelled"):
    """A pending job was cancelled."""

    at_ms: Millis
    job_id: JobId
    by: str | UnsetType = UNSET
    """The user who cancelled it, where known."""


class JobHeld(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="JobHeld"):
    """A pending job is held: no policy sees it until it is released or cancelled."""

    at_ms: Millis
    job_id: JobId
    reason: Reason


class JobReleased(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="JobReleased"):
    """A held job is pending again, as if it had just been submitted."""

    at_ms: Millis
    job_id: JobId
    by: str | UnsetType = UNSET
    """The user who released it, where known."""


class JobChanged(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="JobChanged"):
    """A pending job was changed: its request, limit, partition or priority."""

    at_ms: Millis
    job: Job
    """The job as it is now; id and time of submission stay."""


class JobCancelRequested(
    Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="JobCancelRequested"
):
    """The cancellation of a job with an attempt was accepted; the attempt is being stopped."""

    at_ms: Millis
    job_id: JobId
    by: str | UnsetType = UNSET
    """The user who requested it, where known."""


class JobResized(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="JobResized"):
    """A running job continues on the slots of its resize."""

    at_ms: Millis
    job_id: JobId


class JobIdled(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="JobIdled"):
    """A job that holds GPUs, or a session, has been idle since `since_ms`."""

    at_ms: Millis
    job_id: JobId
    since_ms: Millis


class JobBusy(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="JobBusy"):
    """An idle job is active again, or its activity is no longer measured."""

    at_ms: Millis
    job_id: JobId
    cause: Reason | UnsetType = UNSET
    """Why it no longer counts as idle, if no activity was measured."""


class ModelRegistered(
    Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="ModelRegistered"
):
    """A version of a model was registered."""

    at_ms: Millis
    version: ModelVersion


class ModelAliasMoved(
    Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="ModelAliasMoved"
):
    """An alias of a model names another version."""

    at_ms: Millis
    team: TeamId
    model: str
    alias: str
    number: int
    """The version; 0 if the alias was deleted."""
    number_before: int
    by: str


class ModelStaged(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="ModelStaged"):
    """A version of a model is in another stage."""

    at_ms: Millis
    team: TeamId
    model: str
    number: int
    stage: Stage
    stage_before: Stage
    by: str


class ModelVersionRemoved(
    Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="ModelVersionRemoved"
):
    """A version of a model can no longer be used; its number is not assigned again."""

    at_ms: Millis
    team: TeamId
    model: str
    number: int
    by: str


class ActionOrdered(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="ActionOrdered"):
    """The engine ordered an action. It is in flight until its outcome arrives."""

    at_ms: Millis
    action: Action


class ActionRefused(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="ActionRefused"):
    """An order could not be carried out because it was stale or impossible."""

    at_ms: Millis
    action: Action
    reason: Reason
    failure: AttemptFailure | UnsetType = field(default=UNSET, name="mishap")
    """Set if a start was refused because of the node, not because of the request."""


class ServiceDeployed(
    Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="ServiceDeployed"
):
    """A service was deployed: a new one, a new revision, or only other settings."""

    at_ms: Millis
    service: str
    team: TeamId
    revision: str
    """The current revision if nothing that a replica runs has changed."""
    spec: ServiceSpec
    job: Job
    """Of every replica, but for its id, its number and its port."""
    run_spec: RunSpec = field(name="work")
    by: str | UnsetType = UNSET
    """The user who deployed it, where known."""


class ServiceLimitsSet(
    Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="ServiceLimitsSet"
):
    """A user set how many replicas a service has at least and at most."""

    at_ms: Millis
    service: str
    team: TeamId
    replicas_min: int
    replicas_max: int
    by: str | UnsetType = UNSET


class ServiceScaled(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="ServiceScaled"):
    """The number of replicas that a service needs has changed."""

    at_ms: Millis
    service: str
    team: TeamId
    target: int
    reason: Reason


class ReplicaReady(Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="ReplicaReady"):
    """A replica answers its probe, and gets requests."""

    at_ms: Millis
    job_id: JobId
    service: str
    url: str


class ReplicaUnready(
    Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="ReplicaUnready"
):
    """A replica does not answer its probe any more, and gets no requests."""

    at_ms: Millis
    job_id: JobId
    service: str
    reason: Reason


class ReplicaDrainStarted(
    Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="ReplicaDrainStarted"
):
    """A replica gets no new requests, and is stopped once it has finished those it has."""

    at_ms: Millis
    job_id: JobId
    service: str
    reason: Reason
    has_failed: bool = False
    """Whether it is replaced because it did not answer."""


class RolloutAdvanced(
    Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="RolloutAdvanced"
):
    """A revision that is being rolled out gets another share of the requests."""

    at_ms: Millis
    service: str
    team: TeamId
    revision: str
    weight: float
    """In percent; at 100 it is promoted once enough of its replicas are ready."""
    by: str | UnsetType = UNSET
    """The user who set the share; unset if it was the next step."""


class ServicePromoted(
    Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="ServicePromoted"
):
    """A revision has all requests; the replicas of the one before drain."""

    at_ms: Millis
    service: str
    team: TeamId
    revision: str


class ServiceRolledBack(
    Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="ServiceRolledBack"
):
    """A revision loses its requests to another one."""

    at_ms: Millis
    service: str
    team: TeamId
    revision: str
    """The revision that loses them."""
    to: str
    reason: Reason
    by: str | UnsetType = UNSET
    """The user who rolled it back; unset if it was a rule."""


class ServiceRemoved(
    Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="ServiceRemoved"
):
    """A service is being removed: its replicas drain."""

    at_ms: Millis
    service: str
    team: TeamId
    by: str | UnsetType = UNSET


Event = (
    NodeJoined
    | NodeLost
    | NodeReturned
    | NodeCordoned
    | NodeLeft
    | NodeTested
    | NodeAccepted
    | JobSubmitted
    | JobRefused
    | JobStarted
    | JobStopped
    | JobEnded
    | JobCancelled
    | JobCancelRequested
    | JobResized
    | JobIdled
    | JobBusy
    | JobHeld
    | JobReleased
    | JobChanged
    | ModelRegistered
    | ModelAliasMoved
    | ModelStaged
    | ModelVersionRemoved
    | ActionOrdered
    | ActionRefused
    | ServiceDeployed
    | ServiceLimitsSet
    | ServiceScaled
    | ReplicaReady
    | ReplicaUnready
    | ReplicaDrainStarted
    | RolloutAdvanced
    | ServicePromoted
    | ServiceRolledBack
    | ServiceRemoved
)

KIND_OF: dict[type[Event], str] = {
    kind: str(kind.__struct_config__.tag) for kind in get_args(Event)
}
"""The name of each event on the wire and in the journal, independent of the class name."""

ModelEvent = ModelRegistered | ModelAliasMoved | ModelStaged | ModelVersionRemoved
NodeEvent = (
    NodeJoined | NodeLost | NodeReturned | NodeCordoned | NodeLeft | NodeTested | NodeAccepted
)
ServiceEvent = (
    ServiceDeployed
    | ServiceLimitsSet
    | ServiceScaled
    | RolloutAdvanced
    | ServicePromoted
    | ServiceRolledBack
    | ServiceRemoved
)
"""Events of a whole service; those of one replica are about its job."""
ReplicaEvent = ReplicaReady | ReplicaUnready | ReplicaDrainStarted


def job_of(event: Event) -> JobId | None:
    """Return the job that an event is about, if any."""
    if isinstance(event, JobSubmitted | JobChanged):
        return event.job.id
    if isinstance(event, ActionOrdered | ActionRefused):
        return event.action.job_id
    return None if isinstance(event, NodeEvent | ServiceEvent | ModelEvent) else event.job_id


def node_of(event: Event) -> NodeId | None:
    """Return the node that an event is about, if any."""
    if isinstance(event, NodeJoined):
        return event.node.id
    return event.node_id if isinstance(event, NodeEvent) else None


def service_of(event: Event) -> str | None:
    """Return the service that an event is about, if it is about one or about its replica."""
    if isinstance(event, JobSubmitted):
        terms = event.job.terms
        return None if terms is None or terms.service is UNSET else terms.service.service
    return event.service if isinstance(event, ServiceEvent | ReplicaEvent) else None


def team_of_model(event: ModelEvent) -> TeamId:
    """Return the team whose model an event is about."""
    return event.version.team if isinstance(event, ModelRegistered) else event.team
