"""Open shells in running attempts, from the side of the control plane.

See `member/shells.py` for the supervisor's side. A shell is a terminal or three pipes, and a
connection that says how it ended: closing it hangs up.
"""

import json
import os
import secrets
import select
import signal
import socket
import struct
import sys
import termios
from contextlib import suppress

from tenfold.live.executor import ShellEnded, ShellOutput, ShellRequest, TerminalSize
from tenfold.live.local.attempt.folder import AttemptFolder, ExecutorDir
from tenfold.live.local.member.shells import PREFIX
from tenfold.live.local.spawner.wire import ShellLine, parsed
from tenfold.model.ids import JobId
from tenfold.model.reason import Reason, Text

ANSWER_S_MOST = 10.0
READ_BYTES = 64 << 10
READS_MOST = 16
"""Reads at once, so that one shell cannot hold its caller."""
END_OF_INPUT = b"\x04"
_PEER = struct.Struct("3i")
_FDS_BYTES = socket.CMSG_LEN(3 * struct.calcsize("i"))


class LocalShell:
    """A shell of this machine."""

    def __init__(self, connection: socket.socket, files: list[int]) -> None:
        self._connection = connection
        self._terminal = files[0] if len(files) == 1 else -1
        self._input, *self._outputs = files if len(files) > 1 else (files[0], files[0])
        self._poll = select.epoll()
        self._partial = b""
        self._end: ShellEnded | None = None
        connection.setblocking(False)
        for file in {self._input, *self._outputs}:
            os.set_blocking(file, False)
        for file in (*self._outputs, connection.fileno()):
            self._poll.register(file, select.EPOLLIN)

    def fileno(self) -> int:
        """Return a descriptor that is readable while `read` has something to return."""
        return self._poll.fileno()

    def read(self) -> list[ShellOutput | ShellEnded]:
        """Return new output, and the end after all output."""
        found: list[ShellOutput | ShellEnded] = []
        for ready, _ in self._poll.poll(0):
            if ready == self._connection.fileno():
                self._read_end()
            else:
                found += self._output(ready)
        if self._end is not None:
            # What was printed before the end is in the kernel by now. Processes that the shell
            # left behind may hold its outputs open.
            rest = [self._output(file) for file in self._outputs]
            found += [one for some in rest for one in some]
            # Otherwise there is more, and the descriptor stays readable.
            if all(len(some) < READS_MOST for some in rest):
                found.append(self._end)
        return found

    def write(self, content: bytes) -> int:
        """Send input; return how many bytes were taken, which may be none."""
        if self._input < 0:
            return len(content)
        try:
            return os.write(self._input, content)
        except BlockingIOError:
            return 0
        except OSError:
            # It no longer reads.
            return len(content)

    def end_input(self) -> None:
        """End the input; in a terminal, this is Ctrl-D."""
        if self._terminal >= 0:
            self.write(END_OF_INPUT)
        elif self._input >= 0:
            os.close(self._input)
            self._input = -1

    def resize(self, size: TerminalSize) -> None:
        """Change the size of its terminal; nothing happens without one."""
        if self._terminal >= 0:
            with suppress(OSError, termios.error):
                termios.tcsetwinsize(self._terminal, (size.rows, size.columns))

    def close(self) -> None:
        """Hang up: the shell and its session are ended."""
        if self._poll.closed:
            return
        self._poll.close()
        self._connection.close()
        for file in {self._input, *self._outputs} - {-1}:
            os.close(file)
        self._input, self._outputs, self._terminal = -1, [], -1

    def _output(self, file: int) -> list[ShellOutput | ShellEnded]:
        found: list[ShellOutput | ShellEnded] = []
        is_error = len(self._outputs) > 1 and file == self._outputs[-1]
        for _ in range(READS_MOST):
            try:
                content = os.read(file, READ_BYTES)
            except BlockingIOError:
                return found
            except OSError:
                # A terminal whose last process is gone.
                content = b""
            if not content:
                with suppress(OSError):
                    self._poll.unregister(file)
                return found
            found.append(ShellOutput(content, is_error))
        return found

    def _read_end(self) -> None:
        text = b""
        with suppress(OSError):
            text = self._connection.recv(4_096)
        self._partial += text
        if text and b"\n" not in self._partial:
            return
        self._poll.unregister(self._connection)
        code: object = None
        with suppress(ValueError):
            code = parsed(self._partial.partition(b"\n")[0]).get("ended")
        if not isinstance(code, int):
            self._end = ShellEnded()
        else:
            self._end = ShellEnded(code) if code >= 0 else ShellEnded(signal=-code)


