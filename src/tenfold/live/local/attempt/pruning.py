"""Remove the folders of attempts that are over: the oldest first, and only what is settled.

A folder is settled once its end stands in the journal; until then it is the only record of
that end. Attempts of jobs that are not over stay, whatever their age: the number of the next
one is told from them. What goes is moved aside first, so that nobody finds half a folder.
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
    """What stays of attempts whose jobs are over. Both figures are assumptions."""

    days: float = 14.0
    gib: float = 20.0
    """The newest stay up to this size, even where all are younger than the days."""


class Pruned(Struct, frozen=True, kw_only=True):
    """What was removed, and what stays of attempts that are over."""

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
    """Remove what is too old or too much. `active_jobs` names the jobs whose attempts stay.

    It is asked after the folders were looked at: a job that has a settled attempt by then and
    is not over is sure to be named.
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
                # Moved aside by somebody who was killed before it was removed.
                shutil.rmtree(f"{attempts}/{job}/{name}", ignore_errors=True)
            elif name.isdecimal():
                folder = home.attempt(plain_name(job), int(name))
                with suppress(FileNotFoundError):
                    if not os.path.exists(folder.marker):
                        ended_ms = os.stat(f"{folder.path}/end.json").st_mtime_ns // 1_000_000
                        yield _Settled(ended_ms, _size(folder.path), folder)


def _size(path: str) -> int:
    """Return what a folder takes on the disk."""
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
