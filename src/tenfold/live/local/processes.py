"""Linux processes: descendants, attempt marks, signals and reaping.

A supervisor is a subreaper: orphans of a member become its children, whatever session they are in.
An attempt has therefore ended when its supervisor has no children left, which takes one system call
to check.
"""

import ctypes
import os
import signal
import time
from contextlib import suppress

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_prctl_call = ctypes.CDLL(None, use_errno=True).prctl


def become_subreaper() -> None:
    """Make orphaned descendants children of this process."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent dies."""
    _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def end_with_parent() -> None:
    """Have the kernel send SIGTERM to this process when the thread that started it ends."""
    _prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))


def kill(pid: int) -> None:
    """Kill a process that may already be gone."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def notify(pid: int, number: int) -> None:
    """Send a signal to a process that may already be gone."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def notify_group(pid: int, number: int) -> None:
    """Send a signal to the process group of a member."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def descendants(pid: int) -> list[int]:
    """Return the descendants of a process, nearest first."""
    children: dict[int, list[int]] = {}
    for other in _all():
        parent = _parent(other)
        if parent is not None:
            children.setdefault(parent, []).append(other)
    found = list(children.get(pid, []))
    for one in found:
        found.extend(children.get(one, []))
    return found


def in_session(leader: int) -> list[int]:
    """Return the processes of a session."""
    return [pid for pid in _all() if _session(pid) == leader]


def children(pid: int) -> list[int]:
    """Return the direct children of a process."""
    return [other for other in _all() if _parent(other) == pid]


def processes_with_mark(mark: bytes) -> list[int]:
    """Return the processes whose environment has a variable that starts with the mark."""
    return [pid for pid in _all() if has_mark(pid, mark)]


def has_mark(pid: int, mark: bytes) -> bool:
    """Return whether a process's environment has a variable that starts with the mark."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return b"\0" + mark in b"\0" + file.read()
    except OSError:
        return False


def leads_pid_namespace(pid: int) -> bool:
    """Return whether a process is the first of another PID namespace."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            [numbers] = [line for line in file if line.startswith(b"NSpid:")]
    except (OSError, ValueError):
        return False
    return numbers.split()[2:] != [] and numbers.split()[-1] == b"1"


def monotonic_ms() -> int:
    """Return a time that only grows, to measure waits with."""
    return time.monotonic_ns() // 1_000_000


def boot() -> str:
    """Return what identifies the current boot of this machine, or start of this container."""
    started = ""
    with suppress(OSError, IndexError), open("/proc/1/stat", "rb") as file:
        # The first process of a container is new after a restart; the kernel is not.
        started = file.read().rpartition(b")")[2].split()[19].decode()
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        return f"{file.read().strip()}/{started}"
    return ""


def reap() -> list[tuple[int, int]] | None:
    """Return (pid, status) of exited children; None if there are no children at all."""
    ended: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended or None
        if pid == 0:
            return ended
        ended.append((pid, status))


def end_descendants() -> None:
    """Kill all descendants, and return when none is left."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            for one in descendants(os.getpid()):
                kill(one)
            # Every child was killed, so one will exit; its children then become ours.
            os.waitpid(-1, 0)


def _prctl(option: int, value: int) -> None:
    if _prctl_call(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _all() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _parent(pid: int) -> int | None:
    return _number(pid, 1)


def _session(pid: int) -> int | None:
    return _number(pid, 3)


def _number(pid: int, place: int) -> int | None:
    """Return a field of a process, counted from its state; None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    # The name is in parentheses and may contain parentheses and spaces.
    return int(text.rpartition(b")")[2].split()[place])
