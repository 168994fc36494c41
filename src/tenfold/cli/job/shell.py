"""`tenfold job shell`: an interactive shell, or one command, inside a running job.

The terminal is in raw mode meanwhile, so every key reaches the shell, Ctrl-C too. One thread sends
what is typed and the size of the window; the main thread prints.
"""

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Generator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from types import FrameType

import msgspec

from tenfold.cli.errors import Exit
from tenfold.cli.job.names import with_job
from tenfold.cli.output import complain, print_bytes
from tenfold.client.client import Client
from tenfold.model.api.shells import INPUT_BYTES_MAX, OpenedShell, ShellEnd, Terminal
from tenfold.model.errors import TenfoldError, Unreachable

SIGNALLED = 128
ROWS, COLUMNS = 24, 80
"""The size of a terminal that does not tell its own."""
RESEND_S = 0.05
TYPED_BYTES = 32 << 10
assert TYPED_BYTES <= INPUT_BYTES_MAX, "a request takes what is read at once"


def run_shell(job_id: str, command: tuple[str, ...], *, member: int) -> None:
    """Run a shell in a job until it ends; exit with its exit status."""
    is_terminal = sys.stdin.isatty()
    with Client() as client:
        terminal = _terminal() if is_terminal else None
        shell = with_job(
            client,
            job_id,
            lambda name: client.open_shell(name, command=command, member=member, terminal=terminal),
            active=True,
        )
        with _raw(is_terminal), _Typing(shell, is_terminal):
            end = _printed(client, shell, raw=is_terminal)
    if end.exit_code is None and end.signal is None:
        complain(end.reason or f"the shell was closed: `{shell.job}` ended")
    if end.signal is not None:
        raise Exit(SIGNALLED + end.signal)
    if end.exit_code != 0:
        raise Exit(1 if end.exit_code is None else end.exit_code)


def _printed(client: Client, shell: OpenedShell, *, raw: bool) -> ShellEnd:
    """Print the output of a shell until it ends; return how it ended."""
    for frame in client.shell_output(shell.job, shell.id):
        if frame.kind == "end":
            return msgspec.json.decode(frame.content, type=ShellEnd)
        if frame.kind != "alive":
            print_bytes(frame.content, error=frame.kind == "errors", raw=raw)
    raise Unreachable(
        "shell-broke-off",
        f"the control plane closed the connection to the shell in `{shell.job}`",
        "the job keeps running; open another shell",
    )


def _terminal() -> Terminal:
    size = os.get_terminal_size(sys.stdin.fileno())
    term = os.environ.get("TERM", "")
    return Terminal(
        rows=size.lines or ROWS,
        columns=size.columns or COLUMNS,
        term=term if term.isprintable() else "",
    )


@contextmanager
def _raw(is_terminal: bool) -> Generator[None, None, None]:
    """Pass every key on until the end of the block."""
    if not is_terminal:
        yield
        return
    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)
    try:
        tty.setraw(file)
        yield
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)


class _Typing:
    """Sends standard input and the size of the window to a shell, in a thread of its own."""

    def __init__(self, shell: OpenedShell, is_terminal: bool) -> None:
        self._shell = shell
        self._is_terminal = is_terminal
        self._wake, self._waker = os.pipe()
        self._closed = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._before: object = None

    def __enter__(self) -> None:
        if self._is_terminal:
            os.set_blocking(self._waker, False)
            self._before = signal.signal(signal.SIGWINCH, self._on_resize)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        if self._is_terminal:
            signal.signal(signal.SIGWINCH, self._before)  # pyright: ignore[reportArgumentType]
        with suppress(OSError):
            os.write(self._waker, b"x")

    def _on_resize(self, number: int, frame: FrameType | None) -> None:
        with suppress(OSError):
            os.write(self._waker, b"r")

    def _run(self) -> None:
        # A client is used by one thread.
        with suppress(TenfoldError, OSError), Client() as client:
            self._send_all(client)

    def _send_all(self, client: Client) -> None:
        job, shell, offset = self._shell.job, self._shell.id, 0
        typed = sys.stdin.fileno()
        while not self._closed.is_set():
            ready, _, _ = select.select([typed, self._wake], [], [])
            if self._wake in ready:
                os.read(self._wake, 64)
                if self._closed.is_set():
                    return
                size = _terminal()
                client.shell_input(job, shell, offset=offset, rows=size.rows, columns=size.columns)
            if typed not in ready:
                continue
            data = os.read(typed, TYPED_BYTES)
            if not data:
                client.shell_input(job, shell, offset=offset, end=True)
                return
            end = offset + len(data)
            while offset < end and not self._closed.is_set():
                rest = data[len(data) - (end - offset) :]
                offset = client.shell_input(job, shell, rest, offset=offset).offset
                if offset < end:
                    # The program does not read; what it printed may have to be read first.
                    self._closed.wait(RESEND_S)
