"""The thread of an external executor that talks to the engine.

The loop of the control plane never waits for an engine: it leaves orders here, and finds in the
attempt folders and in notes what became of them. What an engine forgot is in the folders, and what
the controller did not write down before it was killed is in the engine's own list, by the mark on
every job. So nothing is submitted that the engine has, and what it has twice runs once, because an
attempt is claimed on a node before it begins.
"""

import json
import logging
import os
import select
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import NamedTuple

from msgspec import Struct

from tenfold.clock.wall import now_ms
from tenfold.live.closed_nodes import DRAINED, FOREIGN
from tenfold.live.external import attempt as files
from tenfold.live.external.attempt import Active, StopOrder
from tenfold.live.external.engine import (
    Engine,
    EngineJob,
    EngineNode,
    EngineRefusal,
    Listing,
    Mark,
    Submission,
    Target,
)
from tenfold.live.external.fence import Fence
from tenfold.live.external.script import NAME
from tenfold.live.local.attempt.folder import AttemptFolder, ExecutorDir, add_to_record, write
from tenfold.live.local.attempt.heartbeat import Heartbeats
from tenfold.live.local.attempt.places import JobFolders
from tenfold.live.local.spawner.orders import refusal_of_start, refused
from tenfold.live.local.spawner.wire import (
    EndLine,
    LaunchLine,
    NoteLine,
    ReasonLine,
    StartedLine,
    StopLine,
)
from tenfold.model.errors import Refused, TenfoldError, Unreachable
from tenfold.model.ids import JobId, NodeId

IDLE_S = 10.0
"""Between two listings while nothing of ours is in the engine. An assumption."""
REST = 10.0
"""A listing is followed by at least this many times its own duration without one."""
TICK_S = 0.1
"""Between two looks for members that are about to start, in files and not in the engine."""
RETRY_S_FIRST, RETRY_S_MOST = 0.5, 15.0
REPEAT_KILL_MS = 5_000
VERDICT_MS = 10_000
"""How long a node may be listed as up after a job of it is over without a result. An assumption."""
STARTS_PER_TURN = 16
"""Starts between two looks at stops and listings."""
END_S = 10.0
CLOSED_NODES = "closed-nodes.json"
"""Which nodes were reported as closed, so that a later controller reports that they are open."""
_LOG = logging.getLogger("tenfold.live")


class StartOrder(Struct, frozen=True):
    """Start an attempt."""

    line: LaunchLine


class HaltOrder(Struct, frozen=True):
    """Stop an attempt."""

    job_id: JobId
    attempt: int
    grace_ms: int


Order = StartOrder | HaltOrder


class NodeChange(Struct, frozen=True):
    """A node is closed to what is ours, or open again."""

    node: NodeId
    at_ms: int
    closed: ReasonLine | None


Note = NoteLine | NodeChange
Emit = Callable[[Note], None]


class News(NamedTuple):
    """What is called in the worker's thread."""

    emit: Emit
    on_stale: Callable[[], None]


