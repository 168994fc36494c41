"""The files of an attempt, and the state directory that contains the attempts.

A folder appears complete and locked: it is created under a temporary name and renamed. The lock is
on its record and held only by the supervisor, so it tells whether the supervisor is alive. Check
the lock first and then the end, because a supervisor writes the end before it releases the lock.

    HOME/spawner.sock, spawner.lock, spawner.log, notes   (modes 0600, in a folder 0700)
    HOME/open/JOB.N          marks an unsettled attempt: a hard link to its record
    HOME/lost-nodes/NODE     marks a node as lost
    HOME/fence               the epoch of the last control plane that led
    HOME/attempts/JOB/N/     record stop.json end.json, RANK.log and RANK.beat of the members
    HOME/teams/TEAM/JOB/     working directory of a job that sets none
    HOME/mounts/N/           empty: folders of a container are mounted there, in its own namespace

If teams have their own users, everything belongs to root except team folders and heartbeat files.
Their parents can be traversed but not listed; attempts can be traversed only by their own team.

The record has a line each for the launch, the supervisor and the start. There are few files,
because creating one costs as much as everything else in a job start.
"""

import errno
import fcntl
import json
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from typing import cast

from tenfold.clock.wall import now_ms
from tenfold.live.local.spawner.wire import (
    LINE_BYTES_MOST,
    NUMBER_MOST,
    EndLine,
    LaunchLine,
    RecordLines,
    StopLine,
    checked_end,
    checked_record,
    parsed,
)

NAME_BYTES_MOST = 200
FILE_BYTES_MOST = 1 << 20
"""Largest end or stop. Without team users a job can write these files, so they may be any size."""
RECORD_BYTES_MOST = LINE_BYTES_MOST + FILE_BYTES_MOST
TEAM_USERS = "team-users.json"
"""The users of teams. If it exists, team folders are reachable by their users."""
_MISSING, _SPECIAL = (errno.ENOENT, errno.ENOTDIR), (errno.ELOOP, errno.ENXIO)
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
_WRITE = os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CREAT | os.O_TRUNC
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")


def file_name(name: str) -> str:
    """Return a unique name that every file system accepts."""
    raw = name.encode()
    plain = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in raw)
    if not plain or plain.startswith("."):
        # Neither hidden, nor `.`, nor `..`, nor empty.
        plain = "%" + plain if not plain else "%2E" + plain[1:]
    return plain


def plain_name(file: str) -> str:
    """Reverse `file_name`."""
    if file == "%":
        return ""
    head, *coded = file.encode().split(b"%")
    return (head + b"".join(bytes([int(part[:2], 16)]) + part[2:] for part in coded)).decode()


