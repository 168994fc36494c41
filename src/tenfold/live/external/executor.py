"""The executor of an external system: takes orders from the loop and reports what came of them.

Orders go to a thread, the worker; folders are authoritative, as they are for the local executor.
"""

import os
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Lock

from msgspec import Struct

from tenfold.clock.wall import now_ms
from tenfold.live.executor import (
    LOG_TAIL_BYTES,
    AttemptState,
    ExecutorWarning,
    Launch,
    MemberLog,
    NodeClosed,
    NodeOpened,
    NodeReachable,
    NodeUnreachable,
    Observation,
    OrderRefused,
    Shell,
    ShellRequest,
)
from tenfold.live.external.engine import Engine
from tenfold.live.external.fence import Fence
from tenfold.live.external.worker import HaltOrder, News, NodeChange, Note, StartOrder, Worker
from tenfold.live.local.attempt import logs
from tenfold.live.local.attempt.environment import inherited
from tenfold.live.local.attempt.folder import ExecutorDir
from tenfold.live.local.attempt.reports import Reports, member_log, reason_of, recorded_state
from tenfold.live.local.spawner.launches import launch_line, why_unusable
from tenfold.live.local.spawner.wire import UserLine, checked_end
from tenfold.model.ids import JobId, NodeId
from tenfold.model.reason import Reason, TeamRef
from tenfold.model.units import Millis

PERIOD_S = 1.0
"""Least time between two listings of the engine while jobs are in it. An assumption."""
WAY = ("attempts", "teams")
"""What users of teams pass through, if jobs run as them."""
TRANSIENT = ("cannot-write", "earlier-attempt-lives", "node-is-lost", "engine-busy")
"""Refusals whose cause may go away."""


class ExternalOptions(Struct, frozen=True, kw_only=True):
    """How an executor of an external system works."""

    environment: Mapping[str, str] | None = None
    """This process's variables, of which jobs inherit a few; None for its own."""
    period_s: float = PERIOD_S
    users: Mapping[str, UserLine] | None = None
    """The Unix users that teams' jobs run as; None if all run as this process's user."""


DEFAULTS = ExternalOptions()


