"""Signs of life: a member touches a file, and one that stops doing so is taken to hang.

What counts is that the file changed, measured on a clock that never jumps; its date is not
compared with the time of day.
"""

import os

from tenfold.live.local.spawner.wire import UserLine

CHECKS_PER_LIMIT = 4
CHECK_MS_MIN = 50


def heartbeat_file(folder: str, rank: int) -> str:
    """Return the file that a member touches."""
    return f"{folder}/{rank}.beat"


def touch_heartbeat(folder: str, rank: int, user: UserLine | None = None) -> str:
    """Return the file of a member, made already: an image can be shown only what is there.

    Nor could a user of a team make it in a folder that is not its own.
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
    """The heartbeat files of one gang. Watches nothing where no limit was asked for."""

    def __init__(self, folder: str, members: int, silent_ms_most: int | None, now_ms: int) -> None:
        self._paths = [heartbeat_file(folder, rank) for rank in range(members)]
        self._most_ms = silent_ms_most
        self._last_change = [(0, now_ms)] * members
        self._check_at_ms = now_ms

    def next_check_ms(self, now_ms: int) -> list[int]:
        """Return the wait until the next look; nothing where none is due."""
        return [] if self._most_ms is None else [max(self._check_at_ms - now_ms, 0)]

    def hung_member(self, now_ms: int, ranks: list[int]) -> int | None:
        """Return a running member that was silent for too long, if it is time to look."""
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
        """Return for how long a member has been silent, as far as anybody looked."""
        return now_ms - self._last_change[rank][1]


def _changed_ns(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0
