"""Processes as Linux shows them: who descends from whom, who carries an attempt, and their end.

A supervisor is a subreaper: what a member leaves behind becomes its child, whatever session
it fled to. So an attempt is over when its supervisor has no child left, which costs one call.
"""

import ctypes
import os
import signal
from contextlib import suppress

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_prctl_call = ctypes.CDLL(None, use_errno=True).prctl


def become_subreaper() -> None:
    """Make orphans among the descendants children of this process."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent dies."""
    _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def kill(pid: int) -> None:
    """Kill a process that may be gone by now."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def notify(pid: int, number: int) -> None:
    """Send a signal to a process that may be gone by now."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def notify_group(pid: int, number: int) -> None:
    """Send a signal to the process group that a member leads."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def descendants(pid: int) -> list[int]:
    """Return the processes below one, nearest first."""
    children: dict[int, list[int]] = {}
    for other in _all():
        parent = _parent(other)
        if parent is not None:
            children.setdefault(parent, []).append(other)
    found = list(children.get(pid, []))
    for one in found:
        found.extend(children.get(one, []))
    return found


def children(pid: int) -> list[int]:
    """Return the direct children of a process."""
    return [other for other in _all() if _parent(other) == pid]


def processes_with_mark(mark: bytes) -> list[int]:
    """Return the processes whose environment holds the mark at the start of a variable."""
    return [pid for pid in _all() if has_mark(pid, mark)]


def has_mark(pid: int, mark: bytes) -> bool:
    """Tell whether the environment of a process holds the mark at the start of a variable."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return b"\0" + mark in b"\0" + file.read()
    except OSError:
        return False


def leads_pid_namespace(pid: int) -> bool:
    """Tell whether a process is the first of a process space that is not this one's."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            [numbers] = [line for line in file if line.startswith(b"NSpid:")]
    except (OSError, ValueError):
        return False
    return numbers.split()[2:] != [] and numbers.split()[-1] == b"1"


def reap() -> list[tuple[int, int]] | None:
    """Return (pid, status) of children that ended; None once there is no child at all."""
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
    """Kill everything below this process, and return when nothing is left of it."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            for one in descendants(os.getpid()):
                kill(one)
            # Every child was killed, so one will end; its own children then become ours.
            os.waitpid(-1, 0)


def _prctl(option: int, value: int) -> None:
    if _prctl_call(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _all() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _parent(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    # The name stands in brackets and may hold brackets and spaces itself.
    return int(text.rpartition(b")")[2].split()[1])
