"""What every route gets: the journal, the inbox of the loop, tokens, logs and metrics."""

from collections.abc import Callable, Sequence
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
from tenfold.server.background.services.routing_board import RoutingBoard
from tenfold.server.event_cursor import EventCursor
from tenfold.server.event_pages import EventPages
from tenfold.server.feasibility import Feasibility
from tenfold.server.inbox_client import WAIT_S
from tenfold.server.job_details import Workdir
from tenfold.server.metrics.metrics import Meters
from tenfold.server.metrics.traces import Traces
from tenfold.server.object_store import ObjectStoreFolder
from tenfold.server.programs import ProgramCheck, any_program
from tenfold.server.runtime.admission import Budgets
from tenfold.server.runtime.leadership import Leadership
from tenfold.server.runtime.limiter import Limiter
from tenfold.server.shells import OpenShellCall, OpenShells, no_shells
from tenfold.server.workdirs import FolderCheck, any_folder


class JobLogs(Protocol):
    """Reads job logs; thread-safe."""

    def logs(
        self, job_id: JobId, attempt: int, member: int, bytes_most: int = LOG_TAIL_BYTES
    ) -> MemberLog:
        """Return the end of a member's log; empty if it wrote nothing."""
        ...


class Control(Struct, frozen=True, kw_only=True, eq=False):
    """The control plane as the routes see it."""

    store: Store
    """For reading, with its own connections."""
    inbox: Inbox
    tokens: Tokens
    follower: Follower
    feasibility: Feasibility
    logs: JobLogs
    meters: Meters
    usage: Usage
    """The last usage samples of jobs and GPUs."""
    event_cursor: EventCursor
    event_pages: EventPages
    trouble: Callable[[], Reason | None]
    """What is wrong with the loop now; None while it runs."""
    now_ms: Callable[[], int]
    late: Callable[[], Reason | None] = lambda: None
    """A journal write that is taking too long; requests wait for it."""
    clock_ahead_ms: Callable[[], int] = lambda: 0
    """How far the loop's clock is ahead of the machine's."""
    limiter: Limiter = field(default_factory=Limiter)
    budgets: Budgets = field(default_factory=Budgets)
    traces: Traces = field(default_factory=Traces)
    workdir: Workdir = lambda _: ""
    """Where a job runs."""
    memory_scope: Callable[[], str] = lambda: ""
    """Whether memory limits are those of a `job` or of each `process`; empty if unknown."""
    machine: str = ""
    """Identifies this machine; jobs submitted from it may run in the submitter's folder."""
    folder_check: FolderCheck = any_folder
    program_check: ProgramCheck = any_program
    """Whether a team's jobs may enter a folder."""
    open_shell: OpenShellCall = no_shells
    """Opens a shell in a running attempt; thread-safe."""
    shells: OpenShells = field(default_factory=OpenShells)
    routing: RoutingBoard = field(default_factory=lambda: RoutingBoard(lambda: 0))
    """What gateways route by."""
    service_of: Callable[[str], str | None] = lambda _: None
    """Tells the service of a replica, by its job; only while this control plane leads."""
    wait_s: float = WAIT_S
    """How long a request waits for the loop."""
    leadership: Leadership | None = None
    """Whether this control plane leads; None if the journal is not shared."""
    note_nodes: Callable[[Sequence[str]], None] = lambda _: None
    """Records which nodes joined, so that the next start does not miss them."""
    objects: ObjectStoreFolder | None = None
    """The object store that runs beside this control plane; None for none."""
    is_closing: Callable[[], bool] = lambda: False
    """Whether streams must end because the server is stopping."""


ControlDep = NamedDependency[SkipValidation[Control]]
"""The type of the `control` parameter of a route."""
