"""Requests on their way into the loop, and the answers that wait for the disk.

Whoever asks hands in a request with a ticket and is told once the journal has it: not before,
for an answer is a promise, and not never, for a store that fails answers every ticket with
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


class Join(Struct, frozen=True):
    """Add nodes to the fleet."""

    nodes: tuple[Node, ...]
    is_tested: bool = False
    """Whether each is measured first, and joins with the verdict."""


class Examine(Struct, frozen=True):
    """Measure a node again, which takes no work meanwhile."""

    node: NodeId


class Accept(Struct, frozen=True):
    """Take a node in spite of what its test gave."""

    node: NodeId
    by: str


class Mark(Struct, frozen=True):
    """Say how a node is: it takes no more work, is gone, or is back."""

    node: NodeId
    state: str
    cause: str = ""


class Together(Struct, frozen=True):
    """Do this to several nodes, to all of them or to none; facts follow in this order."""

    requests: tuple[Mark | Examine | Accept, ...]


class Seen(Struct, frozen=True):
    """What was measured of one attempt: since when it has done nothing, None where it is used."""

    job_id: JobId
    attempt: int
    idle_since_ms: Millis | None


class Observe(Struct, frozen=True):
    """Take note of who idles and who is in use again."""

    seen: tuple[Seen, ...] = ()
    is_anew: bool = False
    """Whether nobody measured before this: who was said to idle may have worked meanwhile."""


Request = Submit | Cancel | Join | Mark | Examine | Accept | Together | Observe


class Answer(Struct, frozen=True):
    """What came of a request: names of jobs that it made or touched, or why it was not done."""

    jobs: tuple[JobId, ...] = ()
    refused: Reason | None = None
    again: bool = False
    """Whether these jobs were admitted before, under the same key."""


class Ticket(Struct, frozen=True, eq=False):
    """A request and whom to tell; telling must neither wait nor fail."""

    request: Request
    tell: Callable[[Answer], None]


class Inbox:
    """Requests in the order in which they came, and a descriptor that says there are some."""

    def __init__(self, most: int = 10_000) -> None:
        self._lock = Lock()
        self._waiting: deque[Ticket] = deque()
        self._most = most
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.is_closed = False

    def fileno(self) -> int:
        """Return a descriptor that is readable while there is something to take."""
        return self._bell

    def put(self, request: Request, tell: Callable[[Answer], None]) -> None:
        """Hand in a request. One too many is refused at once, and so is one after the end."""
        refused = None
        with self._lock:
            if self.is_closed:
                refused = Reason("shutting-down")
            elif len(self._waiting) >= self._most:
                refused = Reason("too-many-requests", {"most": self._most})
            else:
                self._waiting.append(Ticket(request, tell))
        if refused is not None:
            tell(Answer(refused=refused))
        else:
            self.ring()

    def take(self) -> Sequence[Ticket]:
        """Return all that waits."""
        with suppress(BlockingIOError):
            os.eventfd_read(self._bell)
        with self._lock:
            taken = list(self._waiting)
            self._waiting.clear()
        return taken

    def ring(self) -> None:
        """Wake the loop, whether or not there is a request."""
        os.eventfd_write(self._bell, 1)

    def close(self) -> None:
        """Let the loop end; requests that still wait are refused."""
        with self._lock:
            self.is_closed = True
        for ticket in self.take():
            ticket.tell(Answer(refused=Reason("shutting-down")))
        self.ring()
