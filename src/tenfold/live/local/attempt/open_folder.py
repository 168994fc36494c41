"""Open a folder once, so that what was checked is what is used.

A path that a team can change may lead elsewhere the next time it is resolved. A descriptor does not
change. The caller acts with the team's rights, so a link leads no further than the team can go by
itself. The links of `/proc` are not followed: they skip these checks, and `/proc/self` is the
process that resolves the path.
"""

import ctypes
import errno
import os
from collections.abc import Generator
from contextlib import contextmanager

_OPENAT2 = 437
"""The same number on every architecture."""
_AT_FDCWD = -100
_RESOLVE_NO_MAGICLINKS = 0x02
_FLAGS = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_MISSING = (errno.ENOSYS, errno.EPERM)
"""Kernels before 5.6 do not have the call, and some sandboxes refuse it."""
_syscall = ctypes.CDLL(None, use_errno=True).syscall


class _OpenHow(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


_HOW = _OpenHow(_FLAGS, 0, _RESOLVE_NO_MAGICLINKS)


def open_folder(path: str, own: str = "") -> int:
    """Return a descriptor of a folder that this user can enter; raises `OSError`.

    `own` is the team's folder, which only root can replace: folders missing in it are created.
    Without `openat2`, no link is followed, except on the way to `own`.
    """
    try:
        if own and f"{path}/".startswith(f"{own}/"):
            base = os.open(own, _FLAGS | os.O_NOFOLLOW)
            try:
                folder = _open_or_make(base, path.removeprefix(own).strip("/"))
            finally:
                os.close(base)
        else:
            folder = _open(_AT_FDCWD, path)
        try:
            # Searches the folder itself, which opening it does not.
            os.stat(".", dir_fd=folder)
        except OSError:
            os.close(folder)
            raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None
    return folder


@contextmanager
def opened(path: str) -> Generator[str, None, None]:
    """Open a folder until the end of the block, and give a path that always leads to it."""
    folder = open_folder(path)
    try:
        yield f"/proc/self/fd/{folder}"
    finally:
        os.close(folder)


def _open_or_make(base: int, path: str) -> int:
    try:
        return _open(base, path or ".")
    except FileNotFoundError:
        folder = os.dup(base)
    try:
        # From folder to folder, and not recursive: a job may name any number of them.
        for part in path.split("/"):
            try:
                below = _open(folder, part)
            except FileNotFoundError:
                os.mkdir(part, 0o700, dir_fd=folder)
                below = _open(folder, part)
            os.close(folder)
            folder = below
    except OSError:
        os.close(folder)
        raise
    return folder


def _open(base: int, path: str) -> int:
    raw = os.fsencode(path)
    while True:
        folder = _syscall(_OPENAT2, base, raw, ctypes.byref(_HOW), ctypes.sizeof(_HOW))
        if folder >= 0:
            return folder
        number = ctypes.get_errno()
        if number in _MISSING:
            return open_without_links(base, path)
        if number != errno.EINTR:
            break
    why = os.strerror(number)
    if number == errno.ELOOP:
        why = "it has too many links, or one of /proc that must not be followed"
    raise OSError(number, why)


def open_without_links(base: int, path: str) -> int:
    """Return a descriptor of a folder without `openat2`: no link is followed at all."""
    folder = os.open("/", _FLAGS) if path.startswith("/") else os.open(".", _FLAGS, dir_fd=base)
    try:
        for part in path.split("/"):
            if part not in ("", "."):
                below = os.open(part, _FLAGS | os.O_NOFOLLOW, dir_fd=folder)
                os.close(folder)
                folder = below
    except OSError as error:
        os.close(folder)
        why = error.strerror
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            why = "not a folder, or behind a link, which this kernel cannot follow safely"
        raise OSError(error.errno, why) from None
    return folder
