"""The inbox: requests to the loop, and replies that wait for the disk.

A caller adds a request and gets a reply once the journal has it: not before, because a reply is a
commitment, and always, because a storage failure is also replied. Requests come from many threads;
only the loop takes them.
"""

import os
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock
from typing import Literal

from msgspec import Struct

from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.job import Job
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.job.submission import Submission, SubmitKey
from tenfold.model.reason import Reason
from tenfold.model.registry import ModelVersion, Stage
from tenfold.model.service.spec import ServiceSpec
from tenfold.model.service.state import ServiceState
from tenfold.model.service.step import ServiceStep
from tenfold.model.units import Millis


class Submit(Struct, frozen=True):
    """Submit these jobs, all or none."""

    submissions: tuple[Submission, ...]
    key: SubmitKey | None = None
    """Idempotency key; a repeated request gets the same reply."""


class Cancel(Struct, frozen=True):
    """Cancel a pending or running job; for an array, all unfinished members."""

    job_id: JobId
    members: tuple[JobId, ...] = ()
    """Members of an array; empty for one job."""
    by: str = ""
    """The user who asked."""


class Release(Struct, frozen=True):
    """Make a held job pending again; for an array, all members that are held."""

    job_id: JobId
    members: tuple[JobId, ...] = ()
    """Members of an array; empty for one job."""
    by: str = ""
    """The user who asked."""


class JoinNodes(Struct, frozen=True):
    """Add nodes to the fleet."""

    nodes: tuple[Node, ...]
    is_tested: bool = False
    """Whether each is tested first."""
    has_left_ones: bool = True
    """Whether nodes that left join again."""


class LeaveNodes(Struct, frozen=True):
    """Take nodes out of the fleet, all or none: each once no job runs there."""

    nodes: tuple[NodeId, ...]
    grace_ms: Millis | None = None
    """After this, jobs that still run there are stopped and requeued; None: never."""
    by: str = ""
    """The user who asked."""


class RetestNode(Struct, frozen=True):
    """Test a node again; it is cordoned meanwhile."""

    node: NodeId


class AcceptNode(Struct, frozen=True):
    """Accept a node despite its test result."""

    node: NodeId
    by: str


class SetNodeState(Struct, frozen=True):
    """Set the state of a node: cordoned, down or up."""

    node: NodeId
    state: str
    cause: str = ""


class NodeBatch(Struct, frozen=True):
    """Apply requests to several nodes, all or none; events follow in this order."""

    requests: tuple[SetNodeState | RetestNode | AcceptNode, ...]


class JobActivity(Struct, frozen=True):
    """Activity of one attempt: idle since when, or None if it is active."""

    job_id: JobId
    attempt: int
    idle_since_ms: Millis | None


class ReportActivity(Struct, frozen=True):
    """Report which jobs are idle and which are active again."""

    jobs: tuple[JobActivity, ...] = ()
    is_first_report: bool = False
    """Whether this is the first report: idle jobs may have been active meanwhile."""


class DeployService(Struct, frozen=True):
    """Deploy a service: a new one, a new revision, or other settings."""

    spec: ServiceSpec
    team: TeamId
    job: Job
    """Of every replica, but for its id, its number and its port."""
    run_spec: RunSpec
    by: str = ""
    is_new_revision: bool = False
    """Whether it is a new revision even if nothing of it has changed."""


ServiceVerb = Literal["scale", "canary", "promote", "rollback", "remove"]


class ChangeService(Struct, frozen=True):
    """Change a service that exists."""

    service: str
    verb: ServiceVerb
    by: str = ""
    replicas_min: int = 0
    replicas_max: int = 0
    weight: float = 0.0
    """Percent of the requests, for `canary`."""


class StepService(Struct, frozen=True):
    """Carry out a step of a service's controller, unless the service has changed since."""

    service: str
    seen: ServiceState
    """The record that the step was made from."""
    step: ServiceStep


class RegisterModel(Struct, frozen=True):
    """Register a version of a model; its number is assigned here."""

    version: ModelVersion


class MoveAlias(Struct, frozen=True):
    """Let an alias name a version; 0 deletes the alias."""

    team: TeamId
    model: str
    alias: str
    number: int
    by: str = ""


class StageVersion(Struct, frozen=True):
    """Set the stage of a version."""

    team: TeamId
    model: str
    number: int
    stage: Stage
    by: str = ""


class RemoveVersion(Struct, frozen=True):
    """Remove a version; its files stay where they are."""

    team: TeamId
    model: str
    number: int
    by: str = ""


Request = (
    Submit
    | Cancel
    | Release
    | JoinNodes
    | LeaveNodes
    | SetNodeState
    | RetestNode
    | AcceptNode
    | NodeBatch
    | ReportActivity
    | DeployService
    | ChangeService
    | StepService
    | RegisterModel
    | MoveAlias
    | StageVersion
    | RemoveVersion
)


class Answer(Struct, frozen=True):
    """Reply to a request: the jobs it created or changed, or why it was refused."""

    jobs: tuple[JobId, ...] = ()
    refused: Reason | None = None
    again: bool = False
    """Whether these jobs were submitted earlier with the same key, or nothing had to change."""
    number: int = 0
    """The version of a model that was registered or changed."""


class PendingRequest(Struct, frozen=True, eq=False):
    """A request and its reply callback, which must neither block nor fail."""

    request: Request
    reply: Callable[[Answer], None]


class Inbox:
    """Requests in order of arrival, and a descriptor to wait on."""

    def __init__(self, most: int = 10_000) -> None:
        self._lock = Lock()
        self._waiting: deque[PendingRequest] = deque()
        self._most = most
        self._wakeup = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._error: Exception | None = None
        self.is_closed = False

    def fileno(self) -> int:
        """Return a descriptor that is readable while requests are waiting."""
        return self._wakeup

    def put(self, request: Request, reply: Callable[[Answer], None]) -> None:
        """Add a request. It is refused at once if there are too many, or after shutdown."""
        refused = None
        with self._lock:
            if self.is_closed:
                refused = Reason("shutting-down")
            elif len(self._waiting) >= self._most:
                refused = Reason("too-many-requests", {"most": self._most})
            else:
                self._waiting.append(PendingRequest(request, reply))
        if refused is not None:
            reply(Answer(refused=refused))
        else:
            self.wake()

    def drain(self) -> Sequence[PendingRequest]:
        """Return all waiting requests; raise the error that should end the loop, once."""
        with suppress(BlockingIOError):
            os.eventfd_read(self._wakeup)
        with self._lock:
            error, self._error = self._error, None
            if error is not None:
                raise error
            drained = list(self._waiting)
            self._waiting.clear()
        return drained

    def interrupt(self, error: Exception) -> None:
        """Have the loop end with an error; requests keep waiting for the next one."""
        with self._lock:
            self._error = error
        self.wake()

    def forget_interrupt(self) -> None:
        """Drop an error that was for a loop that has ended by itself."""
        with self._lock:
            self._error = None

    def refuse_all(self, reason: Reason) -> None:
        """Refuse the requests that wait: nobody here will handle them."""
        with self._lock:
            refused = list(self._waiting)
            self._waiting.clear()
        for pending in refused:
            pending.reply(Answer(refused=reason))

    def wake(self) -> None:
        """Wake the loop, even without a request."""
        os.eventfd_write(self._wakeup, 1)

    def close(self) -> None:
        """Shut down; waiting requests are refused."""
        with self._lock:
            self.is_closed = True
        self.refuse_all(Reason("shutting-down"))
        self.wake()
