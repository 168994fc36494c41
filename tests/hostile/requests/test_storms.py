"""One team's storm: connections, unfinished bodies, watchers that do not read, and requests.

Each must cost bounded memory, and leave another team's requests answered. The sizes are small
enough for every run; `TENFOLD_HOSTILE_STORM` multiplies them.
"""

import fcntl
import os
import resource
import socket
import struct
import termios
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

import tenfold
from hostile.plane import API, MIB, Plane, Watch
from patience import HANG_S, until
from unit.server.runtime.test_tls import pair

__all__ = ["pair"]

SIZE = int(os.environ.get("TENFOLD_HOSTILE_STORM", "1"))
BODY_BYTES = 3_900 << 10
STREAMS = 256
TRIES = 1_000
FILES = 4_096
OwnPlane = Callable[..., Plane]


def connected(plane: Plane, *, receives: int = 0) -> socket.socket:
    """Return a connection; with `receives`, one whose kernel buffer is small."""
    made = socket.socket()
    if receives:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives)
    made.settimeout(HANG_S)
    at = urlsplit(plane.url)
    made.connect((at.hostname, at.port))
    return made


@contextmanager
def many(count: int, plane: Plane, *, receives: int = 0) -> Generator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(connected(plane, receives=receives)) for _ in range(count * SIZE)
        ]


def head(plane: Plane, method: str, target: str, *lines: str, team: str = "red") -> bytes:
    token = plane.token("member", team)
    shown = [f"{method} {target} HTTP/1.1", "Host: x", f"Authorization: Bearer {token}", *lines]
    return ("\r\n".join(shown) + "\r\n\r\n").encode()


def status_of(one: socket.socket) -> int:
    """Return the status of the answer, once it is there; 0 where the connection was closed."""
    try:
        line = one.recv(12)
    except ConnectionError:
        return 0
    return int(line[9:12]) if len(line) == 12 else 0


def unread_bytes(one: socket.socket) -> int:
    (count,) = struct.unpack("i", fcntl.ioctl(one, termios.FIONREAD, b"\0" * 4))
    return count


