"""Mount a team's folders for its container, in a mount namespace of their own.

Podman runs as root and resolves the path of a mount by itself. A team could swap the folder for a
link after it was checked. Podman therefore gets paths of root's: each is an empty folder, onto
which the folder is mounted that was opened with the team's rights.

Other processes do not see these mounts, and the kernel removes them with the last process of the
container.
"""

import ctypes
import os
from typing import NamedTuple

from tenfold.live.local.attempt.open_folder import open_folder
from tenfold.live.local.member.user import acting_as
from tenfold.live.local.spawner.wire import UserLine

_CLONE_NEWNS = 0x00020000
_MS_BIND, _MS_REC, _MS_SLAVE = 0x1000, 0x4000, 0x80000
_libc = ctypes.CDLL(None, use_errno=True)


class TeamMounts(NamedTuple):
    """The folders of a container."""

    user: UserLine
    team: str
    """The team's folder, which only root can replace."""
    pairs: list[tuple[str, str]]
    """A folder, and the empty folder that it is mounted onto."""


def mount_as_team(mounts: TeamMounts) -> None:
    """Mount folders in a new namespace of this process; raises `OSError`."""
    _check(_libc.unshare(_CLONE_NEWNS))
    # What the machine mounts later is seen here too, and nothing of this is seen outside.
    _mount(b"none", "/", _MS_REC | _MS_SLAVE)
    for path, onto in mounts.pairs:
        # Opened here, since only a folder of this namespace can be mounted in it.
        try:
            with acting_as(mounts.user):
                folder = open_folder(path, mounts.team)
        except OSError as error:
            raise OSError(error.errno, f"cannot open `{path}`: {error.strerror}") from None
        _mount(f"/proc/self/fd/{folder}".encode(), onto, _MS_BIND | _MS_REC)
        os.close(folder)


def _mount(source: bytes, target: str, flags: int) -> None:
    _check(_libc.mount(source, os.fsencode(target), None, ctypes.c_ulong(flags), None))


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        why = f"cannot mount its folders in a mount namespace: {os.strerror(number)}"
        raise OSError(number, why)
