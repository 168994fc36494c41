"""The local executor: sends orders to the spawner, and reads attempt folders as observations.

The folders are authoritative; the spawner's notes only save time. After every new connection all
unsettled attempts are read, and anything new is reported.
"""

import os
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress

from tenfold.clock.wall import now_ms
from tenfold.live.executor import (
    LOG_TAIL_BYTES,
    AttemptState,
    ExecutorWarning,
    Launch,
    MemberLog,
    NodeReachable,
    NodeUnreachable,
    Observation,
    OrderRefused,
    Shell,
    ShellRequest,
)
from tenfold.live.local.attempt import logs
from tenfold.live.local.attempt.environment import inherited
from tenfold.live.local.attempt.folder import AttemptFolder, ExecutorDir
from tenfold.live.local.attempt.reports import (
    Reports,
    end_observation,
    member_log,
    reason_of,
    state_with,
)
from tenfold.live.local.member.images import runtime_variables
from tenfold.live.local.member.limits import PIDS_MOST
from tenfold.live.local.member.team_users import TeamUsers
from tenfold.live.local.shells import open_shell
from tenfold.live.local.spawner.launches import launch_line, user_of, why_refused
from tenfold.live.local.spawner.link import SpawnerLink
from tenfold.live.local.spawner.wire import NoteLine, StopLine, checked_end
from tenfold.model.errors import Refused
from tenfold.model.ids import JobId, NodeId
from tenfold.model.reason import Reason
from tenfold.model.units import Millis

TRANSIENT = ("cannot-write", "earlier-attempt-lives", "node-is-lost")
"""Refusals whose cause may go away."""


