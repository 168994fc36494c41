"""When a job last saved, for a process that does not trust the job.

Everything in a checkpoint folder is written by the job. It may contain pipes, devices, links,
sparse files of any size and any number of names. Only small regular files are read, without
following links, and only the newest few checkpoints are examined.
"""

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from tenfold.checkpoint.errors import Damaged
from tenfold.checkpoint.files import Disk, Stream
from tenfold.checkpoint.keeping import check_sizes
from tenfold.checkpoint.manifest import committed

MANIFEST_BYTES_MOST = 1 << 20
"""Enough for the files of 5,000 ranks."""
CHECKPOINTS_MOST = 16
"""Damaged checkpoints that are skipped before the search ends."""
NAMES_MOST = 10_000
"""Names of a folder that are read."""
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK


def last_saved_ms(folder: str | Path) -> int | None:
    """Return the time of the newest valid checkpoint; None if there is none among the newest.

    The value is what the job wrote. The caller limits it to a plausible range.
    """
    top = Path(folder)
    files = _UntrustedDisk(top)
    for entry in committed(files, top)[:CHECKPOINTS_MOST]:
        try:
            return check_sizes(files, entry, MANIFEST_BYTES_MOST).at_ms
        except Damaged:
            continue
    return None


class _UntrustedDisk(Disk):
    """A disk on which the content of one folder may be anything. It never blocks."""

    def __init__(self, top: Path) -> None:
        self._top = top

    @contextmanager
    def open(self, path: Path) -> Generator[Stream, None, None]:
        """Open a regular file without following a link."""
        file = os.open(path, _OPEN | os.O_NOFOLLOW)
        with os.fdopen(file, "rb", buffering=0) as stream:
            _check_regular(os.fstat(file), path)
            yield stream

    def size(self, path: Path) -> int:
        """Return the size of a regular file; a link is none."""
        status = path.lstat()
        _check_regular(status, path)
        return status.st_size

    def names(self, folder: Path) -> list[str]:
        """Return the first names in a folder, sorted. Only the top folder may be a link."""
        links = 0 if folder == self._top else os.O_NOFOLLOW
        try:
            file = os.open(folder, _OPEN | os.O_DIRECTORY | links)
        except OSError:
            return []
        try:
            with os.scandir(file) as entries:
                return sorted(entry.name for entry in islice(entries, NAMES_MOST))
        finally:
            os.close(file)


def _check_regular(status: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
