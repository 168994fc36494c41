"""Who else is killed: the spawner, supervisors, and processes of jobs.

Each is found by the state folder and opened before it is looked at again, so that what is
killed is what was meant.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

from tenfold.live.local.attempt.environment import attempt_mark
from tenfold.live.local.attempt.folder import AttemptFolder, ExecutorDir
from tenfold.live.local.processes import processes_with_mark
from tenfold.live.local.spawner.spawner import LOCK
from tenfold.live.local.spawner.watch import watch_supervisor

Attempt = tuple[str, int]


class Victims:
    """Kills by kind, and remembers which attempts were hit."""

    def __init__(self, run: Path, dice: Random) -> None:
        self._home = ExecutorDir(str(run))
        self._dice = dice
        self.spawners = 0
        self.supervisors: set[Attempt] = set()
        self.members: set[Attempt] = set()

    def kill_spawner(self) -> None:
        """Kill the process that forks supervisors: it alone holds the lock of the folder."""
        path = Path(self._home.path) / LOCK
        if not path.exists():
            return

        def is_spawner(pid: int) -> bool:
            return pid == _holder(path)

        pid = _holder(path)
        if pid is not None and _kill_if(pid, is_spawner):
            self.spawners += 1

    def kill_supervisor(self) -> bool:
        """Kill the process that watches one attempt; False where there is none."""
        for folder in self._drawn():
            found = watch_supervisor(folder) if folder.is_locked() else None
            if found is None:
                continue
            # Noted first: whether it was too late is not known afterwards.
            self.supervisors.add((folder.job, folder.number))
            with suppress(ProcessLookupError):
                # Held still: it may have been given another attempt by now.
                signal.pidfd_send_signal(found.file, signal.SIGSTOP)
                self.supervisors.update(self._watched_by(found.pid))
                signal.pidfd_send_signal(found.file, signal.SIGKILL)
            os.close(found.file)
            return True
        return False

    def kill_member(self) -> bool:
        """Kill one process of one attempt; False where there is none."""
        for folder in self._drawn():
            mark = attempt_mark(folder.path)
            for pid in processes_with_mark(mark)[:1]:
                self.members.add((folder.job, folder.number))
                if _kill_if(pid, lambda one, mark=mark: _carries(one, mark)):
                    return True
        return False

    def left(self) -> int:
        """Return how many processes of any job still live."""
        return len(processes_with_mark(f"TENFOLD_HEARTBEAT={self._home.path}/".encode()))

    def _watched_by(self, pid: int) -> Iterator[Attempt]:
        for folder in self._home.unsettled():
            if folder.record().get("supervisor") == pid and folder.is_locked():
                yield folder.job, folder.number

    def _drawn(self) -> list[AttemptFolder]:
        with suppress(FileNotFoundError):
            folders = self._home.unsettled()
            self._dice.shuffle(folders)
            return folders
        return []


def _holder(path: Path) -> int | None:
    """Return who holds the lock of a file, as the kernel lists it."""
    inode = str(path.stat().st_ino)
    for line in Path("/proc/locks").read_text().splitlines():
        words = line.split()
        if words[1] == "FLOCK" and words[5].rpartition(":")[2] == inode:
            return int(words[4])
    return None


def _carries(pid: int, mark: bytes) -> bool:
    return b"\0" + mark in b"\0" + Path(f"/proc/{pid}/environ").read_bytes()


def _kill_if(pid: int, is_meant: Callable[[int], bool]) -> bool:
    """Kill a process that is opened first and looked at then; False where it is another."""
    try:
        file = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if pid == os.getpid() or not is_meant(pid):
            return False
        signal.pidfd_send_signal(file, signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(file)
    return True
