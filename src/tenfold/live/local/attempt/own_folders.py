"""Folders of a team that came to be before it had a user: they are given to it, once.

What lies there was written by jobs, and jobs may write there meanwhile. So nothing is reached
by its path: every file is opened from the folder that holds it, without following a link, and
what was opened is what changes hands. Left alone are links, devices, other file systems, and
files with a second name, which may stand outside the folder.
"""

import os
import stat
from contextlib import suppress

from tenfold.live.local.attempt.folder import AttemptFolder
from tenfold.live.local.attempt.places import JobFolders

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = _OPEN | os.O_DIRECTORY


def chown_tree(base: str, inside: str, uid: int, gid: int) -> int:
    """Give what lies in a folder to a user; return how much of it could not be given.

    `base` is a folder that nobody but root can put a link in place of; `inside` is a path below
    it, of which that cannot be said.
    """
    try:
        folder = os.open(base, _FOLDER)
    except OSError:
        return 1
    try:
        for part in inside.split("/") if inside else ():
            below = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = below
        return _chown_all(folder, uid, gid)
    except OSError:
        return 1
    finally:
        os.close(folder)


def _chown_all(top: int, uid: int, gid: int) -> int:
    """Give a folder and what is below, itself last: while it is root's, it is not done."""
    device, left = os.fstat(top).st_dev, 0
    # Depth by a list and not by calls: a job may nest folders as deep as it likes.
    waiting = [(os.dup(top), list(_names(top)))]
    while waiting:
        folder, names = waiting[-1]
        if not names:
            waiting.pop()
            left += not _chown_folder(folder, uid, gid)
            continue
        name = names.pop()
        try:
            status = os.lstat(name, dir_fd=folder)
            if stat.S_ISDIR(status.st_mode) and status.st_dev == device:
                below = os.open(name, _FOLDER, dir_fd=folder)
                waiting.append((below, list(_names(below))))
            elif stat.S_ISREG(status.st_mode) and status.st_uid != uid:
                left += not _chown_file(name, folder, uid, gid)
        except FileNotFoundError:
            continue
        except OSError:
            left += 1
    return left


def _names(folder: int) -> list[str]:
    return sorted(os.listdir(folder))


def _chown_folder(folder: int, uid: int, gid: int) -> bool:
    try:
        os.fchown(folder, uid, gid)
    except OSError:
        return False
    finally:
        os.close(folder)
    return True


def _chown_file(name: str, folder: int, uid: int, gid: int) -> bool:
    file = os.open(name, _OPEN, dir_fd=folder)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            return False
        os.fchown(file, uid, gid)
    finally:
        os.close(file)
    return True


def chown_root_leftovers(folder: AttemptFolder, folders: JobFolders) -> None:
    """Give a job's folders to its user where an earlier attempt ran without one."""
    user = folders.user
    if user is None or folder.number == 1 or not _ran_as_root(folder):
        return
    base = f"{folders.team}/"
    for place in (folders.workdir, folders.checkpoints):
        if place.startswith(base):
            chown_tree(folders.team, place.removeprefix(base), user["uid"], user["gid"])


def _ran_as_root(folder: AttemptFolder) -> bool:
    earlier = [number for number in folder.home.numbers(folder.job) if number < folder.number]
    if not earlier:
        return False
    launch = folder.home.attempt(folder.job, earlier[-1]).record().get("launch")
    return launch is not None and "user" not in launch


def remove_other_access(folder: str, but: tuple[str, ...]) -> None:
    """Close what lies in a folder of root's to everybody else, but for some names."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name in but or entry.is_symlink():
                continue
            with suppress(FileNotFoundError):
                mode = stat.S_IMODE(entry.stat(follow_symlinks=False).st_mode)
                if mode & 0o077:
                    os.chmod(entry.path, mode & 0o700)