class Worker:
    """Carries out orders and lists the engine's jobs, in a thread of its own."""

    def __init__(
        self, engine: Engine, home: ExecutorDir, fence: Fence, news: News, period_s: float
    ) -> None:
        """`period_s` is the least time between two listings while something is in the engine."""
        self._engine, self._home, self._fence = engine, home, fence
        self._emit, self._on_stale = news.emit, news.on_stale
        self._period_s = period_s
        self._lock = Lock()
        self._orders: deque[Order] = deque()
        self._starts: deque[StartOrder] = deque()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._closing = Event()
        self._is_started = False
        self.stale: Refused | None = None
        """Why nothing is ordered any more: another controller leads."""
        self._active: dict[tuple[str, int], Active] = {}
        self._nodes: dict[NodeId, EngineNode] = {}
        self._closed = _closed_nodes(home)
        self._list_at_s = 0.0
        self._retry_s = 0.0
        self._retry_at_s = 0.0
        self.waits_since_s: float | None = None
        """Since when the engine owes an answer; None once it has given it."""
        self._thread = Thread(target=self._run, name=f"{engine.name} orders", daemon=True)

    def start(self) -> None:
        """Take over what is unsettled, and begin; once, and after the epoch is known."""
        if self._is_started:
            return
        self._is_started = True
        self.waits_since_s = time.monotonic()
        for folder in self._home.unsettled():
            self._recover(folder)
        self._thread.start()

    def put(self, order: Order) -> None:
        """Leave an order; this never waits for the engine."""
        self.start()
        with self._lock:
            self._orders.append(order)
        os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        """End the thread; jobs continue."""
        self._closing.set()
        os.eventfd_write(self._wake, 1)
        if self._thread.is_alive():
            self._thread.join(END_S)
        if not self._thread.is_alive():
            os.close(self._wake)
            _LOG.info("%s", self._engine.cost())
            self._engine.close()

    def _recover(self, folder: AttemptFolder) -> None:
        """Take over an attempt of an earlier controller, which may not have noted its handle."""
        record = folder.record()
        launch, started = record.get("launch"), record.get("started")
        if launch is None or folder.end() is not None:
            return
        active = Active(folder=folder, launch=launch, is_maybe_submitted=True)
        active.handle = files.read_handle(folder)
        active.started_ms = None if started is None else started["at_ms"]
        stop = folder.stop()
        if stop is not None:
            active.stop = StopOrder(kill_at_ms=now_ms() + stop["grace_ms"])
        self._watch_heartbeats(active)
        self._active[active.key] = active

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                self._turn()
            except Unreachable as error:
                self._back_off(error)
            except Refused as refused:
                # Another controller leads: nothing is ordered from here any more.
                self.stale = refused
                self._on_stale()
                return
            except Exception:
                _LOG.exception("a cycle of the %s executor failed; it continues", self._engine.name)
                self._closing.wait(RETRY_S_FIRST)
            select.select([self._wake], [], [], self._wait_s())
            with suppress(BlockingIOError):
                os.eventfd_read(self._wake)

    def _back_off(self, error: TenfoldError) -> None:
        if not self._retry_s:
            _LOG.warning("%s does not respond, orders wait: %s", self._engine.name, error)
        self._retry_s = min(max(2 * self._retry_s, RETRY_S_FIRST), RETRY_S_MOST)
        self._retry_at_s = time.monotonic() + self._retry_s

    def _wait_s(self) -> float:
        now_s = time.monotonic()
        if self._retry_s:
            due_s = [self._retry_at_s]
        else:
            due_s = [self._list_at_s]
            due_s += [now_s] if self._starts or self._orders else []
            at_ms = now_ms()
            due_s += [
                now_s + max(active.stop.kill_at_ms - at_ms, 0) / 1_000
                for active in self._active.values()
                if active.stop is not None and not active.stop.killed_ms
            ]
        for active in self._active.values():
            if active.phase == "running" and active.started_ms is None:
                due_s.append(now_s + TICK_S)
            elif active.heartbeats is not None and active.started_ms is not None:
                due_s += [
                    now_s + ms / 1_000 for ms in active.heartbeats.next_check_ms(_steady_ms())
                ]
        return max(min(due_s) - now_s, 0.0)

    def _turn(self) -> None:
        with self._lock:
            orders, self._orders = self._orders, deque()
        for order in orders:
            if isinstance(order, StartOrder):
                self._starts.append(order)
            else:
                self._halt(order)
        self._look_at_files()
        if self._retry_s and time.monotonic() < self._retry_at_s:
            return
        if self.waits_since_s is None:
            self.waits_since_s = time.monotonic()
        if time.monotonic() >= self._list_at_s:
            self._list()
        for _ in range(min(STARTS_PER_TURN, len(self._starts))):
            # Taken off only once it is done: an engine that does not answer is asked again.
            self._start(self._starts[0])
            self._starts.popleft()
        self._carry_out_stops()
        self._submit_again()
        self.waits_since_s = None
        if self._retry_s:
            _LOG.info("%s answers again", self._engine.name)
            self._retry_s = 0.0

    # Starts.

    def _start(self, order: StartOrder) -> None:
        line = order.line
        folder = self._home.attempt(*_key(order))
        active = self._active.get(_key(order))
        self._fence.check()
        if active is None:
            if os.path.isdir(folder.path):
                return
            note = refusal_of_start(self._home, line)
            if note is not None:
                self._emit(note)
                return
        try:
            if active is None:
                active = self._make(folder, order)
            if not active.handle and not active.is_maybe_submitted:
                self._submit(active)
        except OSError as error:
            if active is not None:
                self._forget(active)
            self._emit(refused(folder, "cannot-write", error.strerror or str(error)))

    def _make(self, folder: AttemptFolder, order: StartOrder) -> Active:
        lock = folder.make(order.line)
        if lock is not None:
            os.close(lock)
        active = Active(folder=folder, launch=order.line)
        self._active[active.key] = active
        return active

    def _prepare(self, active: Active) -> None:
        """Write what the members need, unless it was written before."""
        folder, launch = active.folder, active.launch
        if os.path.exists(f"{folder.path}/{NAME}"):
            return
        files.prepare(folder, launch)
        folders = JobFolders(self._home, launch)
        with suppress(OSError):
            # A folder that only the nodes have is entered there.
            files.prepare_folders(folders)
        files.write_script(folder, self._engine.script(launch, folder.path, folders), launch)

    def _submit(self, active: Active) -> None:
        folder = active.folder
        self._fence.check()
        self._prepare(active)
        # From here on the engine may have it, whatever is known of that.
        active.is_maybe_submitted = True
        submission = Submission(launch=active.launch, folder=folder.path, fence=self._fence.epoch)
        try:
            active.handle = self._engine.submit(submission)
        except EngineRefusal as refusal:
            self._forget(active)
            self._emit(refused(folder, refusal.code, refusal.sentence))
        else:
            files.write_handle(folder, active.handle)
            self._watch_heartbeats(active)
            self._list_at_s = min(self._list_at_s, time.monotonic() + self._period_s)

    def _forget(self, active: Active) -> None:
        """Remove an attempt that was refused: nothing of it ever existed."""
        self._active.pop(active.key, None)
        end = files.end_of(active, "", self._engine.name, "refused")
        with suppress(OSError):
            # An end without a marker: the number stays used, and the attempt is over.
            active.folder.write_end(end, durable=False)
            active.folder.settle()

    def _submit_again(self) -> None:
        """Submit attempts that the engine lost, or never got, before they began."""
        at_ms = now_ms()
        for active in list(self._active.values()):
            if active.retry_at_ms and active.retry_at_ms <= at_ms and active.stop is None:
                active.retry_at_ms = 0
                self._submit(active)

    # Stops.

    def _halt(self, order: HaltOrder) -> None:
        key = (order.job_id, order.attempt)
        active = self._active.get(key)
        at_ms = now_ms()
        if active is None:
            folder = self._home.attempt(*key)
            queued = [one for one in self._starts if _key(one) == key]
            if queued:
                self._starts.remove(queued[0])
                self._stop_unsubmitted(folder, queued[0])
            elif not os.path.isdir(folder.path):
                sentence = f"attempt {order.attempt} of `{order.job_id}` never started here"
                self._emit(refused(folder, "no-such-attempt", sentence))
            return
        kill_at_ms = at_ms + order.grace_ms
        if active.stop is None or active.stop.how != "stopped":
            active.stop = StopOrder(kill_at_ms=kill_at_ms)
        else:
            active.stop.kill_at_ms = min(active.stop.kill_at_ms, kill_at_ms)
        stop: StopLine = {
            "grace_ms": max(active.stop.kill_at_ms - at_ms, 0),
            "cause": "stopped",
            "sentence": "it was stopped",
        }
        with suppress(OSError):
            active.folder.write_stop(stop)
        if not active.handle and not active.is_maybe_submitted:
            self._end(active, files.end_of(active, "", self._engine.name, "never submitted"))
        else:
            # Whether it waits or runs decides how it is stopped.
            self._list_at_s = min(self._list_at_s, time.monotonic())

    def _stop_unsubmitted(self, folder: AttemptFolder, order: StartOrder) -> None:
        """End an attempt whose start was not carried out yet."""
        note = refusal_of_start(self._home, order.line)
        if note is not None:
            self._emit(note)
            return
        active = self._make(folder, order)
        active.stop = StopOrder(kill_at_ms=now_ms())
        self._end(active, files.end_of(active, "", self._engine.name, "never submitted"))

    def _carry_out_stops(self) -> None:
        at_ms = now_ms()
        for active in list(self._active.values()):
            stop = active.stop
            if stop is None or not active.handle:
                continue
            self._fence.check()
            self._carry_out_stop(active, stop, at_ms)

    def _carry_out_stop(self, active: Active, stop: StopOrder, at_ms: int) -> None:
        if active.phase == "waiting":
            if not stop.killed_ms or at_ms - stop.killed_ms >= REPEAT_KILL_MS:
                stop.killed_ms = at_ms
                self._engine.cancel(active.handle)
                self._list_at_s = min(self._list_at_s, time.monotonic() + self._period_s)
            return
        if active.phase != "running":
            return
        if stop.kill_at_ms > at_ms:
            if not stop.terminated:
                stop.terminated = True
                self._engine.terminate(_target(active))
        elif not stop.killed_ms or at_ms - stop.killed_ms >= REPEAT_KILL_MS:
            is_repeated, stop.killed_ms = bool(stop.killed_ms), at_ms
            self._engine.kill(_target(active), is_repeated=is_repeated)
            self._list_at_s = min(self._list_at_s, time.monotonic() + self._period_s)

    # Listings.

    def _list(self) -> None:
        began_s = time.monotonic()
        unknown = [active for active in self._active.values() if active.is_maybe_submitted]
        listing = self._engine.listing()
        took_s = time.monotonic() - began_s
        self._on_node_states(listing)
        jobs: dict[Mark, list[EngineJob]] = {}
        handles: dict[str, EngineJob] = {}
        for job in listing.jobs:
            jobs.setdefault(job.mark, []).append(job)
            handles[job.handle] = job
        for active in unknown:
            mark = Mark(JobId(active.folder.job), active.folder.number)
            self._on_listed(active, jobs.get(mark, []), handles)
        for mark, found in jobs.items():
            if (mark.job_id, mark.attempt) not in self._active:
                self._end_strays(mark, found)
        wait_s = self._period_s if self._active else max(IDLE_S, self._period_s)
        self._list_at_s = time.monotonic() + max(wait_s, REST * took_s)

    def _on_listed(
        self, active: Active, found: list[EngineJob], handles: dict[str, EngineJob]
    ) -> None:
        if not active.handle and found:
            active.handle = _runs(active, found).handle
            files.write_handle(active.folder, active.handle)
            self._watch_heartbeats(active)
        job = handles.get(active.handle)
        for other in found:
            if job is not None and other.handle != job.handle and other.phase == "waiting":
                # A second submission of the same attempt; it could not run anyway.
                self._engine.cancel(other.handle)
        if job is None:
            self._on_missing(active)
            return
        active.phase = job.phase
        self._look_for_start(active)
        lost = [
            NodeId(member["node"])
            for member in active.launch["members"]
            if (node := self._nodes.get(NodeId(member["node"]))) is not None and not node.is_up
        ]
        if job.phase == "over":
            is_unclear = not job.cause and not self._has_all(active)
            if is_unclear and not lost and active.stop is None and self._may_wait(active):
                return
            cause = "node-lost" if lost and is_unclear else job.cause
            state = job.state
            self._end(active, files.end_of(active, cause, self._engine.name, state))
        elif lost and job.state == "ending":
            self._end(active, files.end_of(active, "node-lost", self._engine.name, job.state))

    def _may_wait(self, active: Active) -> bool:
        """Return whether an end without a result can still turn out to be that of a lost node."""
        at_ms = now_ms()
        active.unclear_ms = active.unclear_ms or at_ms
        return at_ms - active.unclear_ms < VERDICT_MS

    def _has_all(self, active: Active) -> bool:
        return all(
            os.path.exists(f"{active.folder.path}/{rank}.exit") for rank in range(active.members)
        )

    def _on_missing(self, active: Active) -> None:
        """Handle an attempt that the engine does not list."""
        if files.is_claimed(active.folder):
            self._end(active, files.end_of(active, "", self._engine.name, ""))
        elif active.stop is not None:
            self._end(active, files.end_of(active, "", self._engine.name, "never began"))
        elif not active.retry_at_ms:
            # It never began, and cannot begin twice: the claim decides.
            active.handle, active.phase = "", "waiting"
            active.retry_at_ms = now_ms()

    def _end_strays(self, mark: Mark, found: list[EngineJob]) -> None:
        """Cancel what waits in the engine for an attempt that is over: it could not run anyway."""
        for job in found:
            folder = self._home.attempt(mark.job_id, mark.attempt)
            if job.phase == "waiting" and folder.end() is not None:
                self._engine.cancel(job.handle)

    def _on_node_states(self, listing: Listing) -> None:
        for node in listing.nodes:
            before = self._nodes.get(node.id)
            self._on_closed(node)
            was_lost = self._home.is_lost(node.id)
            if was_lost == node.is_up:
                self._home.mark_node(node.id, lost=not node.is_up)
                saw = "node-back" if node.is_up else "node-lost"
                self._emit({"saw": saw, "at_ms": now_ms(), "node": node.id})
            if before != node:
                self._nodes[node.id] = node

    def _on_closed(self, node: EngineNode) -> None:
        """Report that nothing of ours can start on a node, and that it can again."""
        closed = _closed(node, self._engine.name)
        if (closed is None) == (node.id not in self._closed):
            return
        if closed is None:
            self._closed.remove(node.id)
        else:
            self._closed.add(node.id)
        self._emit(NodeChange(node.id, now_ms(), closed))
        write(f"{self._home.path}/{CLOSED_NODES}", json.dumps(sorted(self._closed)))

    # Files.

    def _look_at_files(self) -> None:
        for active in list(self._active.values()):
            if active.phase == "running" and active.started_ms is None:
                self._look_for_start(active)
            if active.heartbeats is None or active.started_ms is None or active.stop is not None:
                continue
            at_ms = _steady_ms()
            hung = active.heartbeats.hung_member(at_ms, list(range(active.members)))
            if hung is not None:
                silence_s = active.heartbeats.silence_ms(hung, at_ms) / 1_000
                sentence = f"process {hung} sent no heartbeat for {silence_s:.1f} s"
                active.stop = StopOrder(
                    kill_at_ms=now_ms(),
                    how="silent",
                    reason={"code": "silent", "sentence": sentence},
                )

    def _look_for_start(self, active: Active) -> None:
        if active.started_ms is not None:
            return
        started_ms = files.started_ms_of(active)
        if started_ms is None:
            return
        active.started_ms = started_ms
        self._watch_heartbeats(active)
        line: StartedLine = {
            "at_ms": started_ms,
            "pids": [],
            "port": 0,
            "limits": self._engine.name,
        }
        with suppress(OSError):
            record = os.open(
                f"{active.folder.path}/record", os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
            )
            try:
                add_to_record(record, {"started": line})
            finally:
                os.close(record)
        job, attempt = active.key
        self._emit({"saw": "started", "at_ms": started_ms, "job": job, "attempt": attempt})

    def _watch_heartbeats(self, active: Active) -> None:
        most_ms = active.launch["silent_ms_most"]
        if most_ms is not None and active.started_ms is not None:
            active.heartbeats = Heartbeats(
                active.folder.path, active.members, most_ms, _steady_ms()
            )

    def _end(self, active: Active, end: EndLine) -> None:
        active.folder.write_end(end)
        self._active.pop(active.key, None)
        job, attempt = active.key
        self._emit(
            {"saw": "ended", "at_ms": end["at_ms"], "job": job, "attempt": attempt, "end": end}
        )


