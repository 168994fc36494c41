"""The executor contract: what starts, watches and stops gangs of real processes.

No verb waits for a job. Whatever comes of an order is a sighting, and the files or records
of the executor, not its memory, are the truth: a client that comes back asks for all attempts
and goes on. A sighting can only be late, never wrong, and none is given twice to one client.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.reason import Reason
from tenfold.model.units import Millis

EndKind = Literal["exited", "stopped", "silent", "out-of-memory", "start-failed"]
Phase = Literal["starting", "running", "orphaned", "ended", "lost"]

LOG_TAIL_BYTES = 64 * 1024


class Member(Struct, frozen=True, kw_only=True):
    """One process of a gang: its node and what that node gives it."""

    node: NodeId
    gpus: tuple[int, ...] = ()
    """Numbers of the devices on that node; on a virtual node they need not be there."""
    cpus_milli: int = 0
    memory_mib: int = 0


class Launch(Struct, frozen=True, kw_only=True):
    """One start that was ordered. `attempt` counts the starts of a job and never goes back."""

    job_id: JobId
    attempt: int
    team: TeamId
    run_spec: RunSpec
    members: tuple[Member, ...]


class AttemptStarted(Struct, frozen=True, tag="started"):
    """Every member of the gang runs its command."""

    at_ms: Millis
    job_id: JobId
    attempt: int


class AttemptEnded(Struct, frozen=True, kw_only=True, tag="ended"):
    """No process of the attempt is left. The exit is that of the first member that failed."""

    at_ms: Millis
    job_id: JobId
    attempt: int
    how: EndKind = "exited"
    exit_code: int | None = None
    signal: int | None = None
    """The signal that ended the member; then there is no exit code."""
    member: int | None = None
    """Which member failed first; None where none did."""
    reason: Reason | None = None
    log_bytes_dropped: int = 0
    last_alive_ms: Millis | None = None
    """When it last gave a sign of life, where it was ended for giving none."""


class AttemptLost(Struct, frozen=True, tag="lost"):
    """Nobody knows how the attempt ended, or its node went; what was left of it is dead."""

    at_ms: Millis
    job_id: JobId
    attempt: int
    reason: Reason


class OrderRefused(Struct, frozen=True, tag="refused"):
    """An order was not carried out, and nothing was changed."""

    at_ms: Millis
    job_id: JobId
    attempt: int
    reason: Reason
    is_transient: bool = False
    """What is in the way may go: the job is fit to be started later, under a new number."""


class NodeUnreachable(Struct, frozen=True, tag="node-lost"):
    """A node does not answer; its attempts follow as lost."""

    at_ms: Millis
    node: NodeId


class NodeReachable(Struct, frozen=True, tag="node-back"):
    """A lost node answers again."""

    at_ms: Millis
    node: NodeId


class ExecutorWarning(Struct, frozen=True, tag="trouble"):
    """Something is wrong that the executor keeps trying to get over; the attempt goes on."""

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
    | ExecutorWarning
)


class AttemptState(Struct, frozen=True, kw_only=True):
    """What is known of one attempt.

    `orphaned` has neither a supervisor nor an end yet: what is left of it is being killed, and
    it becomes `lost` by itself. It still holds its node.
    """

    job_id: JobId
    attempt: int
    phase: Phase
    members: tuple[Member, ...]
    ordered_ms: Millis
    started_ms: Millis | None = None
    end: AttemptEnded | AttemptLost | None = None


class MemberLog(Struct, frozen=True, kw_only=True):
    """The end of what one member wrote, and the files that hold the rest, oldest first."""

    tail: bytes
    paths: tuple[str, ...]
    bytes_kept: int
    segments: tuple[tuple[int, str], ...] = ()
    """The same files under names that stay, each with the byte of the whole at which it begins."""
    is_removed: bool = False
    """Whether the attempt was never begun, or all that was kept of it was removed."""
    bytes_dropped: int = 0
    """What this member wrote before all that is kept, and is gone."""
    bytes_dropped_in_all: int = 0
    """What is gone of all members of an attempt that is over."""


class Executor(Protocol):
    """Hands of the live world. One client of an executor is used by one thread."""

    def fileno(self) -> int:
        """Return a descriptor that is readable while `observations` has something to do."""
        ...

    def start(self, launch: Launch) -> None:
        """Order a start. The same attempt ordered twice starts once."""
        ...

    def stop(self, job_id: JobId, attempt: int, grace_ms: Millis) -> None:
        """Give notice to every member, and end whatever is left after `grace_ms`.

        A second stop may shorten what the first one granted, never lengthen it.
        """
        ...

    def observations(self) -> list[Observation]:
        """Return what was seen since the last call, in order, without waiting."""
        ...

    def attempts(self) -> list[AttemptState]:
        """Return every attempt that is not settled; what it tells is not sighted again."""
        ...

    def settle(self, attempts: Sequence[tuple[JobId, int]]) -> None:
        """Leave these out of `attempts` from now on: their ends stand in the journal.

        One that is not over stays in. Logs and the number of the attempt are kept, so that an
        old order stays stale.
        """
        ...

    def logs(
        self, job_id: JobId, attempt: int, member: int, bytes_most: int = LOG_TAIL_BYTES
    ) -> MemberLog:
        """Return the end of what a member wrote; empty where it wrote nothing."""
        ...

    def close(self) -> None:
        """Let go of the executor. What runs goes on."""
        ...
