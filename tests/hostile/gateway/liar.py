"""A replica that sends exactly the bytes it is told to, whatever they are."""

import contextlib
import socket
import threading

CHUNKED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)


def chunk(data: bytes) -> bytes:
    """Return one chunk."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def whole(body: bytes, *lines: str) -> bytes:
    """Return a complete JSON answer."""
    head = ["HTTP/1.1 200 OK", "Content-Type: application/json", *lines]
    return "\r\n".join([*head, f"Content-Length: {len(body)}", "", ""]).encode() + body


class Liar:
    """Answers each request with the next of its scripts, and keeps the connection open."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        self.scripts: list[bytes] = []
        self.requests: list[bytes] = []
        self.left = threading.Event()
        """Set once the gateway has closed a connection while it was being answered."""
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def say(self, *scripts: bytes) -> None:
        """Answer the next requests with these bytes, one after the other."""
        self.scripts = [*scripts]

    def close(self) -> None:
        """Take no more connections."""
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while (request := _read(connection)) is not None:
                self.requests.append(request)
                script = self.scripts.pop(0) if self.scripts else whole(b'{"honest": true}')
                try:
                    connection.sendall(script)
                    if script.endswith(ENDLESS):
                        while True:
                            connection.sendall(ENDLESS)
                except OSError:
                    self.left.set()
                    return


ENDLESS = chunk(b"data: x\n\n") * 100
"""A script that ends with this goes on with it for ever."""


def _read(connection: socket.socket) -> bytes | None:
    """Return one request; None when the other side has closed."""
    got = b""
    while b"\r\n\r\n" not in got:
        part = connection.recv(65_536)
        if not part:
            return None
        got += part
    head, _, body = got.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    while len(body) < length:
        part = connection.recv(65_536)
        if not part:
            return None
        body += part
    return head + b"\r\n\r\n" + body
