"""Shells beside the members of an attempt, as its supervisor starts and ends them.

The control plane listens on a socket in the folder of the attempt and signals the supervisor, which
connects and reads a request. The ends of the shell's terminal or pipes are passed over that
connection, so no byte of a session goes through the supervisor. A connection that is closed hangs
up its shell; one that stays open learns how the shell ended.
"""

import json
import os
import select
import signal
import socket
import termios
from collections.abc import Callable
from contextlib import suppress

from tenfold.live.local.member.members import Streams
from tenfold.live.local.processes import in_session, kill, notify
from tenfold.live.local.spawner.wire import ShellLine, UserLine, checked_shell, parsed

PREFIX = "shell-"
"""Sockets of the control plane in the folder of an attempt begin with this."""
SHELLS_MOST = 64
REQUEST_BYTES_MOST = 1 << 20
HANG_UP_MS = 2_000
"""From SIGHUP to SIGKILL, for the session of a shell that is hung up."""
_READ = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

StartShell = Callable[[ShellLine, Streams], int]
"""Starts a shell and returns its process; raises `OSError` with the reason."""


class _Shell:
    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.partial = b""
        self.pid = 0


class Shells:
    """The shells of one attempt."""

    def __init__(
        self, folder: str, poll: "select.poll", start: StartShell, user: UserLine | None
    ) -> None:
        self._folder = folder
        self._poll = poll
        self._start = start
        self._user = user
        self._known: set[str] = set()
        self._shells: dict[int, _Shell] = {}
        self._hung_up: dict[int, int] = {}
        """Shells whose connection is closed, and when their session is killed."""

    @property
    def were_used(self) -> bool:
        """Whether there was any."""
        return bool(self._known)

    def __contains__(self, file: int) -> bool:
        return file in self._shells

    def accept(self) -> None:
        """Connect to the sockets that appeared in the folder."""
        with suppress(OSError):
            folder = os.open(self._folder, _READ)
            try:
                for name in os.listdir(folder):
                    if name.startswith(PREFIX) and name not in self._known:
                        self._connect(folder, name)
            finally:
                os.close(folder)

    def _connect(self, folder: int, name: str) -> None:
        if len(self._shells) >= SHELLS_MOST:
            return
        self._known.add(name)
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.setblocking(False)
        try:
            # Through the folder: a socket path is limited to 107 bytes.
            connection.connect(f"/proc/self/fd/{folder}/{name}")
        except OSError as error:
            connection.close()
            if isinstance(error, ConnectionRefusedError):
                # Found by the signal of another one, before it listens: its own signal follows.
                self._known.discard(name)
            return
        self._shells[connection.fileno()] = _Shell(connection)
        self._poll.register(connection, select.POLLIN)

    def on_ready(self, file: int, now_ms: int) -> None:
        """Handle a connection that is readable or closed."""
        shell = self._shells[file]
        try:
            text = shell.connection.recv(65_536)
            if not text:
                self._hang_up(shell, now_ms)
                return
            shell.partial += text
            if not shell.pid and b"\n" in shell.partial:
                self._begin(shell)
            elif len(shell.partial) > REQUEST_BYTES_MOST:
                self._hang_up(shell, now_ms)
        except BlockingIOError:
            return
        except Exception as error:
            # Of any kind: a request must not end the attempt.
            self._refuse(shell, error, now_ms)

    def ended(self, pid: int, code: int) -> None:
        """Report the exit of a shell; other processes are none of ours."""
        self._hung_up.pop(pid, None)
        for shell in list(self._shells.values()):
            if shell.pid == pid:
                with suppress(OSError):
                    shell.connection.send(json.dumps({"ended": code}).encode() + b"\n")
                self._drop(shell)

    def next_kill_ms(self, now_ms: int) -> list[int]:
        """Return how long until the next session is killed; empty if none is."""
        return [max(0, at_ms - now_ms) for at_ms in self._hung_up.values()]

    def kill_overdue(self, now_ms: int) -> None:
        """Kill sessions that ignored the hang-up."""
        for pid, at_ms in list(self._hung_up.items()):
            if now_ms >= at_ms:
                del self._hung_up[pid]
                for one in in_session(pid):
                    kill(one)

    def close(self) -> None:
        """Close all connections: the attempt has ended, and its processes are dead."""
        for shell in list(self._shells.values()):
            self._drop(shell)

    def _begin(self, shell: _Shell) -> None:
        request = checked_shell(parsed(shell.partial.partition(b"\n")[0]))
        streams, passed = _terminal(request) if "rows" in request else _pipes()
        own = {streams.input, streams.output, streams.errors}
        try:
            if self._user is not None:
                # So that the shell can open them by name, as `/dev/tty` and `/dev/stdout`.
                for file in own:
                    os.fchown(file, self._user["uid"], self._user["gid"])
            shell.pid = self._start(request, streams)
            text = json.dumps({"started": shell.pid}).encode() + b"\n"
            socket.send_fds(shell.connection, [text], passed)
        finally:
            for file in (*own, *passed):
                os.close(file)

    def _refuse(self, shell: _Shell, error: Exception, now_ms: int) -> None:
        said = error.strerror if isinstance(error, OSError) else str(error)
        with suppress(OSError):
            shell.connection.send(json.dumps({"refused": f"{said}"[:1_000]}).encode() + b"\n")
        self._hang_up(shell, now_ms)

    def _hang_up(self, shell: _Shell, now_ms: int) -> None:
        self._drop(shell)
        if shell.pid:
            self._hung_up[shell.pid] = now_ms + HANG_UP_MS
            for pid in in_session(shell.pid):
                notify(pid, signal.SIGHUP)
                # One that is stopped would not notice.
                notify(pid, signal.SIGCONT)

    def _drop(self, shell: _Shell) -> None:
        self._shells.pop(shell.connection.fileno(), None)
        self._poll.unregister(shell.connection)
        shell.connection.close()


def _terminal(request: ShellLine) -> tuple[Streams, list[int]]:
    """Return the shell's end of a new terminal, and the end to pass on."""
    ours, theirs = os.openpty()
    with suppress(OSError, TypeError, ValueError, termios.error):
        termios.tcsetwinsize(ours, (request.get("rows", 24), request.get("columns", 80)))
    return Streams(theirs, theirs, theirs, is_terminal=True), [ours]


def _pipes() -> tuple[Streams, list[int]]:
    pipes = [os.pipe2(os.O_CLOEXEC) for _ in range(3)]
    (input_read, input_write), (output_read, output_write), (error_read, error_write) = pipes
    streams = Streams(output_write, error_write, input_read)
    return streams, [input_write, output_read, error_read]
