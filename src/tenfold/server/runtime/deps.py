"""What every route is given: the journal to read, the inbox to ask, tokens, logs and meters."""

from collections.abc import Callable
from typing import Protocol

from litestar.di import NamedDependency
from litestar.params import SkipValidation
from msgspec import Struct, field

from tenfold.journal.store import Store
from tenfold.live.executor import LOG_TAIL_BYTES, MemberLog
from tenfold.live.inbox import Inbox
from tenfold.live.usage import Usage
from tenfold.model.ids import JobId
from tenfold.model.reason import Reason
from tenfold.server.auth.tokens import Tokens
from tenfold.server.background.follower import Follower
from tenfold.server.event_cursor import EventCursor
from tenfold.server.inbox_client import WAIT_S
from tenfold.server.metrics.metrics import Meters
from tenfold.server.metrics.traces import Traces
from tenfold.server.runtime.limiter import Limiter, Streams


class JobLogs(Protocol):
    """Reads what jobs wrote; used by many threads."""

    def logs(
        self, job_id: JobId, attempt: int, member: int, bytes_most: int = LOG_TAIL_BYTES
    ) -> MemberLog:
        """Return the end of what a member wrote; empty where it wrote nothing."""
        ...


class Control(Struct, frozen=True, kw_only=True, eq=False):
    """The server's side of a control plane."""

    store: Store
    """For reading, over connections of its own."""
    inbox: Inbox
    tokens: Tokens
    follower: Follower
    logs: JobLogs
    meters: Meters
    usage: Usage
    """What jobs and GPUs used at the last look."""
    event_cursor: EventCursor
    trouble: Callable[[], Reason | None]
    """What is wrong with the loop now; None while it runs."""
    now_ms: Callable[[], int]
    late: Callable[[], Reason | None] = lambda: None
    """What is said of a write that waits; requests may wait with it."""
    clock_ahead_ms: Callable[[], int] = lambda: 0
    """How far the loop's clock is ahead of that of the machine."""
    limiter: Limiter = field(default_factory=Limiter)
    streams: Streams = field(default_factory=Streams)
    traces: Traces = field(default_factory=Traces)
    wait_s: float = WAIT_S
    """How long a request waits for the loop."""
    is_closing: Callable[[], bool] = lambda: False
    """Whether streams must come to an end."""


ControlDep = NamedDependency[SkipValidation[Control]]
"""How a route asks for it, by the name `control`."""
