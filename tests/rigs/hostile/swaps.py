"""Folders of two teams, one of which is exchanged with a link as fast as can be.

Red owns the folder that its job names, and exchanges it with a link to a folder of blue's. Blue's
folder can be read by everybody, but lies behind one that only blue can enter.
"""

import ctypes
import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

SECRET = "the secret of blue"
OWN = "red's own"
AT_FDCWD, RENAME_EXCHANGE = -100, 2
RESOLVES_LIKE_PODMAN = """#!/bin/sh
# Mounts what it is given as root, as podman does, and reads it as the user that it is given.
for word in "$@"; do
    case $word in
    --user=*) uid=${word#--user=}; uid=${uid%%:*};;
    --mount=type=bind,source=*) source=${word#--mount=type=bind,source=}; source=${source%%,*}
        [ -d "$source" ] && sources="$sources $source";;
    esac
done
export uid
for source in $sources; do
    unshare --mount --propagation private sh -c '
        mount --rbind "$0" "$HOME" && cd "$HOME" &&
        setpriv --reuid=$uid --regid=$uid --clear-groups cat secret' "$source"
done 2>&1
true
"""


class Place:
    """Folders of two teams, and a state folder that both can pass through."""

    def __init__(self, folder: Path, red: int, blue: int) -> None:
        """`red` and `blue` are the users of the teams."""
        self.folder = folder
        folder.chmod(0o711)
        closed = self.made("blue", blue, 0o700)
        self.target = self.made("blue/open", blue, 0o755)
        (self.target / "secret").write_text(SECRET)
        assert closed.stat().st_mode & 0o777 == 0o700
        self.red = self.made("red", red, 0o755)
        self.work = self.made("red/work", red, 0o755)
        self.link = self.red / "link"
        self.link.symlink_to(self.target)
        os.lchown(self.link, red, red)

    def made(self, name: str, uid: int, mode: int) -> Path:
        folder = self.folder / name
        folder.mkdir()
        folder.chmod(mode)
        os.chown(folder, uid, uid)
        return folder


@contextmanager
def swapping(one: Path, other: Path, uid: int) -> Generator[None]:
    """Exchange two names as a user, without a pause."""
    exchange = ctypes.CDLL(None, use_errno=True).renameat2
    first, second = os.fsencode(one), os.fsencode(other)
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            while exchange(AT_FDCWD, first, AT_FDCWD, second, RENAME_EXCHANGE) == 0:
                pass
        finally:
            os._exit(1)
    try:
        yield
        assert os.waitpid(pid, os.WNOHANG) == (0, 0), "the swaps stopped"
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
