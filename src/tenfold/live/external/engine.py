"""The interface to a system that runs processes on other machines, and what it reports."""

from typing import Literal, Protocol

from msgspec import Struct

from tenfold.live.executor import Launch
from tenfold.live.local.attempt.places import JobFolders
from tenfold.live.local.spawner.wire import LaunchLine
from tenfold.model.ids import JobId, NodeId
from tenfold.model.reason import Reason

JobPhase = Literal["waiting", "running", "over"]
EndCause = Literal["", "cancelled", "node-lost", "out-of-memory", "preempted", "time-limit"]


class Mark(Struct, frozen=True):
    """What every job of ours carries in its engine, so that it is found again."""

    job_id: JobId
    attempt: int


class EngineJob(Struct, frozen=True, kw_only=True):
    """One job of the engine that carries a mark of this executor."""

    handle: str
    """The engine's own name for it, such as a Slurm job id."""
    mark: Mark
    phase: JobPhase
    """`over` means that no process is left."""
    cause: EndCause = ""
    """Why it is over, if the engine ended it."""
    state: str = ""
    """The engine's word for its state."""


class EngineNode(Struct, frozen=True, kw_only=True):
    """One node as its engine sees it."""

    id: NodeId
    is_up: bool = True
    closed: str = ""
    """Why the engine starts nothing new there, such as `drained`; empty if it does."""
    foreign: tuple[str, ...] = ()
    """Jobs of others that run there."""


class Listing(Struct, frozen=True, kw_only=True):
    """Every job with a mark of this executor, and every node."""

    jobs: tuple[EngineJob, ...] = ()
    nodes: tuple[EngineNode, ...] = ()


class EngineRefusal(Exception):
    """The engine refused to start an attempt; the code tells whether it may be tried again."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code, self.sentence = code, sentence


class Submission(Struct, frozen=True, kw_only=True):
    """An attempt to submit: its launch and its folder, where the member script lies."""

    launch: LaunchLine
    folder: str
    fence: int


class Target(Struct, frozen=True, kw_only=True):
    """A running attempt to signal: its job in the engine, its folder and its members."""

    handle: str
    folder: str
    members: int


class Engine(Protocol):
    """One thread uses it. A call that cannot reach the engine raises `Unreachable`."""

    name: str
    """As shown in messages, such as `Slurm`."""

    def why_refused(self, launch: Launch) -> Reason | None:
        """Return why an attempt can never start here. This may be called from any thread."""
        ...

    def script(self, launch: LaunchLine, folder: str, folders: JobFolders) -> str:
        """Return the script that each member of an attempt runs. It may not wait."""
        ...

    def submit(self, submission: Submission) -> str:
        """Submit an attempt and return its handle; raise `EngineRefusal` if it is refused."""
        ...

    def listing(self) -> Listing:
        """Return all jobs of this executor and all nodes, in a bounded number of calls."""
        ...

    def terminate(self, target: Target) -> None:
        """Send SIGTERM to all members."""
        ...

    def kill(self, target: Target, *, is_repeated: bool) -> None:
        """Kill all members, whatever they do; `is_repeated` if that had no effect before."""
        ...

    def cancel(self, handle: str) -> None:
        """End a job that has not begun."""
        ...

    def cost(self) -> str:
        """Return what its calls have cost so far, in words."""
        ...

    def close(self) -> None:
        """Disconnect; jobs continue."""
        ...
