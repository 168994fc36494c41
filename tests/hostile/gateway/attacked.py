"""What is attacked: a gateway with one replica; and connections that send any bytes."""

import contextlib
import socket
import struct
from typing import NamedTuple
from urllib.parse import urlsplit

from contract.gateway.clients import CHAT, chat
from tests.rigs.gateway import GatewayProcess
from tests.rigs.openai_replica import ReplicaProcess

RED = {"Authorization": "Bearer tf_red-secret"}


class Attacked(NamedTuple):
    """A gateway and its replica."""

    front: GatewayProcess
    replica: ReplicaProcess

    def ask(self, **fields: object) -> tuple[int, dict[str, str], bytes]:
        """Send an honest request."""
        # What a test did to the replica may have opened its breaker; errors go through even then.
        return self.front.post(CHAT, chat(**fields), RED)


class Raw:
    """A connection that sends what it is given."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname
        assert parts.port
        self._socket = socket.create_connection((parts.hostname, parts.port), timeout=120)

    def send(self, data: bytes) -> "Raw":
        """Send bytes; the other side may have closed already."""
        with contextlib.suppress(OSError):
            self._socket.sendall(data)
        return self

    def read(self) -> bytes:
        """Return all that comes until the other side closes."""
        parts: list[bytes] = []
        try:
            while part := self._socket.recv(65_536):
                parts.append(part)
        except OSError:
            pass
        return b"".join(parts)

    def read_until(self, end: bytes) -> bytes:
        """Return what comes up to some bytes."""
        got = b""
        while end not in got and (part := self._socket.recv(65_536)):
            got += part
        return got

    def narrow(self) -> None:
        """Take little at a time."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)

    def nodelay(self) -> None:
        """Send each piece at once."""
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def finish(self) -> None:
        """Send nothing more; read on."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Close it with a reset."""
        linger = struct.pack("ii", 1, 0)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._socket.close()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


def head(method: str = "POST", path: str = CHAT, *lines: str) -> bytes:
    """Return the head of a request by the red team."""
    start = [f"{method} {path} HTTP/1.1", "Host: gateway", "Authorization: Bearer tf_red-secret"]
    return "\r\n".join([*start, *lines, "", ""]).encode("latin-1")