class LocalExecutor:
    """Runs gangs as processes on this machine. `close` leaves them running."""

    def __init__(
        self,
        home: str,
        *,
        environment: Mapping[str, str] | None = None,
        log_bytes_most: int = logs.BYTES_MOST,
        users: TeamUsers | None = None,
        pids_most: int = PIDS_MOST,
    ) -> None:
        self.home = ExecutorDir(home)
        self.home.prepare()
        own = os.environ if environment is None else environment
        self._inherited = inherited(own)
        self._runtime_env = runtime_variables(own)
        self._log_bytes_most = log_bytes_most
        self._users = users
        self._pids_most = pids_most
        self._refused: deque[OrderRefused] = deque()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._reports = Reports()
        self._nodes_lost: dict[NodeId, Millis] = {}
        self._connection_read = 0
        self._early_notes: list[NoteLine] = []
        self.link = SpawnerLink(self.home)
        # Whoever has no epoch of its own acts for the control plane that leads now.
        self.link.epoch = self.home.fence()
        self.link.wake_on(self._wake)
        self.link.connect()
        os.eventfd_write(self._wake, 1)

    def fence(self, epoch: int) -> None:
        """Send this epoch with every order; return once no order of a lower one is carried out."""
        self.link.epoch = epoch
        self._early_notes += self.link.call({"order": 0, "do": "fence"})
        for note in self._early_notes:
            _raise_if_stale(note, epoch)
        if self._users is not None:
            # The control plane before may have given users to teams.
            self._users.reload()

    @property
    def limits(self) -> str:
        """How limits are enforced: `cgroup-v2`, `cgroup-v1` or `prlimit`."""
        return self.link.limits

    @property
    def memory_scope(self) -> str:
        """Whether memory limits are those of a `job` or of each `process`; empty if unknown."""
        return self.link.memory

    def fileno(self) -> int:
        """Return a descriptor that is readable while `observations` has something to return."""
        return self.link.fileno()

    def start(self, launch: Launch) -> None:
        """Order a start. Repeating an order for the same attempt has no effect."""
        runtime, reason = why_refused(launch, self._inherited["PATH"])
        user = None
        if reason is None:
            user, reason = user_of(launch, self._users)
        if reason is not None:
            self._refuse(launch, reason)
            return
        line = launch_line(launch, self._inherited, runtime, self._log_bytes_most)
        if self._pids_most:
            line["pids_most"] = self._pids_most
        if runtime:
            line["runtime_env"] = self._runtime_env
        if user is not None:
            line["user"] = user
        self.link.send({"order": 0, "do": "start", "launch": line})

    def _refuse(self, launch: Launch, reason: Reason) -> None:
        is_transient = reason.code in TRANSIENT
        at_ms = Millis(now_ms())
        self._refused.append(
            OrderRefused(at_ms, launch.job_id, launch.attempt, reason, is_transient)
        )
        os.eventfd_write(self._wake, 1)

    def stop(self, job_id: JobId, attempt: int, grace_ms: Millis) -> None:
        """Send SIGTERM to all members, and kill what is left after `grace_ms`."""
        stop: StopLine = {"grace_ms": grace_ms, "cause": "stopped", "sentence": "it was stopped"}
        self.link.send({"order": 0, "do": "stop", "job": job_id, "attempt": attempt, "stop": stop})

    @property
    def waits_since_s(self) -> float | None:
        """Since when the spawner owes an answer, on the monotonic clock; None if it does not."""
        return self.link.waits_since_s

    def ask(self) -> None:
        """Ask the spawner for a sign of life; `waits_since_s` tells whether it answered."""
        self.link.ask()

    def lose_node(self, node: NodeId) -> None:
        """Mark a node as lost: its processes are killed, and starts there are refused."""
        self.link.send({"order": 0, "do": "lose-node", "node": node})

    def restore_node(self, node: NodeId) -> None:
        """Mark a lost node as back."""
        self.link.send({"order": 0, "do": "restore-node", "node": node})

    def stop_spawner(self) -> None:
        """Ask the spawner to exit; jobs continue, and the next order starts another one."""
        self.link.send({"order": 0, "do": "leave"})

    def observations(self) -> list[Observation]:
        """Return new observations in order, without waiting."""
        notes, self._early_notes = [*self._early_notes, *self.link.receive()], []
        with suppress(BlockingIOError):
            os.eventfd_read(self._wake)
        found: list[Observation] = list(self._refused)
        self._refused.clear()
        if self._connection_read != self.link.connections:
            # Notes of the previous spawner may have been lost with it.
            self._connection_read = self.link.connections
            found += self._lost_nodes()
            for folder in self.home.unsettled():
                found += self._unreported(folder)
        for note in notes:
            _raise_if_stale(note, self.link.epoch)
            # Without team users a job can write to the pipe of notes. The folders have what is so.
            with suppress(KeyError, TypeError, ValueError):
                found += self._on_note(note)
        return found

    def attempts(self) -> list[AttemptState]:
        """Return every unsettled attempt; what it contains is not reported again."""
        states: list[AttemptState] = []
        for folder in self.home.unsettled():
            state = state_of(folder)
            states.append(state)
            self._reports.returned(folder, state)
        return states

    def settle(self, attempts: Sequence[tuple[JobId, int]]) -> None:
        """Remove these from `attempts`: their ends are in the journal."""
        for job_id, number in attempts:
            folder = self.home.attempt(job_id, number)
            if not folder.is_locked() and folder.end() is not None:
                folder.settle()
                self._reports.forget(job_id, number)

    def logs(
        self, job_id: JobId, attempt: int, member: int, bytes_most: int = LOG_TAIL_BYTES
    ) -> MemberLog:
        """Return the tail of a member's log; empty if it wrote nothing."""
        return member_log(self.home.attempt(job_id, attempt), member, bytes_most)

    def open_shell(self, job_id: JobId, attempt: int, request: ShellRequest) -> Shell | Reason:
        """Run a command beside a member of a running attempt; return why not if it cannot."""
        return open_shell(self.home, job_id, attempt, request)

    def close(self) -> None:
        """Disconnect from the spawner. Running jobs continue."""
        if self._wake >= 0:
            self.link.close()
            os.close(self._wake)
            self._wake = -1

    def _on_note(self, note: NoteLine) -> list[Observation]:
        at_ms = Millis(note["at_ms"])
        if "node" in note:
            return self._node(NodeId(note["node"]), at_ms, lost=note["saw"] == "node-lost")
        if "job" not in note or "attempt" not in note:
            return []
        job_id, attempt = JobId(note["job"]), note["attempt"]
        if note["saw"] in ("refused", "trouble") and "reason" in note:
            reason = reason_of(note["reason"])
            if note["saw"] == "trouble":
                return [ExecutorWarning(at_ms, job_id, attempt, reason)]
            is_transient = reason.code in TRANSIENT
            return [OrderRefused(at_ms, job_id, attempt, reason, is_transient)]
        folder = self.home.attempt(job_id, attempt)
        if note["saw"] == "started":
            return self._reports.started(folder, at_ms)
        if note["saw"] == "ended" and "end" in note:
            return self._reports.ended(folder, checked_end(dict(note["end"]), now_ms()))
        return self._unreported(folder)

    def _lost_nodes(self) -> list[Observation]:
        """Return unreported changes of lost nodes."""
        lost = [NodeId(node) for node in self.home.nodes_lost()]
        at_ms = Millis(now_ms())
        found = [one for node in lost for one in self._node(node, at_ms, lost=True)]
        for node in [node for node in self._nodes_lost if node not in lost]:
            found += self._node(node, at_ms, lost=False)
        return found

    def _node(self, node: NodeId, at_ms: Millis, *, lost: bool) -> list[Observation]:
        if lost == (node in self._nodes_lost):
            return []
        if lost:
            self._nodes_lost[node] = at_ms
            return [NodeUnreachable(at_ms, node)]
        del self._nodes_lost[node]
        return [NodeReachable(at_ms, node)]

    def _unreported(self, folder: AttemptFolder) -> list[Observation]:
        """Return what a folder contains and was not reported yet."""
        return self._reports.unreported(folder, None if folder.is_locked() else folder.end())


def _raise_if_stale(note: NoteLine, epoch: int) -> None:
    """Raise if the spawner refused an order because another control plane is the leader."""
    leads = note.get("epoch")
    if note["saw"] == "refused" and isinstance(leads, int) and leads > epoch:
        raise Refused(
            "orders-refused",
            f"a control plane of epoch {leads} gives orders to the spawner; this one has {epoch}",
            "stop this control plane: the other one is active",
        )


def state_of(folder: AttemptFolder) -> AttemptState:
    """Return the state of an attempt. The lock is checked before the end."""
    held = folder.is_locked()
    end = None if held else folder.end()
    observation = end_observation(folder, end) if end else None
    return state_with(folder, "starting" if held else "orphaned", observation)
