"""Heartbeats: a member touches a file, and is considered hung if it stops.

Only changes of the file count, timed on a monotonic clock; its date is not compared with the time
of day.
"""

import os

from tenfold.live.local.spawner.wire import UserLine

CHECKS_PER_LIMIT = 4
CHECK_MS_MIN = 50


def heartbeat_file(folder: str, rank: int) -> str:
    """Return the heartbeat file of a member."""
    return f"{folder}/{rank}.beat"


def touch_heartbeat(folder: str, rank: int, user: UserLine | None = None) -> str:
    """Create and return the heartbeat file of a member: a container can only mount existing files.

    A team's user could not create it in a folder that it does not own.
    """
    path = heartbeat_file(folder, rank)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if user is not None:
            os.fchown(file, user["uid"], user["gid"])
    finally:
        os.close(file)
    return path


class Heartbeats:
    """The heartbeat files of one gang. Does nothing without a limit."""

    def __init__(self, folder: str, members: int, silent_ms_most: int | None, now_ms: int) -> None:
        self._paths = [heartbeat_file(folder, rank) for rank in range(members)]
        self._most_ms = silent_ms_most
        self._last_change = [(0, now_ms)] * members
        self._check_at_ms = now_ms

    def next_check_ms(self, now_ms: int) -> list[int]:
        """Return the wait until the next check; empty if none is due."""
        return [] if self._most_ms is None else [max(self._check_at_ms - now_ms, 0)]

    def hung_member(self, now_ms: int, ranks: list[int]) -> int | None:
        """Return a running member without a heartbeat for too long, if a check is due."""
        if self._most_ms is None or now_ms < self._check_at_ms:
            return None
        self._check_at_ms = now_ms + max(self._most_ms // CHECKS_PER_LIMIT, CHECK_MS_MIN)
        for rank in ranks:
            beat, since_ms = self._last_change[rank]
            changed = _changed_ns(self._paths[rank])
            if changed != beat:
                self._last_change[rank] = (changed, now_ms)
            elif now_ms - since_ms > self._most_ms:
                return rank
        return None

    def silence_ms(self, rank: int, now_ms: int) -> int:
        """Return the time since a member's last observed heartbeat."""
        return now_ms - self._last_change[rank][1]


def _changed_ns(path: str) -> int:
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return 0
