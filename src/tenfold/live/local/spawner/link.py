"""The control plane's end of the spawner's socket: connects, starts a spawner, reconnects.

An order is kept until the spawner acknowledges it, and sent again after every new connection:
orders are idempotent. `fileno` stays the same across reconnections, so a world can wait on it.
"""

import os
import select
import socket
import subprocess
import sys
import time
from contextlib import suppress
from typing import cast

from tenfold.live.local.attempt.folder import ExecutorDir
from tenfold.live.local.spawner.clients import SOCKET
from tenfold.live.local.spawner.log import open_log
from tenfold.live.local.spawner.wire import (
    LINE_BYTES_MOST,
    PROTOCOL,
    NoteLine,
    OrderLine,
    line,
    parsed,
)
from tenfold.model.errors import Unreachable

ANSWER_S_MOST = 30.0
TRIES = 5
LOOK_MS = 200
ROOT = os.path.abspath(f"{__file__}/../../../../..")
"""Location of the package: the spawner runs without site packages."""
PROGRAM = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from tenfold.live.local.spawner.spawner import main; main(sys.argv[2], int(sys.argv[3]))"
)


class SpawnerLink:
    """A connection that heals itself. `connections` counts them: a new one means news unheard."""

    def __init__(self, home: ExecutorDir) -> None:
        self._home = home
        self._poll = select.epoll()
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._orders: dict[int, bytes] = {}
        self._question = 0
        """The number of the last `ask`."""
        self._asked_s = 0.0
        self._last = 0
        self._partial = b""
        self._unsent = b""
        self.connections = 0
        self.limits = self.memory = ""
        self.spawner = 0
        self.epoch = 0
        """Sent with every order."""

    def fileno(self) -> int:
        """Return a descriptor that is readable while there is something to receive."""
        return self._poll.fileno()

    def wake_on(self, file: int) -> None:
        """Also wake on another descriptor."""
        self._poll.register(file, select.EPOLLIN)

    def send(self, order: OrderLine) -> None:
        """Number an order and send it, now or when the socket is writable."""
        self._last += 1
        order["order"] = self._last
        if self.epoch:
            order["epoch"] = self.epoch
        # Only the spawner that is connected now is to leave, not the one that follows it.
        text = line(order)
        if order["do"] != "leave":
            self._orders[self._last] = text
        if self._socket is not None:
            self._unsent += text
            self._send()

    @property
    def waits_since_s(self) -> float | None:
        """When the last `ask` was sent, if it is not acknowledged yet."""
        return self._asked_s if self._question in self._orders else None

    def ask(self) -> None:
        """Give an order that changes nothing, unless the last one is not acknowledged yet."""
        if self._question not in self._orders:
            self._asked_s = time.monotonic()
            self.send({"order": 0, "do": "fence"})
            self._question = self._last

    def receive(self) -> list[NoteLine]:
        """Return received notes; reconnects if the spawner is gone."""
        notes: list[NoteLine] = []
        for _ in range(TRIES):
            self.connect()
            notes += [note for note in self._read() if not self._is_plain_ack(note)]
            # A spawner may exit right after its first line. Without a connection nothing
            # would wake the caller again.
            if self._socket is not None:
                break
        else:
            self.connect()
        self._send()
        return notes

    def call(self, order: OrderLine) -> list[NoteLine]:
        """Send an order and wait until it is acknowledged; return the notes that came before."""
        self.send(order)
        number, notes = self._last, list[NoteLine]()
        poll = select.poll()
        poll.register(self.fileno(), select.POLLIN)
        ends_s = time.monotonic() + ANSWER_S_MOST
        while True:
            notes += self.receive()
            if number not in self._orders:
                return notes
            left_s = ends_s - time.monotonic()
            if left_s <= 0:
                raise self._no_spawner()
            poll.poll(min(left_s * 1_000, LOOK_MS))

    def connect(self) -> None:
        """Connect to a spawner of this version, starting one if needed."""
        for _ in range(TRIES):
            if self._socket is not None:
                return
            self._try_connect()
        if self._socket is None:
            raise self._no_spawner()

    def _no_spawner(self) -> Unreachable:
        return Unreachable(
            "no-spawner",
            f"the spawner, which starts jobs, does not respond in `{self._home.path}`",
            f"see `{self._home.path}/spawner.log`; running jobs are not affected",
        )

    def close(self) -> None:
        """Disconnect from the spawner, which keeps running."""
        if self._socket is not None:
            self._drop()
        self._poll.close()

    def _try_connect(self) -> None:
        found = self._open_connection() or (self._start_spawner() and self._open_connection())
        if not found:
            return
        connection, hello = found
        if hello.get("protocol") != PROTOCOL:
            # Its supervisors continue; a spawner of this version finds them by their locks.
            connection.sendall(line({"order": 0, "do": "leave"}))
            connection.settimeout(ANSWER_S_MOST)
            while connection.recv(65_536):
                pass
            connection.close()
            return
        connection.setblocking(False)
        self._socket = connection
        self._poll.register(connection, select.EPOLLIN)
        self.connections += 1
        self.limits, self.memory = hello.get("limits", ""), hello.get("memory", "")
        self.spawner = hello.get("pid", 0)
        self._partial = b""
        self._unsent = b"".join(self._orders.values())
        self._send()

    def _open_connection(self) -> tuple[socket.socket, NoteLine] | None:
        """Return a connection and the spawner's first line; None if it does not respond."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(ANSWER_S_MOST)
        folder = os.open(self._home.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # Through the folder: a socket path is limited to 107 bytes.
            connection.connect(f"/proc/self/fd/{folder}/{SOCKET}")
            hello = b""
            while not hello.endswith(b"\n"):
                byte = connection.recv(1)
                if not byte:
                    raise ConnectionResetError
                hello += byte
        except OSError:
            connection.close()
            return None
        finally:
            os.close(folder)
        return connection, cast(NoteLine, parsed(hello))

    def _start_spawner(self) -> bool:
        """Start a spawner and wait until it listens, or exits because another one does."""
        if self._process is not None:
            self._process.poll()
        ready, held = os.pipe2(os.O_CLOEXEC)
        log = open_log(self._home.path)
        kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", PROGRAM, ROOT, self._home.path, str(held)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(held,),
                start_new_session=True,
                cwd="/",
                env=kept,
            )
            os.close(held)
            select.select([ready], [], [], ANSWER_S_MOST)
        finally:
            os.close(log)
            os.close(ready)
        return True

    def _read(self) -> list[NoteLine]:
        notes: list[NoteLine] = []
        while self._socket is not None:
            try:
                text = self._socket.recv(1_048_576)
            except BlockingIOError:
                break
            except OSError:
                text = b""
            if not text:
                self._drop()
                break
            *lines, self._partial = (self._partial + text).split(b"\n")
            if len(self._partial) > LINE_BYTES_MOST:
                self._drop()
                break
            for one in lines:
                # A line that is no note is none of the spawner's.
                with suppress(ValueError, RecursionError):
                    note = parsed(one)
                    if isinstance(note.get("saw"), str) and isinstance(note.get("at_ms"), int):
                        notes.append(cast(NoteLine, note))
        return notes

    def _send(self) -> None:
        if self._socket is None:
            return
        try:
            while self._unsent:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
        except BlockingIOError:
            pass
        except OSError:
            # The next `receive` notices the closed connection and reconnects.
            return
        wanted = select.EPOLLIN | (select.EPOLLOUT if self._unsent else 0)
        self._poll.modify(self._socket, wanted)

    def _drop(self) -> None:
        assert self._socket is not None, "only a connection that is there is dropped"
        self._poll.unregister(self._socket)
        self._socket.close()
        self._socket = None

    def _is_plain_ack(self, note: NoteLine) -> bool:
        """Forget an answered order; notes about attempts and stale orders are passed on."""
        is_stale = note["saw"] == "refused" and "order" in note
        if note["saw"] != "taken" and not is_stale:
            return False
        is_ours = self._orders.pop(note.get("order", 0), None) is not None
        if is_stale:
            # A job could write one of an order that nobody gave.
            return not is_ours
        return not note.get("known")
