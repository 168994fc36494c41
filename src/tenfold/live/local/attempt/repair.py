"""Put back an attempt folder that a job removed, replaced or filled.

Without users for teams, jobs run as the owner of these folders. A result that can never be written
would hold the slots of its job for ever, so what is in the way of it is moved aside. The marker is
a second link to the record: with it the record comes back, and its lock too.
"""

import errno
import os
import re
import stat
import time
from collections.abc import Callable
from contextlib import suppress

from tenfold.live.local.attempt.folder import FILE_BYTES_MOST, AttemptFolder, link_marker, write

FULL = (errno.ENOSPC, errno.EDQUOT)
_FILES = ("record", "end.json", ".end.json")
_OWN = re.compile(r"record|\.?(stop|end)\.json|[0-9]+\.(beat|log([.@][0-9]+)?)")
"""What a supervisor writes to the folder; a job has no files here."""


def restore(folder: AttemptFolder) -> None:
    """Make a folder that takes a result; raises `OSError` if the disk refuses."""
    for path in (folder.job_folder, folder.path):
        if not _is(path, stat.S_ISDIR):
            _move_aside(path)
            os.mkdir(path, 0o700)
        elif not os.access(path, os.W_OK | os.X_OK):
            os.chmod(path, 0o700)
    for name in _FILES:
        path = f"{folder.path}/{name}"
        if not _is(path, stat.S_ISREG):
            _move_aside(path)
    _restore_record(folder)


def free_space(folder: AttemptFolder, log_bytes_most: int) -> None:
    """Remove files that a job put into its attempt folder, and logs that it made larger."""
    with os.scandir(folder.path) as entries:
        for entry in list(entries):
            most = log_bytes_most if ".log" in entry.name else FILE_BYTES_MOST
            is_own = _OWN.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)
            if is_own and (
                entry.name == "record" or entry.stat(follow_symlinks=False).st_size <= most
            ):
                continue
            with suppress(OSError):
                _remove(entry)


def is_planted(folder: AttemptFolder) -> bool:
    """Tell whether a folder was not made by a spawner, whose folders have a marker or an end."""
    return not os.path.lexists(folder.marker) and not _is(f"{folder.path}/end.json", stat.S_ISREG)


def move_planted(folder: AttemptFolder) -> None:
    """Move aside a folder that is in the place of a new attempt."""
    _move_aside(folder.path)


def _restore_record(folder: AttemptFolder) -> None:
    record, marker = f"{folder.path}/record", folder.marker
    has_record, has_marker = _is(record, stat.S_ISREG), _is(marker, stat.S_ISREG)
    if has_record and has_marker and os.path.samefile(record, marker):
        return
    if has_marker and os.path.getsize(marker):
        _move_aside(record)
        os.link(marker, record)
        return
    if not has_record:
        write(record, folder.launch_record())
    _move_aside(marker)
    link_marker(record, marker)


def _is(path: str, kind: Callable[[int], bool]) -> bool:
    try:
        return kind(os.lstat(path).st_mode)
    except OSError:
        return False


def _move_aside(path: str) -> None:
    """Remove a file; rename a folder, which may be large, to be removed with the attempt."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):
        head, _, name = path.rpartition("/")
        os.rename(path, f"{head}/.{name}.{time.monotonic_ns()}.gone")


def _remove(entry: "os.DirEntry[str]") -> None:
    if entry.is_dir(follow_symlinks=False):
        import shutil  # noqa: PLC0415 - large, and hardly ever needed

        shutil.rmtree(entry.path, ignore_errors=True)
    else:
        os.unlink(entry.path)
