"""The supervisor: one process per attempt that starts, watches and stops its members.

It is a fork of the spawner and outlives it. Once an attempt has ended by itself, the spawner may
give it another, one at a time. A gang starts and ends together: the first member that fails stops
the others, and its exit is that of the attempt. Whatever members leave behind is killed once all of
them have exited.
"""

import os
import select
import signal
import socket
import time
from contextlib import suppress
from typing import NamedTuple

from tenfold.clock.wall import now_ms
from tenfold.live.local.attempt.ending import end_line, write_end
from tenfold.live.local.attempt.environment import ADDRESS, member_environment
from tenfold.live.local.attempt.folder import AttemptFolder, add_to_record
from tenfold.live.local.attempt.heartbeat import Heartbeats, touch_heartbeat
from tenfold.live.local.attempt.logs import LogWriter
from tenfold.live.local.attempt.own_folders import chown_root_leftovers
from tenfold.live.local.attempt.places import JobFolders
from tenfold.live.local.attempt.recent_ends import RecentEnds
from tenfold.live.local.member.containers import (
    container_inits,
    remove_containers,
    runtime_failure,
    wait_for_cleanup,
)
from tenfold.live.local.member.images import container_command, is_podman, shell_command
from tenfold.live.local.member.limits import AttemptCgroup, ResourceLimits, SupervisorGroup
from tenfold.live.local.member.members import (
    BLOCKED_SIGNALS,
    Streams,
    open_pipe,
    prepare_for_members,
    spawn_member,
    start_member,
)
from tenfold.live.local.member.memory import allocation_failure
from tenfold.live.local.member.shells import Shells
from tenfold.live.local.member.user import raise_limits
from tenfold.live.local.processes import (
    become_subreaper,
    boot,
    descendants,
    end_descendants,
    kill,
    monotonic_ms,
    notify,
    notify_group,
    reap,
)
from tenfold.live.local.spawner.handover import SpawnerChannel
from tenfold.live.local.spawner.notes import NoteWriter
from tenfold.live.local.spawner.wire import (
    EndLine,
    LaunchLine,
    ReasonLine,
    ShellLine,
    StartedLine,
    line,
    own_group_name,
)

KILL_AGAIN_MS = 200
RESEND_MS = 100
WAIT_MS_MOST = 3_600_000
"""The kernel's limit is 24 days; a grace period may be longer."""
ATTEMPTS_MOST = 1_000
"""After this many, a fresh fork is better: garbage collection is off."""
UMASK_OWN = 0o077
ERROR_CHARACTERS_MOST = 500


def supervise(
    folder: AttemptFolder, lock: int, limits: ResourceLimits, channel: SpawnerChannel | None = None
) -> None:
    """Run an attempt to its end, and then those that come over `channel`, as a fresh fork."""
    become_subreaper()
    kept = _Kept(_open_signal_pipe(), SupervisorGroup(limits), RecentEnds())
    here = boot()
    for _ in range(ATTEMPTS_MOST):
        signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED_SIGNALS)
        os.umask(UMASK_OWN)
        about = {"supervisor": os.getpid(), "boot": here}
        own = kept.group.name
        add_to_record(lock, {**about, "group": own} if own else about)
        notes = NoteWriter(folder.home.path, channel)
        end, is_reusable = _supervise_one(folder, lock, kept, notes)
        os.close(lock)
        if channel is None or not is_reusable or not channel.report_end(_end_note(folder, end)):
            break
        next_attempt = channel.wait_for_next(folder.home, kept.signals, kept.recent)
        if next_attempt is None:
            break
        folder, lock = next_attempt
    kept.recent.sync_all()


class _Kept(NamedTuple):
    """What a supervisor keeps from one attempt to the next."""

    signals: int
    group: SupervisorGroup
    recent: RecentEnds


