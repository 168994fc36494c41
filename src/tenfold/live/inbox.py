"""Requests on their way into the loop, and the answers that wait for the disk.

Whoever asks hands in a request with a pending and is told once the journal has it: not before,
for an answer is a promise, and not never, for a store that fails answers every pending with
the trouble. Requests come from many threads; the loop alone takes them.
"""

import os
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock

from msgspec import Struct

from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.submission import Submission, SubmitKey
from tenfold.model.reason import Reason
from tenfold.model.units import Millis


class Submit(Struct, frozen=True):
    """Admit these, all of them or none."""

    submissions: tuple[Submission, ...]
    key: SubmitKey | None = None
    """Names the request; one that was admitted under it before is answered as it was then."""


class Cancel(Struct, frozen=True):
    """Take back a job that waits, or end one that runs; of an array, all that are not over."""

    job_id: JobId
    members: tuple[JobId, ...] = ()
    """Those of an array; empty for one job."""
    by: str = ""
    """Who asked."""


class JoinNodes(Struct, frozen=True):
    """Add nodes to the fleet."""

    nodes: tuple[Node, ...]
    is_tested: bool = False
    """Whether each is measured first, and joins with the verdict."""


class RetestNode(Struct, frozen=True):
    """Measure a node again, which takes no work meanwhile."""

    node: NodeId


class AcceptNode(Struct, frozen=True):
    """Take a node in spite of what its test gave."""

    node: NodeId
    by: str


class SetNodeState(Struct, frozen=True):
    """Say how a node is: it takes no more work, is gone, or is back."""

    node: NodeId
    state: str
    cause: str = ""


class NodeBatch(Struct, frozen=True):
    """Do this to several nodes, to all of them or to none; facts follow in this order."""

    requests: tuple[SetNodeState | RetestNode | AcceptNode, ...]


class JobActivity(Struct, frozen=True):
    """What was measured of one attempt: since when it has done nothing, None where it is used."""

    job_id: JobId
    attempt: int
    idle_since_ms: Millis | None


class ReportActivity(Struct, frozen=True):
    """Take note of who idles and who is in use again."""

    jobs: tuple[JobActivity, ...] = ()
    is_first_report: bool = False
    """Whether nobody measured before this: who was said to idle may have worked meanwhile."""


Request = (
    Submit
    | Cancel
    | JoinNodes
    | SetNodeState
    | RetestNode
    | AcceptNode
    | NodeBatch
    | ReportActivity
)


class Answer(Struct, frozen=True):
    """What came of a request: names of jobs that it made or touched, or why it was not done."""

    jobs: tuple[JobId, ...] = ()
    refused: Reason | None = None
    again: bool = False
    """Whether these jobs were admitted before, under the same key."""


class PendingRequest(Struct, frozen=True, eq=False):
    """A request and whom to tell; telling must neither wait nor fail."""

    request: Request
    reply: Callable[[Answer], None]


class Inbox:
    """Requests in the order in which they came, and a descriptor that says there are some."""

    def __init__(self, most: int = 10_000) -> None:
        self._lock = Lock()
        self._waiting: deque[PendingRequest] = deque()
        self._most = most
        self._wakeup = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.is_closed = False

    def fileno(self) -> int:
        """Return a descriptor that is readable while there is something to take."""
        return self._wakeup

    def put(self, request: Request, reply: Callable[[Answer], None]) -> None:
        """Hand in a request. One too many is refused at once, and so is one after the end."""
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
        """Return all that waits."""
        with suppress(BlockingIOError):
            os.eventfd_read(self._wakeup)
        with self._lock:
            drained = list(self._waiting)
            self._waiting.clear()
        return drained

    def wake(self) -> None:
        """Wake the loop, whether or not there is a request."""
        os.eventfd_write(self._wakeup, 1)

    def close(self) -> None:
        """Let the loop end; requests that still wait are refused."""
        with self._lock:
            self.is_closed = True
        for pending in self.drain():
            pending.reply(Answer(refused=Reason("shutting-down")))
        self.wake()
