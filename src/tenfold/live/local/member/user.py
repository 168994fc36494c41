"""Become a team's user: permanently as a member, or temporarily as its supervisor.

The supervisor stays root, since it serves other teams later. In places that a team can write to, it
acts with the team's rights: a link planted by a job cannot reach further than the job. So does a
thread of the control plane that reads what a job wrote.
"""

import ctypes
import errno
import os
import resource
from collections.abc import Generator
from contextlib import contextmanager, suppress

from tenfold.live.local.spawner.wire import UserLine

ROOT = 0
_LINKS_MOST = 20
_SHEBANG_BYTES = 256
_SETGROUPS = {"x86_64": 116, "aarch64": 159, "riscv64": 159, "ppc64le": 81, "s390x": 206}
"""The system call by architecture. The library's function changes all threads."""
_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def acting_as(user: UserLine | None) -> Generator[None, None, None]:
    """Act as a user until the end of the block; None changes nothing."""
    if user is None:
        yield
        return
    groups = os.getgroups()
    try:
        os.setgroups(user["groups"])
        os.setegid(user["gid"])
        os.seteuid(user["uid"])
        yield
    finally:
        os.seteuid(ROOT)
        os.setegid(ROOT)
        os.setgroups(groups)


@contextmanager
def reading_as(user: UserLine | None) -> Generator[None, None, None]:
    """Access files as a user in this thread only, until the end of the block.

    None changes nothing. Raises `OSError` where a thread cannot have rights of its own.
    """
    if user is None:
        yield
        return
    groups = os.getgroups()
    try:
        _set_thread_groups(user["groups"])
        _libc.setfsgid(user["gid"])
        _libc.setfsuid(user["uid"])
        # These calls do not report an error; an invalid id changes nothing and returns the current.
        if (_libc.setfsgid(-1), _libc.setfsuid(-1)) != (user["gid"], user["uid"]):
            raise PermissionError(errno.EPERM, "cannot read as the user of a team")
        yield
    finally:
        _libc.setfsuid(ROOT)
        _libc.setfsgid(ROOT)
        _set_thread_groups(groups)


def _set_thread_groups(groups: list[int]) -> None:
    number = _SETGROUPS.get(os.uname().machine)
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    ids = (ctypes.c_uint32 * len(groups))(*groups)
    if _libc.syscall(number, len(groups), ids) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def drop_to(user: UserLine) -> None:
    """Become a user irrevocably; raises on failure."""
    uid, gid = user["uid"], user["gid"]
    if ROOT in (uid, gid, *user["groups"]):
        raise PermissionError("a team's user must not be root")
    os.setgroups(user["groups"])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def raise_limits() -> None:
    """Raise limits that did not apply to root, so members do not notice the change.

    Processes are counted per user, so for all jobs of a team: up to the hard limit, which is the
    machine's. Memory for network cards must be locked; a job's memory is limited as a whole.
    """
    for limit in (resource.RLIMIT_NPROC, resource.RLIMIT_MEMLOCK):
        _, most = resource.getrlimit(limit)
        with suppress(ValueError, OSError):
            resource.setrlimit(limit, (most, most))
    with suppress(ValueError, OSError):
        # Only root with full capabilities may.
        resource.setrlimit(
            resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        )


def blocked_by(file: str, user: UserLine) -> str:
    """Return what blocks this process, running as the user, from a file; empty if nothing does."""
    for path in (file, _interpreter(file)):
        closed = _closed(os.path.realpath(path)) if path else ""
        if closed:
            return (
                f"; the user of team `{user['name']}` (uid {user['uid']}) cannot {closed}: move it,"
                " or use `tenfold up --team-users off` if only you use this machine"
            )
    return ""


def first_blocked(file: str) -> str:
    """Return the first folder on the way to a program that this thread cannot enter, or the file.

    Links are followed, and the interpreter of a script counts. Empty if nothing is in the way.
    """
    for path in (file, _interpreter(file)):
        target = os.path.abspath(path) if path else ""
        for _ in range(_LINKS_MOST if target else 0):
            if blocked := _first_closed(target):
                return blocked
            if not os.path.islink(target):
                break
            target = os.path.normpath(os.path.join(os.path.dirname(target), os.readlink(target)))
    return ""


def _first_closed(path: str) -> str:
    parts = path.split("/")
    for count in range(2, len(parts)):
        folder = "/".join(parts[:count])
        try:
            os.stat(f"{folder}/.")
        except PermissionError:
            return folder
        except OSError:
            return ""
    if os.path.isfile(path) and not os.access(path, os.X_OK, effective_ids=True):
        return path
    return ""


def _closed(path: str) -> str:
    parts = path.split("/")
    for count in range(2, len(parts)):
        folder = "/".join(parts[:count])
        if os.path.isdir(folder) and not os.access(folder, os.X_OK):
            return f"enter `{folder}`"
    if os.path.isfile(path) and not os.access(path, os.X_OK):
        return f"run `{path}`"
    return ""


def _interpreter(file: str) -> str:
    """Return the interpreter in a script's first line."""
    try:
        with open(file, "rb") as script:
            first = script.readline(_SHEBANG_BYTES)
    except OSError:
        return ""
    words = first[2:].split() if first.startswith(b"#!") else []
    return os.fsdecode(words[0]) if words else ""
