"""Become the user of a team: for good as a member, or for a moment as its supervisor.

The supervisor stays root, since it serves other teams later. Whatever it does in a place that
a team can write to, it does with that team's rights: a link that a job planted there leads to
nothing that the job could not reach itself.
"""

import os
import resource
from collections.abc import Generator
from contextlib import contextmanager, suppress

from tenfold.live.local.spawner.wire import UserLine

ROOT = 0
_SHEBANG_BYTES = 256


@contextmanager
def acting_as(user: UserLine | None) -> Generator[None, None, None]:
    """Have the rights of a user until the end of the block; None changes nothing."""
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


def drop_to(user: UserLine) -> None:
    """Become a user, with no way back; raises where that cannot be."""
    uid, gid = user["uid"], user["gid"]
    if ROOT in (uid, gid, *user["groups"]):
        raise PermissionError("a team's user must not be root")
    os.setgroups(user["groups"])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def raise_limits() -> None:
    """Lift limits that never held for root: its members were not to notice that it dropped.

    Processes are counted for a user, and so for all jobs of a team: up to the hard limit, which
    is the machine's own. Memory that a network card reads must be locked; a job's memory is
    limited as a whole.
    """
    for limit in (resource.RLIMIT_NPROC, resource.RLIMIT_MEMLOCK):
        _, most = resource.getrlimit(limit)
        with suppress(ValueError, OSError):
            resource.setrlimit(limit, (most, most))
    with suppress(ValueError, OSError):
        # Only root with all its rights may.
        resource.setrlimit(
            resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        )


def blocked_by(file: str, user: UserLine) -> str:
    """Return what keeps this process, a user by now, from a file; empty where nothing does."""
    for path in (file, _interpreter(file)):
        closed = _closed(os.path.realpath(path)) if path else ""
        if closed:
            return f"; the user of team `{user['name']}` (uid {user['uid']}) may not {closed}"
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
    """Return the program that a script names in its first line."""
    try:
        with open(file, "rb") as script:
            first = script.readline(_SHEBANG_BYTES)
    except OSError:
        return ""
    words = first[2:].split() if first.startswith(b"#!") else []
    return os.fsdecode(words[0]) if words else ""
