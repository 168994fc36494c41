"""The user that a team's jobs run as, if the control plane runs as root.

Each team has an id of its own as user and group, from a range without accounts. Ids are never
reassigned: another team's id would own its files. The list is on disk before a job uses it.

    HOME/team-users.json     {"teams": {NAME: NUMBER}, "put_right": whether old files are migrated}

If this file exists, the parents of team folders are open to their users.
"""

import fcntl
import grp
import json
import os
import pwd
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, cast

from msgspec import Struct

from tenfold.live.local.attempt.folder import (
    TEAM_USERS,
    ExecutorDir,
    file_name,
    plain_name,
    write_durably,
)
from tenfold.live.local.attempt.own_folders import chown_tree, remove_other_access
from tenfold.live.local.spawner.wire import UserLine
from tenfold.model.errors import InputError

FIRST, LAST = 2_100_000_000, 2_100_009_999
"""An assumption: above the ranges of systemd, useradd, containers and directories, and below where
ids turn negative."""
MOST = 2**31 - 1
GPU_GROUPS = ("video", "render")
"""Groups that may open GPUs, where access is restricted; an assumption about distributions."""
NEEDED = {"chown": 0, "dac_override": 1, "fowner": 3, "kill": 5, "setgid": 6, "setuid": 7}
"""Capabilities of root that a container may lack, by number."""


class UidRange(Struct, frozen=True):
    """The range of user ids to assign."""

    first: int = FIRST
    last: int = LAST


class UidsExhausted(Exception):
    """Every id of the range is in use."""


class TeamUsers:
    """The users of teams. Control planes that share the list read it before they write."""

    def __init__(self, home: ExecutorDir, uid_range: UidRange) -> None:
        self._home = home
        self._uid_range = uid_range
        self._path = f"{home.path}/{TEAM_USERS}"
        self._teams, self._is_migrated = _read(self._path)
        self._groups = _gpu_groups()
        if not os.path.exists(self._path):
            self._write()

    def user_for(self, team: str, *, gpus: bool = False) -> UserLine:
        """Return the user of a team; a new one is on disk when this returns.

        Raises `OSError` if it cannot be written, and `UidsExhausted`.
        """
        uid = self._teams.get(team)
        if uid is None:
            with self._exclusive():
                # Another control plane may have written since: no user is given twice.
                self.reload()
                uid = self._teams.get(team) or self._give(team)
        groups = self._groups if gpus else []
        return {"uid": uid, "gid": uid, "groups": groups, "name": file_name(team)}

    def reload(self) -> None:
        """Read which users were given to teams, perhaps by another control plane."""
        teams, _ = _read(self._path)
        self._teams |= teams

    def _give(self, team: str) -> int:
        uid = self._free()
        self._teams[team] = uid
        try:
            self._write()
        except OSError:
            del self._teams[team]
            raise
        return uid

    @contextmanager
    def _exclusive(self) -> Generator[None, None, None]:
        lock = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def known(self, team: str) -> UserLine | None:
        """Return the user of a team that has one, from any thread."""
        uid = self._teams.get(team)
        if uid is None:
            return None
        return {"uid": uid, "gid": uid, "groups": [], "name": file_name(team)}

    def stand_in(self, team: str) -> UserLine | None:
        """Return the user of a team, or one that no team has, from any thread.

        A new team gets a user with its first job. Until then, it can do what any other user can.
        """
        known = self.known(team)
        if known is not None:
            return known
        try:
            uid = self._free()
        except UidsExhausted:
            return None
        return {"uid": uid, "gid": uid, "groups": [], "name": file_name(team)}

    def migrate_ownership(self, but: tuple[str, ...] = ()) -> int:
        """Give existing folders to their teams, once; return how many files were left alone."""
        remove_other_access(self._home.path, ("attempts", "teams"))
        if self._is_migrated:
            return 0
        left = 0
        teams = f"{self._home.path}/teams"
        for name in sorted(os.listdir(teams)):
            if plain_name(name) not in but:
                uid = self.user_for(plain_name(name))["uid"]
                left += chown_tree(f"{teams}/{name}", "", uid, uid)
        self._is_migrated = True
        self._write()
        return left

    def _free(self) -> int:
        given = frozenset(self._teams.values())
        for uid in range(self._uid_range.first, self._uid_range.last + 1):
            if uid not in given and not _has_account(uid):
                return uid
        raise UidsExhausted

    def _write(self) -> None:
        kept = {"teams": self._teams, "put_right": self._is_migrated}
        write_durably(self._path, json.dumps(kept, indent=1))


def reset_ownership_migration(home: ExecutorDir) -> None:
    """Record that jobs run as root again: their files must be given to their teams later."""
    path = f"{home.path}/{TEAM_USERS}"
    if os.path.exists(path):
        teams, is_put_right = _read(path)
        if is_put_right:
            write_durably(path, json.dumps({"teams": teams, "put_right": False}, indent=1))


def why_no_team_users(home: str, uid_range: UidRange) -> str:
    """Return why teams cannot have their own users here; empty if they can."""
    if os.geteuid() != 0:
        return "not started as root"
    missing = [name for name, bit in NEEDED.items() if not _capabilities() >> bit & 1]
    if missing:
        return f"root lacks capabilities here: {', '.join(missing)}"
    for kind in ("uid", "gid"):
        if not _is_mapped(f"/proc/self/{kind}_map", uid_range):
            ids = f"{uid_range.first} to {uid_range.last}"
            return f"this container has no {kind} {ids}; see --team-uids"
    folder = os.path.dirname(os.path.realpath(home))
    closed = ""
    while not closed and folder != "/":
        if os.path.isdir(folder) and not os.stat(folder).st_mode & 0o001:
            closed = folder
        folder = os.path.dirname(folder)
    return f"team users cannot enter `{closed}`; see --state-dir" if closed else ""


def _read(path: str) -> tuple[dict[str, int], bool]:
    try:
        with open(path, "rb") as file:
            text = file.read()
    except FileNotFoundError:
        return {}, False
    with suppress(ValueError, TypeError, AttributeError, KeyError, RecursionError):
        found = cast("dict[str, Any]", json.loads(text))
        teams = {str(team): int(uid) for team, uid in found["teams"].items()}
        if min(teams.values(), default=1) > 0:
            return teams, bool(found.get("put_right"))
    raise InputError(
        "team-users-damaged",
        "cannot read the list of team users, and an id must not be assigned twice",
        "restore the file, or rebuild it from the owners of the folders in `teams`",
        file=path,
    )


def _has_account(uid: int) -> bool:
    with suppress(KeyError):
        return bool(pwd.getpwuid(uid))
    with suppress(KeyError):
        return bool(grp.getgrgid(uid))
    return False


def _gpu_groups() -> list[int]:
    found: list[int] = []
    for name in GPU_GROUPS:
        with suppress(KeyError):
            found.append(grp.getgrnam(name).gr_gid)
    return [gid for gid in found if gid]


def _capabilities() -> int:
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("CapEff:"):
                return int(line.split()[1], 16)
    return 0


def _is_mapped(path: str, uid_range: UidRange) -> bool:
    """Return whether the ids are mapped in this user namespace."""
    try:
        with open(path, encoding="ascii") as file:
            lines = [[int(word) for word in line.split()] for line in file]
    except OSError:
        return True
    return any(
        first <= uid_range.first and uid_range.last < first + count for first, _, count in lines
    )
