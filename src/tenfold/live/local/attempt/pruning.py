"""Remove old attempt folders: oldest first, and only settled ones.

An attempt is settled once its end is in the journal; until then its folder is the only record. The
latest attempts of an unfinished job stay at any age, because they determine the next attempt
number; older ones are removed, since a job may be started any number of times. A folder is renamed
before it is removed, so no one finds a partial one.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from msgspec import Struct

from tenfold.live.local.attempt.folder import AttemptFolder, ExecutorDir, plain_name
from tenfold.model.units import HOUR

DAY_MS = 24 * HOUR
GIB = 1 << 30
GONE = ".gone"


class AttemptRetention(Struct, frozen=True, kw_only=True):
    """Retention of attempts. All values are assumptions."""

    days: float = 14.0
    gib: float = 20.0
    """The newest of finished jobs are kept up to this size, even if all are younger than `days`."""
    attempts: int = 20
    """The latest of each job that are kept."""


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
    """Remove attempts that are too old, too many of one job, or too large in total.

    Of `active_jobs` only those are removed that are too many. It is called after the folders are
    listed, so an unfinished job with a settled attempt is always included.
    """
    found = list(_settled(home))
    stay = active_jobs()
    surplus = _surplus(found, retention.attempts)
    found.sort(key=lambda one: (one.ended_ms, one.folder.job, one.folder.number), reverse=True)
    oldest_ms, left, freed, count = now_ms - retention.days * DAY_MS, 0, 0, 0
    for one in found:
        is_surplus = one.folder.path in surplus
        if one.folder.job in stay and not is_surplus:
            continue
        is_recent = one.ended_ms >= oldest_ms and left + one.size <= retention.gib * GIB
        if is_recent and not is_surplus:
            left += one.size
        elif _remove(one.folder):
            freed, count = freed + one.size, count + 1
    return Pruned(folders=count, bytes_freed=freed, bytes_left=left)


def _surplus(found: Sequence[_Settled], most: int) -> set[str]:
    """Return the attempts that are not among the latest of their job."""
    by_job: dict[str, list[AttemptFolder]] = {}
    for one in found:
        by_job.setdefault(one.folder.job, []).append(one.folder)
    return {
        folder.path
        for folders in by_job.values()
        for folder in sorted(folders, key=lambda folder: folder.number)[:-most]
    }


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
