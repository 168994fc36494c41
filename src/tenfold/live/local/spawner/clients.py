"""The spawner's clients: lines in, lines out, without blocking on a slow one.

A client that does not read is disconnected once too much is queued. It loses nothing: it reconnects
and reads the attempt folders.
"""

import os
import select
import socket
from collections.abc import Callable, Iterator

from tenfold.live.local.spawner.wire import LINE_BYTES_MOST, NoteLine, line

SOCKET = "spawner.sock"
UNREAD_BYTES_MOST = 16 * 1024 * 1024


class _Client:
    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.partial = b""
        self.unsent = bytearray()
        self.is_full = False


class Clients:
    """Clients of the socket in the current folder, which only its owner can open."""

    def __init__(self, poll: select.epoll, hello: Callable[[], NoteLine]) -> None:
        self._poll = poll
        self._hello = hello
        self._clients: dict[int, _Client] = {}
        if os.path.lexists(SOCKET):
            os.unlink(SOCKET)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(SOCKET)
        os.chmod(SOCKET, 0o600)
        self._listener.listen(64)
        self._listener.setblocking(False)
        poll.register(self._listener, select.EPOLLIN)

    @property
    def any(self) -> bool:
        """Whether a client is connected."""
        return bool(self._clients)

    def on_ready(self, file: int, events: int) -> Iterator[tuple[int, bytes]]:
        """Handle a ready descriptor; yields (client, line)."""
        if file == self._listener.fileno():
            self._accept()
        elif file in self._clients and events & ~select.EPOLLOUT:
            for text in self._lines(file):
                yield file, text

    def send(self, file: int, note: NoteLine) -> None:
        """Queue a note for one client, until the next `flush`."""
        if file in self._clients:
            self._clients[file].unsent += line(note)

    def broadcast(self, note: NoteLine) -> None:
        """Queue a note for all clients, until the next `flush`."""
        self.broadcast_line(line(note))

    def broadcast_line(self, text: bytes) -> None:
        """Queue an encoded line for all clients."""
        for client in self._clients.values():
            client.unsent += text

    def flush(self) -> None:
        """Send what is queued, as far as clients read it."""
        for file, client in list(self._clients.items()):
            if client.unsent:
                self._send(file, client)

    def _send(self, file: int, client: _Client) -> None:
        try:
            sent = client.connection.send(client.unsent)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._drop(file)
            return
        del client.unsent[:sent]
        if len(client.unsent) > UNREAD_BYTES_MOST:
            self._drop(file)
        elif bool(client.unsent) != client.is_full:
            client.is_full = bool(client.unsent)
            wanted = select.EPOLLIN | (select.EPOLLOUT if client.is_full else 0)
            self._poll.modify(file, wanted)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        connection.setblocking(False)
        client = _Client(connection)
        client.unsent += line(self._hello())
        self._clients[connection.fileno()] = client
        self._poll.register(connection, select.EPOLLIN)

    def _lines(self, file: int) -> list[bytes]:
        client = self._clients[file]
        try:
            text = client.connection.recv(262_144)
        except BlockingIOError:
            return []
        except OSError:
            text = b""
        if not text:
            self._drop(file)
            return []
        *lines, client.partial = (client.partial + text).split(b"\n")
        if len(client.partial) > LINE_BYTES_MOST:
            self._drop(file)
            return []
        return lines

    def _drop(self, file: int) -> None:
        client = self._clients.pop(file)
        self._poll.unregister(file)
        client.connection.close()