@pytest.fixture(autouse=True)
def open_files() -> Iterator[None]:
    """Let this process, and those that it starts, have as many connections as a storm needs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if wanted < FILES:
        pytest.skip(f"the limit of open files is {hard}: a storm needs {FILES}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_exactly_as_many_streams_are_let_in_as_may_be(own_plane: OwnPlane):
    limits = (f"streams={STREAMS}", "team-share=1", "token-share=1")
    plane = own_plane("--virtual-nodes", "1", *(f"--limit={one}" for one in limits))
    asked = head(plane, "GET", f"{API}/events")
    with ExitStack() as stack:
        every: list[socket.socket] = []
        for _ in range(TRIES):
            every.append(stack.enter_context(connected(plane)))
            every[-1].sendall(asked)
        told = Counter(map(status_of, every))
        assert told == {200: STREAMS, 429: TRIES - STREAMS}
        with plane.wire("member", "blue") as blue:
            assert blue.get(f"{API}/jobs").status == 200
    # Each is counted until it ends, and no longer.
    with plane.wire() as red:
        until(lambda: red.get(f"{API}/events?follow=false").status == 200)


def test_one_token_has_a_share_of_the_streams(plane: Plane, watch: Watch):
    asked = head(plane, "GET", f"{API}/events")
    with many(200, plane) as every:
        for one in every:
            one.sendall(asked)
        told = Counter(map(status_of, every))
        assert told[200] == STREAMS // 4, told
        assert set(told) == {200, 429}
        with connected(plane) as blue:
            blue.sendall(head(plane, "GET", f"{API}/events", team="blue"))
            assert status_of(blue) == 200
    watch.count(0)


def test_unfinished_bodies_cost_bounded_memory(plane: Plane, watch: Watch):
    declared = f"Content-Length: {BODY_BYTES}"
    asked, body = head(plane, "POST", f"{API}/jobs", declared), b" " * (BODY_BYTES - 1)

    def half(one: socket.socket) -> None:
        with suppress(ConnectionError):
            one.sendall(asked + body)

    before = plane.rss_bytes()
    with many(60, plane) as every, ThreadPoolExecutor(8) as pool:
        list(pool.map(half, every))
        grown = plane.rss_bytes() - before
        assert watch.alive() == []
    assert grown < 96 * MIB, f"{grown / MIB:,.0f} MiB for {len(every)} unfinished bodies"


def test_watchers_that_do_not_read_cost_bounded_memory(own_plane: OwnPlane):
    limits = (f"streams={2 * STREAMS}", "team-share=1", "token-share=1")
    plane = own_plane("--virtual-nodes", "1", *(f"--limit={one}" for one in limits))
    watch = Watch(plane)
    large = {"command": ["true", "x" * 60_000], "gpus_per_node": 64, "allow_pending": True}
    with plane.wire() as red:
        for _ in range(40):
            assert red.post(f"{API}/jobs", {"jobs": [large] * 2}).status == 201
    before = plane.rss_bytes()
    with many(128, plane, receives=4_096) as every:
        for place, one in enumerate(every):
            one.sendall(head(plane, "GET", f"{API}/events?after={place % 80}"))
        # Each has been sent as much as it can take without reading.
        until(lambda: all(unread_bytes(one) > 1_000 for one in every))
        assert watch.alive() == []
        grown = plane.rss_bytes() - before
    watch.close()
    assert grown < 64 * MIB, f"{grown / MIB:,.0f} MiB for {len(every)} watchers"


def test_large_answers_that_are_not_read_cost_bounded_memory(plane: Plane, watch: Watch):
    print_much = ["python3", "-c", "print(('x' * 1023 + '\\n') * 4096)"]
    with plane.wire() as red:
        made = red.post(f"{API}/jobs", {"command": print_much}).json()["id"]
        until(lambda: red.get(f"{API}/jobs/{made}").json()["state"] == "succeeded")
    asked = head(plane, "GET", f"{API}/jobs/{made}/logs?tail={4 << 20}")
    before = plane.rss_bytes()
    with many(60, plane, receives=4_096) as every:
        for one in every:
            one.sendall(asked)
        # Those that got an answer do not read it; the others of the team wait for them.
        until(lambda: sum(unread_bytes(one) > 1_000 for one in every) >= 4)
        for _ in range(20):
            assert watch.alive() == []
        grown = plane.rss_bytes() - before
    assert grown < 128 * MIB, f"{grown / MIB:,.0f} MiB for {len(every)} unread answers"


def test_silent_connections_leave_room_for_others(plane: Plane, watch: Watch):
    with many(600, plane) as every:
        for one in every[::2]:
            with suppress(ConnectionError):
                one.sendall(b"GET /api/v1/jobs HTTP/1.1\r\nHost:")
        until(lambda: watch.alive() == [])


def test_guessed_tokens_leave_others_answered(plane: Plane, watch: Watch):
    with many(100, plane) as every:
        for place, one in enumerate(every):
            guess = f"Authorization: Bearer tf_guess{place}"
            one.sendall(f"GET {API}/jobs HTTP/1.1\r\nHost: x\r\n{guess}\r\n\r\n".encode())
        assert watch.alive() == []
        told = {status_of(one) for one in every}
    assert told <= {401, 429, 503}


def test_who_sends_too_much_is_told_when_to_try_again(own_plane: OwnPlane):
    plane = own_plane("--virtual-nodes", "1", "--limit=requests-per-second=8")
    url, shown = f"{plane.url}{API}/whoami", {"Authorization": f"Bearer {plane.token()}"}
    with httpx.Client(headers=shown, timeout=HANG_S) as red:
        while (refused := red.get(url)).status_code != 429:
            pass
    assert refused.headers["Retry-After"] == "1"
    assert refused.headers["Content-Type"] == "application/problem+json"
    told = refused.json()
    assert told["code"] == "rate-limited"
    assert "--limit requests-per-second" in told["hint"]
    with plane.wire("viewer", "blue") as blue:
        assert blue.get(f"{API}/whoami").status == 200
        counted = blue.get("/metrics").body.decode()
    assert 'tenfold_http_rejected_total{reason="rate-limited"}' in counted


def test_tls_handshakes_that_never_end_leave_room_for_others(
    own_plane: OwnPlane, pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
):
    certificate, key = pair
    options = (f"--tls-cert={certificate}", f"--tls-key={key}")
    plane = own_plane("--virtual-nodes", "1", *options)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with many(300, plane) as every, tenfold.Client(plane.url, plane.local_token) as client:
        assert client.who_am_i().role == "admin"
        # One byte of a handshake does not make it last longer.
        for one in every:
            with suppress(ConnectionError):
                one.sendall(b"\x16")
        assert client.who_am_i().role == "admin"
        # All are closed; a handshake of asyncio's own would last for a minute.
        assert {status_of(one) for one in every} == {0}