def _closed(node: EngineNode, engine: str) -> ReasonLine | None:
    """Return why nothing new of ours can start on a node."""
    if node.closed:
        return {"code": DRAINED, "sentence": f"{engine} says `{node.closed}`"}
    if node.foreign:
        first, *others = node.foreign
        more = f" and {len(others)} more" if others else ""
        return {"code": FOREIGN, "sentence": f"{engine} job {first}{more}"}
    return None


def _closed_nodes(home: ExecutorDir) -> set[NodeId]:
    """Return the nodes that an earlier controller reported as closed."""
    with suppress(OSError, ValueError), open(f"{home.path}/{CLOSED_NODES}", "rb") as file:
        return {NodeId(str(name)) for name in json.load(file)}
    return set()


def _target(active: Active) -> Target:
    return Target(handle=active.handle, folder=active.folder.path, members=active.members)


def _key(order: StartOrder) -> tuple[str, int]:
    return order.line["job"], order.line["attempt"]


def _runs(active: Active, found: list[EngineJob]) -> EngineJob:
    """Return the job that runs an attempt: the one that claimed it, or else the first."""
    owner = files.owner_of(active.folder)
    return next((job for job in found if job.handle == owner), found[0])


def _steady_ms() -> int:
    return time.monotonic_ns() // 1_000_000
