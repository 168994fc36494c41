"""The spawner: forks a supervisor per attempt, and reports outcomes to its clients.

Its state is all in the attempt folders: after a restart it finds live supervisors by their locks.
It imports very little, because every supervisor is a copy of it. A supervisor whose attempt ended
by itself is given another one, if there is one soon. There is one spawner per state directory, by a
lock; it exits by itself when no client is connected and nothing runs.

Started by `link`, without site packages: `main(home, ready)`.
"""

import fcntl
import gc
import os
import resource
import select
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from tenfold.clock.wall import now_ms
from tenfold.live.local.attempt.folder import AttemptFolder, ExecutorDir
from tenfold.live.local.attempt.repair import is_planted, move_planted, restore
from tenfold.live.local.member.limits import PREFIX, ResourceLimits, detect_limits
from tenfold.live.local.member.members import BLOCKED_SIGNALS, HANDLED_SIGNALS, open_pipe
from tenfold.live.local.processes import become_subreaper, children, kill, reap
from tenfold.live.local.spawner.clients import SOCKET, Clients
from tenfold.live.local.spawner.forked import LINK_FILE, LOCK_FILE, run_forked
from tenfold.live.local.spawner.handover import ATTEMPT_OVER, BYTES_MOST, SpawnerChannel, open_link
from tenfold.live.local.spawner.log import limit_log, log
from tenfold.live.local.spawner.notes import BYTES_MOST as NOTE_BYTES_MOST
from tenfold.live.local.spawner.notes import open_notes
from tenfold.live.local.spawner.orders import refusal_of_start, refused
from tenfold.live.local.spawner.orphan_reaper import reap_orphan
from tenfold.live.local.spawner.supervisor_pool import SupervisorPool
from tenfold.live.local.spawner.watch import SupervisorWatch, watch_supervisor
from tenfold.live.local.spawner.wire import (
    PROTOCOL,
    LaunchLine,
    NoteLine,
    OrderLine,
    StopLine,
    parsed,
)
from tenfold.live.local.supervisor import supervise

LOCK = "spawner.lock"
IDLE_S = 10.0
LATER_S = 0.05
EXIT_MS_MOST = 1_000


