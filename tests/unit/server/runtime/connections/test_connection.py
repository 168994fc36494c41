"""Connections that are idle, slow or too many, against a real server on loopback."""

import asyncio
import json
import select
import socket
from collections.abc import Iterator
from threading import Event, Thread
from typing import Any

import pytest
import uvicorn

from patience import HANG_S, until
from tenfold.server.runtime.connections import connection
from tenfold.server.runtime.connections.connection import (
    ConnectionTable,
    GuardedConnection,
    max_connections,
)
from tenfold.server.runtime.connections.server import GuardedServer
from tenfold.server.runtime.limiter import max_streams

MOST = 4
WAIT_S = HANG_S


class Trial:
    """A server of four connections whose route `/hold` answers when it is let go."""

    def __init__(self) -> None:
        self.held = 0
        self.slot = Event()
        self.bound = socket.create_server(("127.0.0.1", 0))
        self.server = GuardedServer(self._config(), MOST)
        self._release: asyncio.Event | None = None
        self._thread = Thread(target=self.server.run, args=([self.bound],), daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.server.should_exit = True
        self._thread.join(WAIT_S)

    def connect(self) -> socket.socket:
        return socket.create_connection(self.bound.getsockname(), timeout=WAIT_S)

    def ask(self, path: str) -> bytes:
        with self.connect() as one:
            one.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            return whole(one)

    def _config(self) -> uvicorn.Config:
        return uvicorn.Config(
            self._app,
            http=GuardedConnection,
            interface="asgi3",
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=0,
        )

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        body = b"ok"
        if scope["path"] == "/hold":
            self.held += 1
            if self.held == MOST:
                self.slot.set()
            await asyncio.Event().wait()
        if scope["path"] == "/read":
            while (await receive()).get("more_body"):
                pass
        if scope["path"] == "/much":
            body = b"x" * (64 << 20)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body, "more_body": False})


@pytest.fixture
def trial() -> Iterator[Trial]:
    made = Trial()
    made.start()
    try:
        yield made
    finally:
        made.stop()


def whole(one: socket.socket) -> bytes:
    parts: list[bytes] = []
    try:
        while part := one.recv(65_536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def test_connections_that_ask_nothing_make_room_for_one_that_asks(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(connection, "FRESH_S", -1.0)
    idle = [trial.connect() for _ in range(60)]
    try:
        # One whose request has not come yet makes room as well: it asks again, as a client does.
        until(lambda: trial.ask("/any").startswith(b"HTTP/1.1 200"))
    finally:
        for one in idle:
            one.close()


def test_where_all_are_at_work_only_health_is_told(trial: Trial, caplog: pytest.LogCaptureFixture):
    busy = [trial.connect() for _ in range(MOST)]
    try:
        for one in busy:
            one.sendall(b"GET /hold HTTP/1.1\r\nHost: x\r\n\r\n")
        assert trial.slot.wait(WAIT_S)
        assert trial.ask("/healthz").startswith(b"HTTP/1.1 200")
        refused = trial.ask("/api/v1/jobs")
        assert refused.startswith(b"HTTP/1.1 503")
        assert b'"code":"too-many-connections"' in refused
        assert trial.ask("/readyz").startswith(b"HTTP/1.1 200")
    finally:
        for one in busy:
            one.close()
    said = [one for one in caplog.messages if "connections are in use" in one]
    assert len(said) == 1


@pytest.mark.parametrize(
    ("bound", "sent"),
    [
        ("HEAD_S", b"GET /any HTTP/1.1\r\nHost:"),
        ("BODY_S", b"POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf"),
    ],
)
def test_half_a_request_and_silence_is_told_that_it_is_late(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, bound: str, sent: bytes
):
    monkeypatch.setattr(connection, bound, 0.0)
    with trial.connect() as one:
        one.sendall(sent)
        told = whole(one)
    assert told.startswith(b"HTTP/1.1 408")
    assert b"content-type: application/problem+json" in told
    assert json.loads(told.partition(b"\r\n\r\n")[2])["code"] == "request-timeout"


def test_a_connection_that_says_nothing_is_closed(trial: Trial, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connection, "HEAD_S", 0.0)
    with trial.connect() as one:
        assert whole(one) == b""


def test_a_client_that_reads_nothing_is_let_go(trial: Trial, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connection, "UNREAD_S", 0.0)
    with trial.connect() as one:
        one.sendall(b"GET /much HTTP/1.1\r\nHost: x\r\n\r\n")
        table = trial.server.server_state
        assert isinstance(table, ConnectionTable)
        gone = Event()
        monkeypatch.setattr(GuardedConnection, "connection_lost", lambda *_: gone.set())
        assert gone.wait(WAIT_S)
    trial.server.server_state.connections.clear()


def test_headers_without_end_are_refused(trial: Trial):
    with trial.connect() as one:
        one.sendall(b"GET /any HTTP/1.1\r\n")
        answer = b""
        try:
            for _ in range(4_096):
                one.sendall(b"X-More: " + b"x" * 1_000 + b"\r\n")
            answer = whole(one)
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert not answer or answer.startswith(b"HTTP/1.1 400")
    assert trial.ask("/any").startswith(b"HTTP/1.1 200")


def test_there_are_fewer_connections_than_open_files(monkeypatch: pytest.MonkeyPatch):
    def files(count: int) -> None:
        monkeypatch.setattr(connection.resource, "getrlimit", lambda _: (count, count))

    files(200)
    most = max_connections()
    assert most + most // 4 + connection.SPARE + connection.ACCEPTS_AT_ONCE < 200
    files(10)
    assert max_connections() == connection.LEAST
    files(1 << 20)
    assert max_connections() == connection.MOST


def test_streams_are_a_share_of_the_connections():
    assert max_streams(40, 256) == 10
    assert max_streams(2, 256) == 1
    assert max_streams(100_000, 256) == 256


BODY = 32 << 20
UNREAD = f"POST /any HTTP/1.1\r\nHost: x\r\nContent-Length: {BODY}\r\n\r\n".encode()
"""Is answered before its body has come."""


def test_a_body_that_nobody_needs_is_read_to_its_end_and_the_connection_goes_on(trial: Trial):
    with trial.connect() as one:
        one.sendall(UNREAD)
        one.sendall(b" " * BODY)
        one.sendall(b"GET /any HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert whole(one).count(b"HTTP/1.1 200") == 2


def test_bodies_that_nobody_needs_wait_for_their_turn(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
):
    """No turn comes here: without one, the server takes no more than buffers hold."""
    monkeypatch.setattr(connection, "DISCARD_S", WAIT_S)
    with trial.connect() as one, trial.connect() as other:
        for each in (one, other):
            each.sendall(UNREAD)
            assert each.recv(12) == b"HTTP/1.1 200"
            each.setblocking(False)
        sent = [taken(each) for each in (one, other)]
        assert trial.ask("/any").startswith(b"HTTP/1.1 200")
    assert all(size < BODY for size in sent)


def taken(one: socket.socket) -> int:
    """Send a body until it is whole or nothing more is taken; return how much was."""
    sent, part = 0, b" " * 65_536
    while sent < BODY and select.select([], [one], [], 1.0)[1]:
        sent += one.send(part[: BODY - sent])
    return sent