def _supervise_one(
    folder: AttemptFolder, lock: int, kept: _Kept, notes: NoteWriter
) -> tuple[EndLine, bool]:
    """Run one attempt and write its end, whatever happens; return whether nothing of it is left."""
    supervisor: _Supervisor | None = None
    try:
        supervisor = _Supervisor(folder, lock, kept, notes)
        end = supervisor.run()
        is_reusable = supervisor.is_reusable and not notes.has_unsent
    except Exception as error:
        # Without an end the attempt would count as lost, with no word on why.
        end_descendants()
        end, is_reusable = _failed_end(error, supervisor), False
    write_end(folder, end, notes, durable=not is_reusable, lock=lock)
    if is_reusable:
        kept.recent.add(folder, monotonic_ms())
    with suppress(OSError):
        if supervisor is not None:
            supervisor.group.remove()
    return end, is_reusable and not notes.has_unsent


def _failed_end(error: Exception, supervisor: "_Supervisor | None") -> EndLine:
    """Return the end of an attempt whose supervisor failed outside of its run."""
    started_ms = None if supervisor is None else supervisor.started_ms
    if started_ms is None:
        reason: ReasonLine = {
            "code": "start-failed",
            "sentence": f"cannot start: {_error_text(error)}",
        }
        return end_line("start-failed", started_ms=None, reason=reason)
    sentence = f"the supervisor failed, so the result is unknown: {_error_text(error)}"
    reason = {"code": "supervisor-lost", "sentence": sentence}
    return end_line("lost", started_ms=started_ms, reason=reason)


