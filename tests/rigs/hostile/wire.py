"""Requests as bytes on a connection, for what no client library would send."""

import json
import socket
from contextlib import suppress
from http.client import HTTPException, HTTPResponse
from time import sleep
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

THROTTLED = 429
ANSWER_S = 540.0
"""Ends a request that would never be answered."""


class Answer(NamedTuple):
    """A status and a body; status 0 where the connection was closed without an answer."""

    status: int
    body: bytes = b""
    retry_after_s: float = 0.0
    """How long a client is asked to wait before it tries again."""

    def json(self) -> Any:
        return json.loads(self.body)

    def code(self) -> str:
        """Return the code of a problem; empty where the answer is none."""
        try:
            told = self.json()
        except ValueError:
            return ""
        return str(cast("dict[str, Any]", told).get("code", "")) if isinstance(told, dict) else ""


class Wire:
    """One connection that is opened again when the server has closed it."""

    def __init__(self, url: str, token: str = "") -> None:
        parts = urlsplit(url)
        self._at = (parts.hostname or "127.0.0.1", parts.port or 80)
        self._token = token
        self._socket: socket.socket | None = None

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def ask(
        self,
        method: str,
        target: str | bytes,
        body: bytes = b"",
        *headers: tuple[str, str | bytes],
    ) -> Answer:
        """Send one request as it is written, and return what comes back.

        A connection that was closed while it was idle is opened again once.
        """
        data = self._bytes(method, target, body, headers)
        for again in (True, False):
            fresh = self._socket is None
            answer = self._once(method, data)
            if answer.status or fresh or not again:
                return answer
        raise AssertionError("not reached")

    def ask_again(
        self,
        method: str,
        target: str | bytes,
        body: bytes = b"",
        *headers: tuple[str, str | bytes],
    ) -> Answer:
        """Send a request again, as late as the server asks, until it is not throttled."""
        while (answer := self.ask(method, target, body, *headers)).status == THROTTLED:
            sleep(max(answer.retry_after_s, 0.05))
        return answer

    def ask_status(self, method: str, target: bytes) -> Answer:
        """Send a request whose answer may have no end; return its status and close."""
        self.close()
        with socket.create_connection(self._at, timeout=ANSWER_S) as one:
            one.sendall(self._bytes(method, target, b"", ()))
            response = HTTPResponse(one, method=method)
            try:
                response.begin()
            except (HTTPException, ConnectionError):
                return Answer(0)
            return Answer(response.status)

    def get(self, target: str | bytes) -> Answer:
        return self.ask("GET", target)

    def post(self, target: str, value: Any) -> Answer:
        return self.ask("POST", target, json.dumps(value).encode())

    def delete(self, target: str) -> Answer:
        return self.ask("DELETE", target)

    def _bytes(
        self,
        method: str,
        target: str | bytes,
        body: bytes,
        headers: tuple[tuple[str, str | bytes], ...],
    ) -> bytes:
        path = target if isinstance(target, bytes) else target.encode()
        lines = [method.encode() + b" " + path + b" HTTP/1.1", b"Host: %s:%d" % _host(self._at)]
        if self._token:
            lines.append(b"Authorization: Bearer " + self._token.encode())
        for name, value in headers:
            shown = value if isinstance(value, bytes) else value.encode()
            lines.append(name.encode() + b": " + shown)
        if body or method == "POST":
            lines.append(b"Content-Length: %d" % len(body))
        return b"\r\n".join(lines) + b"\r\n\r\n" + body

    def _once(self, method: str, data: bytes) -> Answer:
        if self._socket is None:
            self._socket = socket.create_connection(self._at, timeout=ANSWER_S)
        # A server that has read enough to refuse closes its end: the answer is there all the same.
        with suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(data)
        try:
            response = HTTPResponse(self._socket, method=method)
            response.begin()
            wait = response.getheader("Retry-After", "0")
            answer = Answer(response.status, response.read(), float(wait) if wait.isdigit() else 0)
        except (HTTPException, ConnectionError):
            self.close()
            return Answer(0)
        if response.will_close:
            self.close()
        return answer


def _host(at: tuple[str, int]) -> tuple[bytes, int]:
    return at[0].encode(), at[1]