def open_shell(
    home: ExecutorDir, job_id: JobId, attempt: int, request: ShellRequest
) -> LocalShell | Reason:
    """Run a command beside a member of a running attempt; return why not if it cannot."""
    folder = home.attempt(job_id, attempt)
    record = folder.record()
    launch, pid = record.get("launch"), record.get("supervisor")
    if launch is None or pid is None or "started" not in record or not folder.is_locked():
        return Reason("shell-not-running", {"name": str(job_id)})
    if not 0 <= request.member < len(launch["members"]):
        count = len(launch["members"])
        return Reason("shell-no-member", {"name": str(job_id), "count": count})
    line: ShellLine = {"command": list(request.command), "member": request.member}
    if request.term:
        line["term"] = request.term
    if request.terminal is not None:
        line["rows"], line["columns"] = request.terminal.rows, request.terminal.columns
    try:
        connection = _connected(folder, pid)
    except TimeoutError:
        return _failed("the supervisor of the job does not respond; it may be of an older version")
    except ProcessLookupError:
        return Reason("shell-not-running", {"name": str(job_id)})
    except OSError as error:
        return _failed(error.strerror or str(error))
    try:
        return _started(connection, line)
    except OSError as error:
        connection.close()
        return _failed(error.strerror or str(error))


def _failed(said: str) -> Reason:
    return Reason("shell-failed", {"said": Text(said)})


def _connected(folder: AttemptFolder, pid: int) -> socket.socket:
    """Return a connection from the supervisor of an attempt, and from nobody else."""
    process = os.pidfd_open(pid)
    name = f"{PREFIX}{secrets.token_hex(8)}"
    directory = os.open(folder.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    path = f"/proc/self/fd/{directory}/{name}"
    try:
        if not folder.is_locked() or folder.record().get("supervisor") != pid:
            raise ProcessLookupError
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            # Its mode is that of the umask, and the folder lets only the team pass.
            listener.bind(path)
            os.chmod(path, 0o600)
            listener.listen(1)
            listener.settimeout(ANSWER_S_MOST)
            signal.pidfd_send_signal(process, signal.SIGUSR1)
            while True:
                connection, _ = listener.accept()
                peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
                if _PEER.unpack(peer)[0] == pid:
                    connection.settimeout(ANSWER_S_MOST)
                    return connection
                connection.close()
    finally:
        with suppress(OSError):
            os.unlink(path)
        os.close(directory)
        os.close(process)


def _started(connection: socket.socket, line: ShellLine) -> LocalShell | Reason:
    connection.sendall(json.dumps(line).encode() + b"\n")
    # Not `recv_fds`, which drops the flag: nothing that is started here may inherit them.
    text, ancillary, _, _ = connection.recvmsg(4_096, _FDS_BYTES, socket.MSG_CMSG_CLOEXEC)
    size = struct.calcsize("i")
    files = [
        int.from_bytes(data[at : at + size], sys.byteorder)
        for _, _, data in ancillary
        for at in range(0, len(data) - size + 1, size)
    ]
    if files:
        return LocalShell(connection, files)
    connection.close()
    said: object = ""
    with suppress(ValueError):
        said = parsed(text.partition(b"\n")[0]).get("refused")
    return _failed(said if isinstance(said, str) and said else "the job has just ended")