class _Supervisor:
    def __init__(self, folder: AttemptFolder, lock: int, kept: _Kept, notes: NoteWriter) -> None:
        self.folder = folder
        self._lock = lock
        self.launch = folder.launch()
        self.group = AttemptCgroup([], kind=kept.group.limits.kind)
        self._own = kept.group
        self._spawns = False
        """Whether members are born in the group of this process, with nothing left to do."""
        self._recent = kept.recent
        self._notes = notes
        self._signals = kept.signals
        self._poll = select.poll()
        self._poll.register(self._signals, select.POLLIN)
        self._ranks: dict[int, int] = {}
        self._logs: dict[int, LogWriter] = {}
        self._log_bytes_dropped = 0
        self._heartbeats: Heartbeats | None = None
        self._kill_at_ms: int | None = None
        self._stopping = False
        self._notified_inside: list[int] | None = None
        """First processes of containers that were signalled; None if no stop is pending inside."""
        self._how = "exited"
        self._reason: ReasonLine | None = None
        self._first: tuple[int, int] | None = None
        self._started_ms: int | None = None
        self._died_ms: int | None = None
        self._folders: JobFolders | None = None
        self._port = 0
        self._shells = Shells(folder.path, self._poll, self._start_shell, self.launch.get("user"))

    @property
    def is_reusable(self) -> bool:
        """Whether nothing was signalled: then nothing of the attempt is left here."""
        return self._reason is None and not self._stopping and not self._shells.were_used

    @property
    def started_ms(self) -> int | None:
        """When all members ran their command."""
        return self._started_ms

    def run(self) -> EndLine:
        """Return how the attempt ended, when none of its processes is left."""
        try:
            self._read_stop()
            if not self._stopping:
                self._start()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, BLOCKED_SIGNALS)
            while self._ranks:
                self._poll_once()
        except Exception as error:
            # Of any kind: an exception that ended this process would be repeated by the next.
            self._on_error(error)
        if is_podman(self.launch["runtime"]) and (self._first is None or self._first[1] >= 0):
            wait_for_cleanup()
        end_descendants()
        self._shells.close()
        for pipe, log in list(self._logs.items()):
            while log.copy_from(pipe) and select.select([pipe], [], [], 0)[0]:
                pass
            self._close_log(pipe)
        remove_containers(self.launch, self.folder.path)
        return self._end()

    def _start(self) -> None:
        launch, folder = self.launch, self.folder
        self._folders = folders = JobFolders(folder.home, launch)
        chown_root_leftovers(folder, folders)
        workdir = folders.prepare()
        user = launch.get("user")
        self._limit()
        prepare_for_members(workdir, user)
        os.close(workdir)
        if user is not None:
            raise_limits()
        self._port = port = _free_port()
        complaint = self._start_members(port, folders)
        self._heartbeats = Heartbeats(
            folder.path, len(launch["members"]), launch["silent_ms_most"], monotonic_ms()
        )
        if complaint:
            self._fail(complaint)
            return
        self._started_ms = now_ms()
        started: StartedLine = {
            "at_ms": self._started_ms,
            "pids": list(self._ranks),
            "port": port,
            "limits": self.group.kind,
        }
        with suppress(OSError):
            # Disk full: the end will have the start time.
            add_to_record(self._lock, {"started": started})
        self._notes.send(
            {
                "saw": "started",
                "at_ms": self._started_ms,
                "job": folder.job,
                "attempt": folder.number,
            }
        )

    def _limit(self) -> None:
        """Make the control groups of this attempt, or limit the group that this process is in."""
        members, pids = self.launch["members"], self.launch.get("pids_most", 0)
        if _is_plain(self.launch):
            if self._own.join(own_group_name(time.monotonic_ns()), pids):
                add_to_record(self._lock, {"group": self._own.name})
            # Without a group only the kernel can kill a member with this process, which a member
            # has to ask for before it runs its command.
            self._spawns = bool(self._own.name)
        else:
            self._own.limit(0)
        if not self._spawns:
            self.group = self._own.limits.make(
                os.path.basename(self.folder.marker),
                cpus_milli=_total([member["cpus_milli"] for member in members]),
                memory_mib=_total([member["memory_mib"] for member in members]),
                pids=pids,
            )

    def _start_members(self, port: int, folders: JobFolders) -> str:
        """Start all members; return why a command could not be run, empty once all run theirs."""
        failed, failures = os.pipe2(os.O_CLOEXEC)
        complaints = b""
        try:
            for rank in range(len(self.launch["members"])):
                self._start_member(rank, port, folders, failures)
        finally:
            os.close(failures)
        # Ends when every member runs its command, because exec closes the pipe.
        while chunk := os.read(failed, 4_096):
            complaints += chunk
        os.close(failed)
        return complaints.decode(errors="replace").partition("\n")[0]

    def _start_member(self, rank: int, port: int, folders: JobFolders, failures: int) -> None:
        launch, folder = self.launch, self.folder
        environment = member_environment(
            launch,
            rank,
            port,
            home=folders.team,
            attempt_folder=folder.path,
            saves_folder=folders.checkpoints,
        )
        command, user = launch["command"], launch.get("user")
        beat = touch_heartbeat(folder.path, rank, user) if launch["image"] or user else ""
        mounts = None
        if launch["image"]:
            member = container_command(launch, rank, environment, folder.path, folders, beat)
            command, environment, user, mounts = member
        reader, writer = open_pipe()
        if user is not None:
            # So that a member can open its output by name, as `/dev/stdout`.
            os.fchown(writer, user["uid"], user["gid"])
        if self._spawns:
            pid = spawn_member(command, environment, output=writer, failures=failures)
        else:
            pid = start_member(
                command,
                environment,
                streams=Streams(writer, writer),
                failures=failures,
                group=self.group,
                memory_mib=launch["members"][rank]["memory_mib"],
                user=user,
                mounts=mounts,
            )
        os.close(writer)
        if pid == 0:
            os.close(reader)
            return
        self._ranks[pid] = rank
        self._logs[reader] = LogWriter(folder.path, rank, launch["log_bytes_most"])
        self._poll.register(reader, select.POLLIN)

    def _start_shell(self, shell: ShellLine, streams: Streams) -> int:
        """Start a process beside a member, as the member was started; raises `OSError`."""
        launch, folder, rank = self.launch, self.folder, shell["member"]
        if self._folders is None or self._stopping or not 0 <= rank < len(launch["members"]):
            raise ProcessLookupError(0, "the job is ending")
        environment = member_environment(
            launch,
            rank,
            self._port,
            home=self._folders.team,
            attempt_folder=folder.path,
            saves_folder=self._folders.checkpoints,
        )
        if "term" in shell:
            environment["TERM"] = shell["term"]
        command, user, mounts = shell["command"], launch.get("user"), None
        if launch["image"]:
            found = shell_command(launch, rank, environment, folder.path, self._folders, shell)
            command, environment, user, mounts = found
        failed, failures = os.pipe2(os.O_CLOEXEC)
        signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED_SIGNALS)
        try:
            pid = start_member(
                command,
                environment,
                streams=streams,
                failures=failures,
                group=self.group,
                memory_mib=launch["members"][rank]["memory_mib"],
                user=user,
                mounts=mounts,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, BLOCKED_SIGNALS)
            os.close(failures)
        try:
            complaint = os.read(failed, 4_096)
        finally:
            os.close(failed)
        if complaint:
            raise OSError(0, complaint.decode(errors="replace").splitlines()[0])
        return pid

    def _poll_once(self) -> None:
        """Wait for the next event and handle it."""
        for ready, _ in self._poll.poll(self._wait_ms()):
            if ready == self._signals:
                self._on_signals(os.read(self._signals, 256))
            elif ready in self._shells:
                self._shells.on_ready(ready, monotonic_ms())
            elif ready in self._logs and not self._logs[ready].copy_from(ready):
                self._poll.unregister(ready)
                self._close_log(ready)
        now = monotonic_ms()
        if self._kill_at_ms is not None and now >= self._kill_at_ms:
            for pid in descendants(os.getpid()):
                kill(pid)
            self._kill_at_ms = now + KILL_AGAIN_MS
        if self._notified_inside is not None:
            self._notify_inside(self._notified_inside)
        if self._heartbeats is not None and not self._stopping:
            hung = self._heartbeats.hung_member(now, list(self._ranks.values()))
            if hung is not None:
                self._on_hang(hung, self._heartbeats.silence_ms(hung, now))
        self._notes.flush()
        self._recent.sync_due(now)

    def _close_log(self, pipe: int) -> None:
        log = self._logs.pop(pipe)
        log.close()
        self._log_bytes_dropped += log.bytes_dropped
        os.close(pipe)

    def _on_signals(self, numbers: bytes) -> None:
        if signal.SIGUSR1 in numbers:
            self._read_stop()
            self._shells.accept()
        if signal.SIGUSR2 in numbers:
            # The disk was too full for a stop request.
            reason: ReasonLine = {"code": "stopped", "sentence": "it was stopped"}
            self._begin_stop(self.launch["grace_ms"], "stopped", reason)
        if signal.SIGTERM in numbers or signal.SIGINT in numbers:
            # Tenfold does not send these: the machine is shutting down, and the job will start
            # again.
            reason = {"code": "supervisor-told", "sentence": "the supervisor was terminated"}
            self._begin_stop(self.launch["grace_ms"], "lost", reason)
        for pid, status in reap() or []:
            rank = self._ranks.pop(pid, None)
            if rank is not None:
                self._member_ended(rank, os.waitstatus_to_exitcode(status))
            elif self._shells.were_used:
                self._shells.ended(pid, os.waitstatus_to_exitcode(status))

    def _member_ended(self, rank: int, code: int) -> None:
        if code == 0:
            return
        if self._first is None:
            self._first = (rank, code)
        if not self._stopping:
            self._begin_stop(self.launch["grace_ms"], self._how, None)

    def _read_stop(self) -> None:
        stop = self.folder.stop()
        if stop is not None:
            reason: ReasonLine = {"code": stop["cause"], "sentence": stop["sentence"]}
            how = "lost" if stop["cause"] == "node-lost" else "stopped"
            self._begin_stop(stop["grace_ms"], how, reason)

    def _begin_stop(self, grace_ms: int, how: str, reason: ReasonLine | None) -> None:
        """Stop all members; a later call can only shorten the grace period. The first reason is
        kept."""
        if not self._stopping:
            self._how, self._reason = how, reason
            self._stopping = True
            if grace_ms > 0 and is_podman(self.launch["runtime"]):
                # podman forwards signals only once it is ready, and dies from earlier ones.
                self._notified_inside = []
                self._notify_inside(self._notified_inside)
            elif grace_ms > 0:
                for pid in self._ranks:
                    notify_group(pid, signal.SIGTERM)
        kill_at_ms = monotonic_ms() + grace_ms
        if self._kill_at_ms is None or kill_at_ms < self._kill_at_ms:
            self._kill_at_ms = kill_at_ms

    def _notify_inside(self, notified: list[int]) -> None:
        """Signal the commands in containers; those still starting are signalled later."""
        for pid in container_inits(self.folder.path):
            if pid not in notified:
                notified.append(pid)
                notify(pid, signal.SIGTERM)
        if len(notified) == len(self.launch["members"]):
            self._notified_inside = None

    def _on_hang(self, rank: int, silence_ms: int) -> None:
        """Kill a gang with a member that hangs."""
        # All are killed at once, so the first failure is not random.
        self._first = self._first or (rank, -signal.SIGKILL)
        self._died_ms = now_ms() - silence_ms
        sentence = f"process {rank} sent no heartbeat for too long"
        self._begin_stop(0, "silent", {"code": "silent", "sentence": sentence})

    def _on_error(self, error: Exception) -> None:
        """Report an error of this process: the start failed, or the result is unknown."""
        if self._started_ms is None:
            self._how = "start-failed"
            sentence = f"cannot start: {_error_text(error)}"
            self._reason = {"code": "start-failed", "sentence": sentence}
        elif self._how == "exited":
            self._how, self._first = "lost", None
            sentence = f"the supervisor failed, so the result is unknown: {_error_text(error)}"
            self._reason = {"code": "supervisor-lost", "sentence": sentence}

    def _fail(self, sentence: str) -> None:
        self._begin_stop(0, "start-failed", {"code": "start-failed", "sentence": sentence})

    def _wait_ms(self) -> int | None:
        waits: list[int] = []
        now = monotonic_ms()
        if self._kill_at_ms is not None:
            waits.append(max(self._kill_at_ms - now, 0))
        waits.extend(self._shells.next_kill_ms(now))
        if self._heartbeats is not None and not self._stopping:
            waits.extend(self._heartbeats.next_check_ms(now))
        if self._notes.has_unsent or self._notified_inside is not None:
            waits.append(RESEND_MS)
        sync_in_ms = self._recent.wait_ms(now)
        if sync_in_ms is not None:
            waits.append(sync_in_ms)
        return min([*waits, WAIT_MS_MOST]) if waits else None

    def _end(self) -> EndLine:
        member, code = self._first or (None, None if self._how == "start-failed" else 0)
        if self._how == "exited" and code and self.group.ran_out_of_memory():
            # The killed process need not be the member: a shell passes the failure on.
            self._how = "out-of-memory"
            memory_mib = sum(one["memory_mib"] for one in self.launch["members"])
            sentence = f"the job exceeded its memory limit of {memory_mib:,} MiB"
            self._reason = {"code": "out-of-memory", "sentence": sentence}
        elif self._how == "exited" and member is not None and code is not None:
            self._reason = runtime_failure(self.launch, self.folder.path, member, code)
            self._how = "start-failed" if self._reason else self._how
            if self._reason is None and self.group.kind == "prlimit":
                self._reason = allocation_failure(self.launch, self.folder.path, member, code)
        end = end_line(
            self._how,
            started_ms=self._started_ms,
            code=code,
            member=member,
            reason=self._reason,
            log_bytes_dropped=self._log_bytes_dropped,
        )
        if self._died_ms is not None:
            end["died_ms"] = self._died_ms
        return end


def _error_text(error: Exception) -> str:
    """Return what an error says; that of a library may be long."""
    if isinstance(error, OSError):
        where = f" `{error.filename}`" if error.filename else ""
        return f"{error.strerror or error}{where}"[:ERROR_CHARACTERS_MOST]
    return f"{type(error).__name__}: {error}"[:ERROR_CHARACTERS_MOST]


def _end_note(folder: AttemptFolder, end: EndLine) -> bytes:
    return line(
        {
            "saw": "ended",
            "at_ms": end["at_ms"],
            "job": folder.job,
            "attempt": folder.number,
            "end": end,
        }
    )


def _open_signal_pipe() -> int:
    """Return a pipe of received signals. They are still blocked by the fork."""
    reader, writer = open_pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader


def _is_plain(launch: LaunchLine) -> bool:
    """Return whether members need nothing of their own before they run their command."""
    return not (
        launch["image"]
        or "user" in launch
        or any(one["cpus_milli"] or one["memory_mib"] for one in launch["members"])
    )


def _total(amounts: list[int]) -> int:
    """Return the limit of a gang; one member without a limit means none."""
    return sum(amounts) if all(amounts) else 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        return int(probe.getsockname()[1])