class ExternalExecutor:
    """Runs gangs through an engine. `close` leaves them running."""

    def __init__(self, home: str, engine: Engine, options: ExternalOptions = DEFAULTS) -> None:
        """`home` must be on a file system that the nodes share."""
        self.home = ExecutorDir(home)
        self.home.prepare()
        if options.users is not None:
            for folder in (self.home.path, *(f"{self.home.path}/{one}" for one in WAY)):
                os.chmod(folder, 0o711)
        self.engine = engine
        own = os.environ if options.environment is None else options.environment
        self._inherited = inherited(own)
        self._users = options.users
        self._lock = Lock()
        self._notes: deque[Note] = deque()
        self._refused: deque[OrderRefused] = deque()
        self._reports = Reports()
        self._nodes_lost: set[NodeId] = set()
        self._is_new = True
        self._wake = os.eventfd(1, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._fence = Fence(self.home)
        news = News(self._note, self._tell)
        self._worker = Worker(engine, self.home, self._fence, news, options.period_s)

    def fence(self, epoch: int) -> None:
        """Send this epoch with every order; return once no order of a lower one is carried out.

        Call this before `attempts`. Raise if a higher one is known: another control plane is the
        leader.
        """
        self._fence.raise_to(epoch)

    def fileno(self) -> int:
        """Return a descriptor that is readable while `observations` has something to return."""
        return self._wake

    def start(self, launch: Launch) -> None:
        """Order a start. Repeating an order for the same attempt has no effect."""
        reason = why_unusable(launch) or self._why_no_user(launch)
        reason = reason or self.engine.why_refused(launch)
        if reason is not None:
            at_ms, is_transient = Millis(now_ms()), reason.code in TRANSIENT
            refused = OrderRefused(at_ms, launch.job_id, launch.attempt, reason, is_transient)
            self._refused.append(refused)
            os.eventfd_write(self._wake, 1)
            return
        line = launch_line(launch, self._inherited, "", logs.BYTES_MOST)
        if self._users is not None:
            line["user"] = self._users[launch.team]
        self._worker.put(StartOrder(line))

    def _why_no_user(self, launch: Launch) -> Reason | None:
        if self._users is None or launch.team in self._users:
            return None
        return Reason("no-unix-user", {"team": TeamRef(launch.team)})

    def stop(self, job_id: JobId, attempt: int, grace_ms: Millis) -> None:
        """Send SIGTERM to all members, and kill what is left after `grace_ms`."""
        self._worker.put(HaltOrder(job_id, attempt, grace_ms))

    @property
    def waits_since_s(self) -> float | None:
        """Since when the engine owes an answer, on the monotonic clock; None if it does not."""
        return self._worker.waits_since_s

    def ask(self) -> None:
        """Do nothing: the engine is listed regularly, and that shows whether it answers."""

    def observations(self) -> list[Observation]:
        """Return new observations in order, without waiting."""
        if self._worker.stale is not None:
            raise self._worker.stale
        self._worker.start()
        with suppress(BlockingIOError):
            os.eventfd_read(self._wake)
        found: list[Observation] = list(self._refused)
        self._refused.clear()
        with self._lock:
            notes, self._notes = self._notes, deque()
        if self._is_new:
            self._is_new = False
            lost = [NodeId(node) for node in self.home.nodes_lost()]
            for node in lost:
                found += self._node(node, Millis(now_ms()), lost=True)
            for folder in self.home.unsettled():
                found += self._reports.unreported(folder, folder.end())
        for note in notes:
            found += self._on_note(note)
        return found

    def attempts(self) -> list[AttemptState]:
        """Return every unsettled attempt; what it contains is not reported again."""
        self._worker.start()
        states: list[AttemptState] = []
        for folder in self.home.unsettled():
            state = recorded_state(folder)
            states.append(state)
            self._reports.returned(folder, state)
        return states

    def settle(self, attempts: Sequence[tuple[JobId, int]]) -> None:
        """Remove these from `attempts`: their ends are in the journal."""
        for job_id, number in attempts:
            folder = self.home.attempt(job_id, number)
            if folder.end() is not None:
                folder.settle()
                self._reports.forget(job_id, number)

    def logs(
        self, job_id: JobId, attempt: int, member: int, bytes_most: int = LOG_TAIL_BYTES
    ) -> MemberLog:
        """Return the tail of a member's log; empty if it wrote nothing."""
        return member_log(self.home.attempt(job_id, attempt), member, bytes_most)

    def open_shell(self, job_id: JobId, attempt: int, request: ShellRequest) -> Shell | Reason:
        """Return that this executor opens no shells."""
        return Reason("shell-unsupported")

    def close(self) -> None:
        """Disconnect. Running jobs continue."""
        if self._wake >= 0:
            self._worker.close()
            os.close(self._wake)
            self._wake = -1

    def _note(self, note: Note) -> None:
        """Take a note of the worker, in its thread."""
        with self._lock:
            self._notes.append(note)
        self._tell()

    def _tell(self) -> None:
        if self._wake >= 0:
            os.eventfd_write(self._wake, 1)

    def _on_note(self, note: Note) -> list[Observation]:
        if isinstance(note, NodeChange):
            at_ms = Millis(note.at_ms)
            if note.closed is None:
                return [NodeOpened(at_ms, note.node)]
            return [NodeClosed(at_ms, note.node, reason_of(note.closed))]
        at_ms = Millis(note["at_ms"])
        if "node" in note:
            return self._node(NodeId(note["node"]), at_ms, lost=note["saw"] == "node-lost")
        assert "job" in note, "notes without a node are about an attempt"
        assert "attempt" in note, "notes without a node are about an attempt"
        job_id, attempt = JobId(note["job"]), note["attempt"]
        folder = self.home.attempt(job_id, attempt)
        if "reason" in note:
            reason = reason_of(note["reason"])
            if note["saw"] == "trouble":
                return [ExecutorWarning(at_ms, job_id, attempt, reason)]
            return [OrderRefused(at_ms, job_id, attempt, reason, reason.code in TRANSIENT)]
        if "end" in note:
            return self._reports.ended(folder, checked_end(dict(note["end"]), now_ms()))
        return self._reports.started(folder, at_ms)

    def _node(self, node: NodeId, at_ms: Millis, *, lost: bool) -> list[Observation]:
        if lost == (node in self._nodes_lost):
            return []
        if lost:
            self._nodes_lost.add(node)
            return [NodeUnreachable(at_ms, node)]
        self._nodes_lost.discard(node)
        return [NodeReachable(at_ms, node)]
