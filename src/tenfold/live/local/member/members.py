"""Start a member of the gang: with `posix_spawn` where nothing is left to do before its exec.

Otherwise a fork of the supervisor joins control groups, changes its user and mounts folders first.
Between fork and exec no failure may go unnoticed: errors are written to a pipe that a successful
exec closes. And little may be done there, because whatever a fork touches is copied. What all
members share is therefore set up once, in the supervisor. Even so a fork costs 0.9 ms more CPU
than `posix_spawn`, which copies nothing: twice what running `true` takes.
"""

import fcntl
import os
import resource
import signal
import termios
from collections.abc import Mapping
from typing import NamedTuple

from tenfold.live.local.member.limits import AttemptCgroup
from tenfold.live.local.member.mounts import TeamMounts, mount_as_team
from tenfold.live.local.member.user import acting_as, blocked_by, drop_to
from tenfold.live.local.processes import die_with_parent
from tenfold.live.local.spawner.wire import UserLine

FAILED = 127
UMASK = 0o022
BLOCKED_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD)
"""Signals that spawner and supervisor read from a pipe, and that a fork must not consume."""
_FILES = resource.getrlimit(resource.RLIMIT_NOFILE)
"""File limit of a job: that of the spawner before it raised its own."""
HANDLED_SIGNALS = (*BLOCKED_SIGNALS, signal.SIGPIPE, signal.SIGXFSZ)
"""Signals with a handler: a command gets the default for these, while ignored ones, as Python
ignores the last two, would stay ignored."""


class Streams(NamedTuple):
    """What a process writes to and reads from."""

    output: int
    errors: int
    input: int = -1
    """-1 for that of the supervisor, which is empty."""
    is_terminal: bool = False
    """Whether they are a terminal, which the process then controls."""


def prepare_for_members(folder: int, user: UserLine | None = None) -> None:
    """Set up what members inherit from this process, in an open folder."""
    with acting_as(user):
        os.fchdir(folder)
    os.umask(UMASK)
    resource.setrlimit(resource.RLIMIT_NOFILE, _FILES)


def spawn_member(
    command: list[str], environment: Mapping[str, str], *, output: int, failures: int
) -> int:
    """Return the process of a new member that leads its own session; 0 if there is none.

    The kernel does not kill such a member with its supervisor: the spawner does, or the next one.
    """
    try:
        return os.posix_spawn(
            _found(command[0], environment.get("PATH", "")),
            command,
            environment,
            file_actions=[(os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, output, 2)],
            setsid=True,
            setsigmask=(),
        )
    except OSError as error:
        _complain(failures, command[0], f"{error.strerror}")
    return 0


def start_member(  # noqa: PLR0913 - one thing after another that a member is
    command: list[str],
    environment: Mapping[str, str],
    *,
    streams: Streams,
    failures: int,
    group: AttemptCgroup,
    memory_mib: int,
    user: UserLine | None = None,
    mounts: TeamMounts | None = None,
) -> int:
    """Return the process of a new member, which leads its own session.

    The caller blocks `BLOCKED_SIGNALS`, has an empty standard input, and sends no signal
    before the member runs its command.
    """
    supervisor = os.getpid()
    path = environment.get("PATH", "")
    found = _found(command[0], path)
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        if mounts is not None:
            # First, since it changes the user for a moment.
            mount_as_team(mounts)
        _die_with(supervisor)
        group.join(memory_mib)
        if user is not None:
            drop_to(user)
            # The kernel resets the parent-death signal when a process changes its user.
            _die_with(supervisor)
            if not os.access(found, os.X_OK):
                # The first match on PATH for root may be inaccessible to the team, and a later one
                # accessible.
                own = _found(command[0], path)
                found = own if "/" in own else found
        if streams.input >= 0:
            os.dup2(streams.input, 0)
        os.dup2(streams.output, 1)
        os.dup2(streams.errors, 2)
        if streams.is_terminal:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, BLOCKED_SIGNALS)
        os.execve(found, command, environment)
    except BaseException as error:
        why = error.strerror if isinstance(error, OSError) else repr(error)
        closed = "" if user is None else blocked_by(found, user)
        _complain(failures, command[0], f"{why}{closed}")
    finally:
        os._exit(FAILED)


def _complain(failures: int, name: str, why: str) -> None:
    os.write(failures, f"cannot run the command `{name}`: {why}\n".encode()[-1_000:])


def _die_with(supervisor: int) -> None:
    """Die with the parent, or at once if it has already died."""
    die_with_parent()
    if os.getppid() != supervisor:
        os._exit(FAILED)


def _found(name: str, path: str) -> str:
    """Return the file of a command; a search is cheaper than trying to run each."""
    if "/" not in name:
        for folder in path.split(":"):
            file = f"{folder}/{name}"
            if folder and os.access(file, os.X_OK) and not os.path.isdir(file):
                return file
    return name


def open_pipe() -> tuple[int, int]:
    """Return a pipe whose reading end never blocks."""
    reader, writer = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(reader, False)
    return reader, writer
