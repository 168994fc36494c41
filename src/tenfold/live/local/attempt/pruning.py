"""Remove attempt folders of finished jobs: oldest first, and only settled ones.

An attempt is settled once its end is in the journal; until then its folder is the only record.
Attempts of unfinished jobs stay at any age, because they determine the next attempt number. A
folder is renamed before it is removed, so no one finds a partial one.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress

from msgspec import Struct

from tenfold.live.local.attempt.folder import AttemptFolder, ExecutorDir, plain_name
from tenfold.model.units import HOUR

DAY_MS = 24 * HOUR
GIB = 1 << 30
GONE = ".gone"


class AttemptRetention(Struct, frozen=True, kw_only=True):
    """Retention of attempts of finished jobs. Both values are assumptions."""

    days: float = 14.0
    gib: float = 20.0
    """The newest are kept up to this size, even if all are younger than `days`."""


class Pruned(Struct, frozen=True, kw_only=True):
    """What was removed, and what remains of ended attempts."""

    folders: int = 0
    bytes_freed: int = 0
    bytes_left: int = 0


class _Settled(Struct, frozen=True):
    ended_ms: int
    size: int
    folder: AttemptFolder


def prune(
    home: ExecutorDir,
    retention: AttemptRetention,
    now_ms: int,
    active_jobs: Callable[[], frozenset[str]],
) -> Pruned:
    """Remove attempts that are too old or too large in total, except those of `active_jobs`.

    `active_jobs` is called after the folders are listed, so an unfinished job with a settled
    attempt is always included.
    """
    found = list(_settled(home))
    stay = active_jobs()
    found = [one for one in found if one.folder.job not in stay]
    found.sort(key=lambda one: (one.ended_ms, one.folder.job, one.folder.number), reverse=True)
    oldest_ms, left, freed, count = now_ms - retention.days * DAY_MS, 0, 0, 0
    for one in found:
        if one.ended_ms >= oldest_ms and left + one.size <= retention.gib * GIB:
            left += one.size
        elif _remove(one.folder):
            freed, count = freed + one.size, count + 1
    return Pruned(folders=count, bytes_freed=freed, bytes_left=left)


def _settled(home: ExecutorDir) -> Iterator[_Settled]:
    attempts = f"{home.path}/attempts"
    for job in os.listdir(attempts):
        for name in os.listdir(f"{attempts}/{job}"):
            if name.endswith(GONE):
                # Renamed by a process that was killed before removing it.
                shutil.rmtree(f"{attempts}/{job}/{name}", ignore_errors=True)
            elif name.isdecimal():
                folder = home.attempt(plain_name(job), int(name))
                with suppress(FileNotFoundError):
                    if not os.path.exists(folder.marker):
                        ended_ms = os.stat(f"{folder.path}/end.json").st_mtime_ns // 1_000_000
                        yield _Settled(ended_ms, _size(folder.path), folder)


def _size(path: str) -> int:
    """Return the size of a folder on disk."""
    with os.scandir(path) as entries:
        return sum(entry.stat(follow_symlinks=False).st_blocks * 512 for entry in entries)


def _remove(folder: AttemptFolder) -> bool:
    if folder.is_locked() or os.path.exists(folder.marker):
        return False
    staging = f"{folder.job_folder}/{folder.number}{GONE}"
    try:
        os.rename(folder.path, staging)
    except OSError:
        return False
    shutil.rmtree(staging, ignore_errors=True)
    with suppress(OSError):
        os.rmdir(folder.job_folder)
    return True