def main(home: str, ready: int) -> None:
    """Serve one state directory until it is not needed. `ready` is closed once it listens."""
    os.umask(0o077)
    state = ExecutorDir(home)
    state.prepare()
    lock = os.open(f"{state.path}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    os.chdir(state.path)
    _, files_most = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Two descriptors for each supervisor.
    resource.setrlimit(resource.RLIMIT_NOFILE, (files_most, files_most))
    become_subreaper()
    status = os.stat(state.path)
    limits = detect_limits(f"{PREFIX}{status.st_dev:x}-{status.st_ino:x}")
    spawner = _Spawner(state, limits)
    spawner.adopt()
    os.close(ready)
    limits.remove_abandoned(now_ms() / 1_000)
    gc.freeze()
    spawner.run()


class _Spawner:
    def __init__(self, home: ExecutorDir, limits: ResourceLimits) -> None:
        self._home = home
        self._limits = limits
        self._poll = select.epoll()
        self._signals = _open_signal_pipe()
        self._notes = open_notes(home.path)
        self._clients = Clients(self._poll, self._hello)
        self._watched: dict[int, SupervisorWatch] = {}
        self._links: dict[int, SupervisorWatch] = {}
        self._pool = SupervisorPool()
        self._pids: set[int] = set()
        self._retry: list[AttemptFolder] = []
        self._failed: set[str] = set()
        """Attempts whose handling failed and was logged."""
        self._partial = b""
        self._leaving = False
        self._epoch = home.fence()
        """Orders of lower epochs come from a control plane that no longer leads."""
        for file in (self._signals, self._notes):
            self._poll.register(file, select.EPOLLIN)

    def adopt(self) -> None:
        """Watch live supervisors, and reap attempts with neither supervisor nor end."""
        unsettled = self._home.unsettled()
        for folder in unsettled:
            self._watch_or_reap(folder)
        self._limits.sweep(frozenset(os.path.basename(folder.marker) for folder in unsettled))

    def run(self) -> None:
        while not self._leaving:
            ready = self._poll.poll(self._wait_s())
            if not ready and self._is_idle():
                break
            files = {file for file, _ in ready}
            # Notes first: a start is reported before the end that follows.
            if self._notes in files or not files.isdisjoint(self._watched):
                self._pass_on_notes()
            if self._signals in files:
                self._reap()
            for file, events in ready:
                self._on_ready(file, events)
            retry, self._retry = self._retry, []
            for folder in retry:
                self._watch_or_reap(folder)
            self._clients.flush()
            self._pool.release_expired(time.monotonic())
            limit_log(self._home.path)
        if all(watched.is_over for watched in self._watched.values()):
            for watched in self._watched.values():
                # Idle, so it exits at once: its group can be removed after that.
                watched.release()
                exited = select.poll()
                exited.register(watched.file, select.POLLIN)
                exited.poll(EXIT_MS_MOST)
            self._limits.leave()
        os.unlink(SOCKET)

    def _on_ready(self, file: int, events: int) -> None:
        if file in self._links:
            self._receive(self._links[file])
        elif file in self._watched:
            self._on_supervisor_exit(self._watched.pop(file))
        elif file not in (self._notes, self._signals):
            for client, text in self._clients.on_ready(file, events):
                self._handle_order(client, text)

    def _is_idle(self) -> bool:
        return not (self._watched or self._retry or self._clients.any)

    def _wait_s(self) -> float | None:
        if self._retry:
            return LATER_S
        return IDLE_S if self._is_idle() else self._pool.wait_s(time.monotonic())

    # Orders.

    def _handle_order(self, client: int, text: bytes) -> None:
        try:
            order = cast(OrderLine, parsed(text))
            if self._is_stale(order):
                log(f"order of epoch {order.get('epoch', 0)} refused, {self._epoch} leads")
                stale: NoteLine = {"saw": "refused", "at_ms": now_ms(), "order": order["order"]}
                self._clients.send(client, {**stale, "epoch": self._epoch})
                return
            known = self._carry_out(order)
        except Exception as error:
            # Every job depends on this process: no order may end it.
            log(f"order failed: {error!r}")
            self._refuse_failed(text, error)
            return
        ack: NoteLine = {"saw": "taken", "at_ms": now_ms(), "order": order["order"]}
        if known is not None:
            ack["known"] = True
            ack["job"], ack["attempt"] = known.job, known.number
        self._clients.send(client, ack)

    def _is_stale(self, order: OrderLine) -> bool:
        """Tell whether an order is of a control plane that no longer leads; raise the fence."""
        epoch = order.get("epoch", 0)
        if order["do"] == "fence" and epoch > self._epoch:
            # On disk before the answer: no later spawner may forget it.
            self._home.raise_fence(epoch)
            self._epoch = epoch
        return order["do"] != "leave" and epoch < self._epoch

    def _refuse_failed(self, text: bytes, error: Exception) -> None:
        """Report a start that failed here: without an answer its job would wait for ever."""
        with suppress(Exception):
            launch = parsed(text)["launch"]
            folder = self._home.attempt(launch["job"], launch["attempt"])
            sentence = f"cannot start: {type(error).__name__}: {error}"[:300]
            self._clients.broadcast(refused(folder, "start-failed", sentence))

    def _carry_out(self, order: OrderLine) -> AttemptFolder | None:
        """Carry out an order; return the attempt if it already existed."""
        if order["do"] == "start":
            return self._start(order["launch"])
        if order["do"] == "stop":
            self._stop(order["job"], order["attempt"], order["stop"])
        elif order["do"] == "leave":
            self._leaving = True
        elif order["do"] != "fence":
            self._mark_node(order["node"], lost=order["do"] == "lose-node")
        return None

    def _start(self, launch: LaunchLine) -> AttemptFolder | None:
        folder = self._home.attempt(launch["job"], launch["attempt"])
        lock: int | None = None
        try:
            if os.path.isdir(folder.path):
                if not is_planted(folder):
                    return folder
                move_planted(folder)
            refusal = refusal_of_start(self._home, launch)
            if refusal is None:
                lock = folder.make(launch)
        except OSError as error:
            why = os.strerror(error.errno or 0)
            sentence = f"cannot create the attempt folder: {why}"
            refusal = refused(folder, "cannot-write", sentence)
        if refusal is not None:
            self._clients.broadcast(refusal)
        else:
            assert lock is not None, "only this process makes folders"
            self._begin(folder, lock)
        return None

    def _stop(self, job: str, attempt: int, stop: StopLine) -> None:
        folder = self._home.attempt(job, attempt)
        for watched in self._watched.values():
            if watched.supervises(folder):
                watched.stop(stop)
                return
        if not os.path.isdir(folder.path):
            sentence = f"attempt {attempt} of `{job}` was never started here"
            self._clients.broadcast(refused(folder, "no-such-attempt", sentence))
            return
        # Not watched yet, or ended: a future watcher reads this.
        folder.write_stop(stop)

    def _mark_node(self, node: str, *, lost: bool) -> None:
        self._home.mark_node(node, lost=lost)
        self._clients.broadcast(
            {"saw": "node-lost" if lost else "node-back", "at_ms": now_ms(), "node": node}
        )
        if lost:
            stop: StopLine = {
                "grace_ms": 0,
                "cause": "node-lost",
                "sentence": f"node `{node}` was lost",
            }
            for watched in list(self._watched.values()):
                if not watched.is_over and node in watched.nodes:
                    watched.stop(stop)

    # Supervisors.

    def _begin(self, folder: AttemptFolder, lock: int) -> None:
        """Assign an attempt to an idle supervisor, or to a new one."""
        watched = self._pool.assign(folder, lock)
        if watched is not None and watched.link is not None:
            os.close(lock)
            self._watched[watched.file] = self._links[watched.link.fileno()] = watched
            return
        try:
            ours, theirs = open_link()
        except OSError:
            self._fork(folder, [lock], lambda: supervise(folder, LOCK_FILE, self._limits))
            return

        def work() -> None:
            supervise(folder, LOCK_FILE, self._limits, SpawnerChannel(LINK_FILE))

        self._fork(folder, [lock, theirs.detach()], work, ours)

    def _fork(
        self,
        folder: AttemptFolder,
        kept: list[int],
        work: Callable[[], None],
        link: socket.socket | None = None,
    ) -> None:
        """Fork a process with these descriptors, the lock first, and watch it."""
        signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED_SIGNALS)
        try:
            pid = os.fork()
        except OSError:
            pid = -1
        if pid == 0:
            run_forked(kept, work)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, BLOCKED_SIGNALS)
        for file in kept:
            os.close(file)
        if pid < 0:
            self._retry.append(folder)
            return
        self._pids.add(pid)
        try:
            self._watch(SupervisorWatch(folder, pid, os.pidfd_open(pid), link))
        except OSError:
            self._retry.append(folder)

    def _watch(self, watched: SupervisorWatch) -> None:
        self._watched[watched.file] = watched
        self._pids.add(watched.pid)
        self._poll.register(watched.file, select.EPOLLIN)
        if watched.link is not None:
            self._links[watched.link.fileno()] = watched
            self._poll.register(watched.link, select.EPOLLIN)

    def _receive(self, watched: SupervisorWatch) -> bool:
        """Forward a supervisor's message; False if there is none."""
        assert watched.link is not None, "only a watch with a link receives"
        try:
            text = watched.link.recv(BYTES_MOST)
        except BlockingIOError:
            return False
        except OSError:
            text = b""
        if not text:
            self._unlink(watched)
            return False
        self._clients.broadcast_line(text[1:])
        if text[:1] == ATTEMPT_OVER:
            watched.is_over = True
            self._pool.add_idle(watched, time.monotonic())
        return True

    def _unlink(self, watched: SupervisorWatch) -> None:
        if watched.link is not None:
            self._poll.unregister(watched.link)
            del self._links[watched.link.fileno()]
            watched.link.close()
            watched.link = None

    def _watch_or_reap(self, folder: AttemptFolder) -> None:
        """Watch a supervisor of another spawner; reap an attempt without lock and end.

        One attempt that cannot be handled is tried again, and does not end this process.
        """
        try:
            self._watch_or_reap_now(folder)
        except Exception as error:
            if folder.marker not in self._failed:
                self._failed.add(folder.marker)
                log(f"attempt {folder.number} of `{folder.job}` cannot be handled: {error!r}")
            self._retry.append(folder)

    def _watch_or_reap_now(self, folder: AttemptFolder) -> None:
        if folder.is_locked():
            found = watch_supervisor(folder)
            if found is None:
                self._retry.append(folder)
            else:
                self._watch(found)
                found.signal_stop()
        elif folder.end() is None:
            restore(folder)
            lock = folder.take_lock()
            self._fork(folder, [lock], lambda: reap_orphan(folder, LOCK_FILE, self._limits))

    def _on_supervisor_exit(self, watched: SupervisorWatch) -> None:
        while watched.link is not None and self._receive(watched):
            """Its last messages come before its end."""
        self._unlink(watched)
        self._pool.forget(watched)
        self._poll.unregister(watched.file)
        os.close(watched.file)
        self._pids.discard(watched.pid)
        _reap_one(watched.pid)
        if watched.is_over:
            self._remove_own_group(watched.folder)
            return
        end = watched.folder.end()
        if end is None:
            self._kill_strays()
            self._retry.append(watched.folder)
            return
        self._remove_own_group(watched.folder)
        self._clients.broadcast(
            {
                "saw": "ended",
                "at_ms": end["at_ms"],
                "job": watched.folder.job,
                "attempt": watched.folder.number,
                "end": end,
            }
        )

    def _remove_own_group(self, folder: AttemptFolder) -> None:
        """Remove the group of a supervisor that has exited; what is left of it, a sweep removes."""
        with suppress(OSError):
            name = folder.record().get("group")
            if name is not None:
                self._limits.group(name).remove()

    def _reap(self) -> None:
        numbers = _drain(self._signals)
        self._leaving |= signal.SIGTERM in numbers or signal.SIGINT in numbers
        if any(pid not in self._pids for pid, _ in reap() or []):
            self._kill_strays()

    def _kill_strays(self) -> None:
        """Kill processes of dead supervisors: every child that is not one of our forks."""
        for pid in children(os.getpid()):
            if pid not in self._pids:
                kill(pid)

    def _pass_on_notes(self) -> None:
        text = self._partial + _drain(self._notes)
        *lines, partial = text.split(b"\n")
        # A line is written whole. What is longer was not written by a supervisor.
        self._partial = partial if len(partial) <= NOTE_BYTES_MOST else b""
        for one in lines:
            self._clients.broadcast_line(one + b"\n")

    def _hello(self) -> NoteLine:
        return {
            "saw": "hello",
            "at_ms": now_ms(),
            "protocol": PROTOCOL,
            "pid": os.getpid(),
            "limits": self._limits.kind,
            "memory": self._limits.memory,
        }


def _open_signal_pipe() -> int:
    reader, writer = open_pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    # A control plane started in the background or with nohup ignores some signals. Jobs must not
    # inherit that.
    for number in signal.valid_signals():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    for number in HANDLED_SIGNALS:
        signal.signal(number, _ignore_signal)
    return reader


def _ignore_signal(_number: int, _frame: object) -> None:
    """The wakeup pipe has it; supervisors inherit this handler."""


def _drain(file: int) -> bytes:
    parts: list[bytes] = []
    try:
        while part := os.read(file, 65_536):
            parts.append(part)
    except BlockingIOError:
        pass
    return b"".join(parts)


def _reap_one(pid: int) -> None:
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