class ExecutorDir:
    """The state directory of one executor."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self.open = f"{self.path}/open"
        self.lost_nodes = f"{self.path}/lost-nodes"
        self.mounts = f"{self.path}/mounts"

    def prepare(self) -> None:
        """Create the folders, private except for the parents of team folders."""
        for folder in (self.open, self.lost_nodes):
            private_folder(folder)
        way = self.parent_mode()
        for folder in (self.path, f"{self.path}/attempts", f"{self.path}/teams"):
            private_folder(folder, way)

    def parent_mode(self) -> int:
        """Return the mode of the parents of team folders."""
        return 0o711 if os.path.exists(f"{self.path}/{TEAM_USERS}") else 0o700

    def attempt(self, job: str, number: int) -> "AttemptFolder":
        """Return the folder of an attempt, which need not exist."""
        return AttemptFolder(self, job, number)

    def numbers(self, job: str) -> list[int]:
        """Return the attempts of a job that have a folder, in order."""
        try:
            names = os.listdir(f"{self.path}/attempts/{file_name(job)}")
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(int(name) for name in names if name.isdecimal())

    def unsettled(self) -> list["AttemptFolder"]:
        """Return attempts that are active or not settled, by job."""
        found: list[AttemptFolder] = []
        for name in sorted(os.listdir(self.open)):
            job, _, number = name.rpartition(".")
            if number.isdecimal():
                folder = AttemptFolder(self, plain_name(job), int(number))
                # A job may have removed its folder: the marker is locked all the same.
                if os.path.isdir(folder.path) or folder.is_locked():
                    found.append(folder)
        return found

    def team_folder(self, team: str) -> str:
        """Return the folder of a team."""
        # The sites of one fleet share these folders, through a link that only root can change.
        teams = f"{self.path}/teams"
        if os.path.islink(teams):
            teams = os.path.join(self.path, os.readlink(teams))
        return f"{os.path.normpath(teams)}/{file_name(team)}"

    def fence(self) -> int:
        """Return the epoch below which orders are refused; 0 before the first control plane.

        Raises `ValueError` if the file is damaged: an old control plane must not profit from that.
        """
        text = _read(f"{self.path}/fence")
        epoch = parsed(text).get("epoch") if text else 0
        if not isinstance(epoch, int) or not 0 <= epoch < NUMBER_MOST:
            raise ValueError(f"{self.path}/fence has no epoch")
        return epoch

    def raise_fence(self, epoch: int) -> None:
        """Refuse orders of lower epochs, also after a crash of the machine."""
        write_durably(f"{self.path}/fence", json.dumps({"epoch": epoch}))

    def mark_node(self, node: str, *, lost: bool) -> None:
        """Record that a node is lost, or back."""
        path = f"{self.lost_nodes}/{file_name(node)}"
        if lost:
            write(path, "")
        elif os.path.exists(path):
            os.unlink(path)

    def nodes_lost(self) -> list[str]:
        """Return the nodes marked as lost."""
        return sorted(plain_name(name) for name in os.listdir(self.lost_nodes))

    def is_lost(self, node: str) -> bool:
        """Return whether a node is marked as lost."""
        return os.path.exists(f"{self.lost_nodes}/{file_name(node)}")


class AttemptFolder:
    """One attempt of one job."""

    def __init__(self, home: ExecutorDir, job: str, number: int) -> None:
        self.home = home
        self.job = job
        self.number = number
        self.job_folder = f"{home.path}/attempts/{file_name(job)}"
        self.path = f"{self.job_folder}/{number}"
        self.marker = f"{home.open}/{file_name(job)}.{number}"
        self._launch: LaunchLine | None = None

    def make(self, launch: LaunchLine) -> int | None:
        """Return the lock on a new folder, or None if the attempt already exists."""
        if os.path.isdir(self.path):
            return None
        staging = f"{self.job_folder}/.{self.number}"
        with suppress(FileExistsError):
            os.mkdir(self.job_folder, 0o700)
        self._remove_staging(staging)
        lock = -1
        try:
            os.mkdir(staging, 0o700)
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            lock = os.open(f"{staging}/record", flags, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            add_to_record(lock, {"launch": launch})
            self._grant_team_access(staging, launch)
            link_marker(f"{staging}/record", self.marker)
            os.rename(staging, self.path)
        except OSError:
            if lock >= 0:
                os.close(lock)
            self._remove_staging(staging)
            raise
        self._launch = launch
        return lock

    def take_lock(self) -> int:
        """Return the lock of a folder whose supervisor is dead."""
        lock = os.open(f"{self.path}/record", os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        fcntl.flock(lock, fcntl.LOCK_EX)
        return lock

    def is_locked(self) -> bool:
        """Return whether a supervisor is alive.

        The marker is the same file as the record, and is left where a job replaced the record.
        """
        return _is_locked(f"{self.path}/record") or _is_locked(self.marker)

    def record(self) -> RecordLines:
        """Return the content of the record so far.

        Incomplete lines are ignored. The record is not synced: nothing it describes survives a
        machine crash.
        """
        found: dict[str, object] = {}
        text = b""
        for path in (self.marker, f"{self.path}/record"):
            with suppress(ValueError):
                text = text or _read(path, RECORD_BYTES_MOST)
        whole, _, _ = text.rpartition(b"\n")
        for line in whole.split(b"\n"):
            with suppress(ValueError, RecursionError):
                found.update(parsed(line))
        return checked_record(found)

    def launch(self) -> LaunchLine:
        """Return the launch that was ordered."""
        if self._launch is None:
            self._launch = self.record().get("launch")
            assert self._launch is not None, f"{self.path} has no launch"
        return self._launch

    def launch_record(self) -> str:
        """Return the record of an attempt of which only the launch is known, if that."""
        launch = self._launch or self.record().get("launch")
        return "" if launch is None else json.dumps({"launch": launch}) + "\n"

    def stop(self) -> StopLine | None:
        """Return the last stop that was ordered; a damaged one takes effect at once."""
        try:
            text = _read(f"{self.path}/stop.json")
            return cast(StopLine, parsed(text)) if text else None
        except (ValueError, RecursionError):
            return {"grace_ms": 0, "cause": "stopped", "sentence": "it was stopped"}

    def end(self) -> EndLine | None:
        """Return how it ended; the file is never partial. A damaged one means that it was lost."""
        try:
            text = _read(f"{self.path}/end.json")
            return checked_end(parsed(text), now_ms()) if text else None
        except (ValueError, RecursionError):
            return _damaged_end()

    def write_stop(self, stop: StopLine) -> None:
        """Write a stop request before the supervisor is signalled."""
        self._replace("stop.json", json.dumps(stop))

    def write_end(self, end: EndLine, *, durable: bool = True) -> None:
        """Write the end, synced unless `sync_end` follows; raises `OSError` on failure."""
        if not stat.S_ISDIR(os.lstat(self.path).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), self.path)
        self._replace("end.json", json.dumps(end), durable=durable)
        if durable:
            self._sync_folders()

    def sync_end(self) -> None:
        """Make the end durable that was written last; raises `OSError` on failure."""
        file = os.open(f"{self.path}/end.json", _READ)
        try:
            os.fsync(file)
        finally:
            os.close(file)
        self._sync_folders()

    def _sync_folders(self) -> None:
        for folder in (self.path, self.job_folder, os.path.dirname(self.job_folder)):
            _sync_folder(folder)

    def settle(self) -> None:
        """Remove the attempt from the open list."""
        with suppress(FileNotFoundError):
            os.unlink(self.marker)

    def _replace(self, name: str, text: str, *, durable: bool = False) -> None:
        staging = f"{self.path}/.{name}"
        write(staging, text, durable=durable)
        os.rename(staging, f"{self.path}/{name}")

    def _grant_team_access(self, staging: str, launch: LaunchLine) -> None:
        """Let the team's user reach its heartbeat files, and no one else's."""
        if "user" in launch:
            for folder in (self.job_folder, staging):
                os.chown(folder, -1, launch["user"]["gid"])
                os.chmod(folder, 0o710)

    def _remove_staging(self, staging: str) -> None:
        """Remove leftovers of a spawner that died halfway; nothing ran from there."""
        for file in (f"{staging}/record", self.marker):
            with suppress(OSError):
                os.unlink(file)
        with suppress(OSError):
            os.rmdir(staging)


def add_to_record(lock: int, line: Mapping[str, object]) -> None:
    """Append a line to the record through its lock. It is not synced."""
    text = json.dumps(line).encode() + b"\n"
    if os.write(lock, text) != len(text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def private_folder(path: str, mode: int = 0o700) -> None:
    """Create a folder that only this user can enter, or restrict an existing one."""
    os.makedirs(path, 0o700, exist_ok=True)
    os.chmod(path, mode)


def write_durably(path: str, text: str) -> None:
    """Write a file atomically and durably."""
    folder, _, name = path.rpartition("/")
    staging = f"{folder}/.{name}"
    write(staging, text, durable=True)
    os.rename(staging, path)
    _sync_folder(folder)


def write(path: str, text: str, *, durable: bool = False) -> None:
    """Write a file; raises `OSError` if a link, pipe or folder is in its place."""
    file = os.open(path, _WRITE, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.ENXIO, os.strerror(errno.ENXIO), path)
        rest = memoryview(text.encode())
        while rest:
            rest = rest[os.write(file, rest) :]
        if durable:
            os.fsync(file)
    finally:
        os.close(file)


def _is_locked(path: str) -> bool:
    try:
        lock = os.open(path, _READ)
    except OSError as error:
        if error.errno in (*_MISSING, *_SPECIAL):
            return False
        raise
    try:
        # Shared, so that two concurrent checks do not take each other for a supervisor.
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _damaged_end() -> EndLine:
    sentence = "the record of its end is damaged, so the result of the job is unknown"
    return {
        "at_ms": now_ms(),
        "started_ms": None,
        "how": "lost",
        "exit_code": None,
        "signal": None,
        "member": None,
        "reason": {"code": "supervisor-lost", "sentence": sentence},
        "log_bytes_dropped": 0,
    }


def _read(path: str, bytes_most: int = FILE_BYTES_MOST) -> bytes:
    """Return the content of a file, or nothing; raises `ValueError` if it is too large or special.

    Opening a pipe would wait for its other end, and a link may lead to one.
    """
    try:
        file = os.open(path, _READ)
    except OSError as error:
        if error.errno in _MISSING:
            return b""
        if error.errno in _SPECIAL:
            raise ValueError(f"{path} is not a file") from None
        raise
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_size > bytes_most:
            raise ValueError(f"{path} is not a small file")
        parts: list[bytes] = []
        while (part := os.read(file, 65_536)) and bytes_most >= 0:
            bytes_most -= len(part)
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(file)


def _sync_folder(path: str) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def link_marker(record: str, marker: str) -> None:
    """Make the marker of an attempt: a second link to its record, where there are links."""
    try:
        os.link(record, marker)
    except PermissionError:
        # A file system without hard links.
        write(marker, "")
