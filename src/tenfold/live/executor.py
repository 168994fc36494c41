"""The executor interface: starts, watches and stops gangs of real processes.

No call waits for a job. Outcomes are reported as observations, and the executor's files, not its
memory, are authoritative: a client that reconnects lists all attempts and continues. An observation
can be late but never wrong, and none is reported twice to one client.
"""

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, runtime_checkable

from msgspec import Struct

from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.reason import Reason
from tenfold.model.units import Millis

EndKind = Literal["exited", "stopped", "silent", "out-of-memory", "start-failed"]
Phase = Literal["starting", "running", "orphaned", "ended", "lost"]

LOG_TAIL_BYTES = 64 * 1024
STALE_ORDERS = "orders-refused"
"""The code of an executor that refused orders because another control plane is the leader."""


class Member(Struct, frozen=True, kw_only=True):
    """One process of a gang: its node and its resources there."""

    node: NodeId
    gpus: tuple[int, ...] = ()
    """Device numbers on that node; on a virtual node they need not exist."""
    cpus_milli: int = 0
    memory_mib: int = 0


class Launch(Struct, frozen=True, kw_only=True):
    """One ordered start. `attempt` numbers the starts of a job and only increases."""

    job_id: JobId
    attempt: int
    team: TeamId
    run_spec: RunSpec
    members: tuple[Member, ...]
    limit_ms: Millis | None = None
    """How long it may run; the controller ends it then. An engine may plan with it."""


class AttemptStarted(Struct, frozen=True, tag="started"):
    """All processes of the job run their command."""

    at_ms: Millis
    job_id: JobId
    attempt: int


class AttemptEnded(Struct, frozen=True, kw_only=True, tag="ended"):
    """The attempt ended: no process is left. The exit is that of the first member that failed."""

    at_ms: Millis
    job_id: JobId
    attempt: int
    how: EndKind = "exited"
    exit_code: int | None = None
    signal: int | None = None
    """The signal that killed the member; there is then no exit code."""
    member: int | None = None
    """The member that failed first; None if none did."""
    reason: Reason | None = None
    log_bytes_dropped: int = 0
    last_alive_ms: Millis | None = None
    """Time of its last heartbeat, if it was killed as hung."""


class AttemptLost(Struct, frozen=True, tag="lost"):
    """The attempt ended in an unknown way, or its node was lost; its processes are dead."""

    at_ms: Millis
    job_id: JobId
    attempt: int
    reason: Reason


class OrderRefused(Struct, frozen=True, tag="refused"):
    """An order was refused, and nothing was changed."""

    at_ms: Millis
    job_id: JobId
    attempt: int
    reason: Reason
    is_transient: bool = False
    """The cause may go away: the job can be started later, with a new attempt number."""


class NodeUnreachable(Struct, frozen=True, tag="node-lost"):
    """A node is unreachable; its attempts are reported as lost."""

    at_ms: Millis
    node: NodeId
    cause: str = "executor"
    """As the journal records it."""


class NodeReachable(Struct, frozen=True, tag="node-back"):
    """A lost node is reachable again."""

    at_ms: Millis
    node: NodeId


class NodeClosed(Struct, frozen=True, tag="node-closed"):
    """The system behind the executor starts nothing new on a node; what runs there goes on."""

    at_ms: Millis
    node: NodeId
    reason: Reason


class NodeOpened(Struct, frozen=True, tag="node-opened"):
    """A closed node is open again."""

    at_ms: Millis
    node: NodeId


class ExecutorWarning(Struct, frozen=True, tag="trouble"):
    """The executor is retrying something; the attempt continues."""

    at_ms: Millis
    job_id: JobId
    attempt: int
    reason: Reason


Observation = (
    AttemptStarted
    | AttemptEnded
    | AttemptLost
    | OrderRefused
    | NodeUnreachable
    | NodeReachable
    | NodeClosed
    | NodeOpened
    | ExecutorWarning
)


class AttemptState(Struct, frozen=True, kw_only=True):
    """The state of one attempt.

    `orphaned` means that it has neither a supervisor nor an end yet: its processes are being
    killed, and it then becomes `lost`. It still holds its node.
    """

    job_id: JobId
    attempt: int
    phase: Phase
    members: tuple[Member, ...]
    ordered_ms: Millis
    started_ms: Millis | None = None
    end: AttemptEnded | AttemptLost | None = None


class MemberLog(Struct, frozen=True, kw_only=True):
    """The tail of one member's output, and its log files, oldest first."""

    tail: bytes
    paths: tuple[str, ...]
    bytes_kept: int
    segments: tuple[tuple[int, str], ...] = ()
    """The same files under stable names, each with its byte offset in the whole log."""
    is_removed: bool = False
    """Whether the attempt never began, or its files were removed."""
    bytes_dropped: int = 0
    """Bytes of this member's log that were dropped."""
    bytes_dropped_in_all: int = 0
    """Bytes dropped over all members of an ended attempt."""
    failed_member: int | None = None
    """The member that failed first, once the attempt ended; None if none did."""


class TerminalSize(Struct, frozen=True):
    """Rows and columns of a terminal."""

    rows: int = 24
    columns: int = 80


