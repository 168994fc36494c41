"""Requests to an object server, signed by hand and sent over a socket, right or wrong."""

import hashlib
import hmac
import re
import socket
from collections.abc import Mapping
from datetime import UTC, datetime

from tenfold.clock.wall import now_ms

DAY = "us-east-1/s3/aws4_request"
EMPTY = hashlib.sha256(b"").hexdigest()


class Signer:
    """Signs requests and chunks with one key."""

    def __init__(self, key_id: str, secret: str, host: str) -> None:
        self.key_id = key_id
        self.host = host
        at = datetime.fromtimestamp(now_ms() / 1000, UTC)
        self.timestamp = at.strftime("%Y%m%dT%H%M%SZ")
        self.scope = f"{self.timestamp[:8]}/{DAY}"
        key = f"AWS4{secret}".encode()
        for part in self.scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        self._key = key

    def sign(self, text: str) -> str:
        """Return the signature of a text."""
        return hmac.digest(self._key, text.encode(), "sha256").hex()

    def head(
        self, method: str, path: str, payload: str, extra: Mapping[str, str] | None = None
    ) -> tuple[str, str]:
        """Return a request head without its end, and its signature."""
        headers = {
            "host": self.host,
            "x-amz-content-sha256": payload,
            "x-amz-date": self.timestamp,
            **(extra or {}),
        }
        names = sorted(headers)
        lines = "".join(f"{name}:{headers[name]}\n" for name in names)
        signed = ";".join(names)
        canonical = f"{method}\n{path}\n\n{lines}\n{signed}\n{payload}"
        hashed = hashlib.sha256(canonical.encode()).hexdigest()
        signature = self.sign(f"AWS4-HMAC-SHA256\n{self.timestamp}\n{self.scope}\n{hashed}")
        sent = "".join(f"{name}: {headers[name]}\r\n" for name in names)
        head = (
            f"{method} {path} HTTP/1.1\r\n{sent}authorization: AWS4-HMAC-SHA256 "
            f"Credential={self.key_id}/{self.scope}, SignedHeaders={signed}, "
            f"Signature={signature}\r\n"
        )
        return head, signature

    def chunk(self, previous: str, data: bytes) -> str:
        """Return the signature of a chunk."""
        hashed = hashlib.sha256(data).hexdigest()
        return self.sign(
            f"AWS4-HMAC-SHA256-PAYLOAD\n{self.timestamp}\n{self.scope}\n{previous}\n"
            f"{EMPTY}\n{hashed}"
        )

    def trailer(self, previous: str, lines: str) -> str:
        """Return the signature of a trailer."""
        hashed = hashlib.sha256(lines.encode()).hexdigest()
        return self.sign(
            f"AWS4-HMAC-SHA256-TRAILER\n{self.timestamp}\n{self.scope}\n{previous}\n{hashed}"
        )


def exchange(address: tuple[str, int], data: bytes, *, half_close: bool = False) -> bytes:
    """Send bytes and return all that comes back until the server closes or is silent."""
    with socket.create_connection(address, timeout=60) as connection:
        connection.sendall(data)
        if half_close:
            connection.shutdown(socket.SHUT_WR)
        received = b""
        while True:
            try:
                more = connection.recv(65_536)
            except ConnectionResetError:
                return received
            if not more:
                return received
            received += more


def statuses(answer: bytes) -> list[int]:
    """Return the statuses of the answers in what was received."""
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)]
