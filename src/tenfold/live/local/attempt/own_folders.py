"""Give a team's existing folders to its new user, once.

Their content was written by jobs, and jobs may still write there. No file is therefore accessed by
its path: each is opened from its folder without following links, and only the open file changes
owner. Links, devices, other file systems, and files with a second hard link, which may be outside
the folder, are left alone.
"""

import os
import stat
from contextlib import suppress

from tenfold.live.local.attempt.folder import AttemptFolder
from tenfold.live.local.attempt.places import JobFolders

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = _OPEN | os.O_DIRECTORY


def chown_tree(base: str, inside: str, uid: int, gid: int) -> int:
    """Change the owner of a folder's content; return how many files could not be changed.

    `base` is a folder that only root can replace with a link; `inside` is a path below it, which
    jobs may have changed.
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
    """Change the owner of a folder and its content, itself last, to show completion."""
    device, left = os.fstat(top).st_dev, 0
    # Iterative, not recursive: a job may nest folders arbitrarily deep.
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
    """Give a job's folders to its user if an earlier attempt ran as root."""
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
    """Remove other users' access to the content of root's folder, except some names."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name in but or entry.is_symlink():
                continue
            with suppress(FileNotFoundError):
                mode = stat.S_IMODE(entry.stat(follow_symlinks=False).st_mode)
                if mode & 0o077:
                    os.chmod(entry.path, mode & 0o700)