class ShellRequest(Struct, frozen=True, kw_only=True):
    """A command to run beside a member of a running attempt."""

    command: tuple[str, ...]
    member: int = 0
    terminal: TerminalSize | None = None
    """The terminal that it runs in; None for pipes."""
    term: str = ""
    """The kind of terminal, for `TERM`."""


class ShellOutput(Struct, frozen=True):
    """What a shell printed. In a terminal, errors are not told apart."""

    content: bytes
    is_error: bool = False


class ShellEnded(Struct, frozen=True):
    """A shell ended; with neither code nor signal, its attempt did."""

    exit_code: int | None = None
    signal: int | None = None


class Shell(Protocol):
    """A command that runs in the allocation of an attempt. No call waits."""

    def fileno(self) -> int:
        """Return a descriptor that is readable while `read` has something to return."""
        ...

    def read(self) -> list[ShellOutput | ShellEnded]:
        """Return new output, and the end after all output."""
        ...

    def write(self, content: bytes) -> int:
        """Send input; return how many bytes were taken, which may be none."""
        ...

    def end_input(self) -> None:
        """End the input; in a terminal, this is Ctrl-D."""
        ...

    def resize(self, size: TerminalSize) -> None:
        """Change the size of its terminal; nothing happens without one."""
        ...

    def close(self) -> None:
        """Hang up: the shell and its session are ended."""
        ...


class Executor(Protocol):
    """Runs attempts for the live world. Each client is used by one thread."""

    def fileno(self) -> int:
        """Return a descriptor that is readable while `observations` has something to return."""
        ...

    def start(self, launch: Launch) -> None:
        """Order a start. Repeating an order for the same attempt has no effect."""
        ...

    def stop(self, job_id: JobId, attempt: int, grace_ms: Millis) -> None:
        """Send SIGTERM to all members, and kill what is left after `grace_ms`.

        A second stop can shorten the grace period, never extend it.
        """
        ...

    def observations(self) -> list[Observation]:
        """Return new observations in order, without waiting."""
        ...

    def attempts(self) -> list[AttemptState]:
        """Return every unsettled attempt; what it contains is not reported again."""
        ...

    def settle(self, attempts: Sequence[tuple[JobId, int]]) -> None:
        """Remove these from `attempts`: their ends are in the journal.

        An attempt that has not ended stays. Logs and attempt numbers are kept, so an old order
        stays stale.
        """
        ...

    def logs(
        self, job_id: JobId, attempt: int, member: int, bytes_most: int = LOG_TAIL_BYTES
    ) -> MemberLog:
        """Return the tail of a member's log; empty if it wrote nothing."""
        ...

    def open_shell(self, job_id: JobId, attempt: int, request: ShellRequest) -> Shell | Reason:
        """Run a command beside a member of a running attempt; return why not if it cannot.

        It has the user, folder, variables, devices, limits and container of the member. It ends
        with the attempt, and does not keep it alive. This may be called from any thread, and waits
        until the command runs.
        """
        ...

    def close(self) -> None:
        """Disconnect. Running jobs continue."""
        ...


@runtime_checkable
class FencedExecutor(Protocol):
    """An executor that refuses orders of a control plane that no longer leads."""

    def fence(self, epoch: int) -> None:
        """Send this epoch with every order; return once no order of a lower one is carried out.

        Call this before `attempts`. Raise if a higher one is known: another control plane is the
        leader.
        """
        ...


class LeasedExecutor:
    """An executor that is given orders only while this control plane holds its lease.

    The lease ends by the clock of this machine before another control plane can take it. An
    executor that is fenced refuses late orders anyway; for others, this keeps their window small.
    """

    def __init__(self, executor: Executor, check_lease: Callable[[], None]) -> None:
        self._executor, self._check = executor, check_lease

    def fileno(self) -> int:
        """Return a descriptor that is readable while `observations` has something to return."""
        return self._executor.fileno()

    def start(self, launch: Launch) -> None:
        """Order a start; raise if the lease has ended."""
        self._check()
        self._executor.start(launch)

    def stop(self, job_id: JobId, attempt: int, grace_ms: Millis) -> None:
        """Order a stop; raise if the lease has ended."""
        self._check()
        self._executor.stop(job_id, attempt, grace_ms)

    def observations(self) -> list[Observation]:
        """Return new observations in order, without waiting."""
        return self._executor.observations()

    def attempts(self) -> list[AttemptState]:
        """Return every unsettled attempt; what it contains is not reported again."""
        return self._executor.attempts()

    def settle(self, attempts: Sequence[tuple[JobId, int]]) -> None:
        """Remove these from `attempts`: their ends are in the journal."""
        self._check()
        self._executor.settle(attempts)

    def logs(
        self, job_id: JobId, attempt: int, member: int, bytes_most: int = LOG_TAIL_BYTES
    ) -> MemberLog:
        """Return the tail of a member's log; empty if it wrote nothing."""
        return self._executor.logs(job_id, attempt, member, bytes_most)

    def open_shell(self, job_id: JobId, attempt: int, request: ShellRequest) -> Shell | Reason:
        """Run a command beside a member of a running attempt; return why not if it cannot."""
        return self._executor.open_shell(job_id, attempt, request)

    def close(self) -> None:
        """Disconnect. Running jobs continue."""
        self._executor.close()
