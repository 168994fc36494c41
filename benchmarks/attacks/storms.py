"""Storms of one team: bodies that are never sent to their end, and streams that nobody reads.

Red sends from a process of its own, so that blue's waits are the control plane's alone.
"""

import fcntl
import json
import resource
import socket
import struct
import subprocess
import sys
import termios
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from time import perf_counter, sleep
from typing import Any
from urllib.parse import urlsplit

from benchmarks.attacks.target import API, Finding, Target, Tree
from benchmarks.control.load import quantile

BODIES, WATCHERS = 250, 256
BODY_BYTES = 3_900 << 10
ASKED_S, PERIOD_S = 12.0, 0.05
SENT_S = 120.0
BODIES_RSS_MIB, WATCHERS_RSS_MIB = 96.0, 64.0
BLUE_MS = 5_000.0
FILES = 2_048
HERE = Path(__file__).parents[2]
LARGE = {"command": ["true", "x" * 60_000], "gpus_per_node": 8, "nodes": 2}
"""Waits for both nodes, and its event fills the buffers of a stream."""
EVENTS = 80


def half_sent_bodies(tree: Tree) -> Iterator[Finding]:
    """Bodies without an end cost bounded memory, and another team is answered meanwhile."""
    with Target(tree) as target:
        quiet = _blue(target)
        before = target.rss_mib()
        target.forget_peak()
        storm = _blue(target, "bodies")
        told, peak = storm.pop("told"), target.peak_mib()
        waits, quiet_waits = storm["ms"], quiet["ms"]
        yield Finding(
            f"{BODIES} bodies of 3.9 MiB without their last byte",
            f"{_counts(told)}; RSS {before:,.0f} -> {peak:,.0f} MiB; blue {storm['failed']} of"
            f" {len(waits)} failed, {_times(waits)} (before {_times(quiet_waits)})",
            peak - before <= BODIES_RSS_MIB and not storm["failed"] and max(waits) <= BLUE_MS,
            f"RSS +{BODIES_RSS_MIB:.0f} MiB, none of blue's failed or above {BLUE_MS:,.0f} ms",
        )


def unread_watchers(tree: Tree) -> Iterator[Finding]:
    """Streams that are not read cost bounded memory, and another team still gets one."""
    with Target(tree) as target:
        for _ in range(EVENTS):
            target.submit(LARGE)
        before = target.rss_mib()
        target.forget_peak()
        storm = _blue(target, "watchers")
        told, peak = storm["told"], target.peak_mib()
        own, failed = storm["stream"], storm["failed"]
        yield Finding(
            f"{WATCHERS} watchers that do not read",
            f"{_counts(told)}; RSS {before:,.0f} -> {peak:,.0f} MiB; blue's own stream {own},"
            f" {failed} of {len(storm['ms'])} requests failed, {_times(storm['ms'])}",
            peak - before <= WATCHERS_RSS_MIB and own == 200 and not failed,
            f"RSS +{WATCHERS_RSS_MIB:.0f} MiB, blue's stream 200, none of blue's failed",
        )


def _times(waits: list[float]) -> str:
    return (
        f"p50 {quantile(waits, 0.5):.0f} ms, p90 {quantile(waits, 0.9):.0f}, max {max(waits):.0f}"
    )


def _counts(told: dict[str, int]) -> str:
    names = {"0": "closed", "None": "without an answer"}
    return ", ".join(f"{count} {names.get(one, one)}" for one, count in sorted(told.items()))


def _blue(target: Target, storm: str = "") -> dict[str, Any]:
    """Ask as blue for a while, beside a storm if there is one; return what both met."""
    red, blue = target.token(), target.wire("blue")
    found: dict[str, Any] = {"ms": [], "failed": 0, "told": {}, "stream": 0}
    process = None
    if storm:
        words = [sys.executable, "-m", "benchmarks.attacks.storms", storm, target.url, red]
        process = subprocess.Popen(words, cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    due_s = perf_counter()
    ends_s = due_s + ASKED_S
    try:
        while due_s < ends_s:
            sleep(max(0.0, due_s - perf_counter()))
            with suppress(OSError):
                status = blue.get(f"{API}/jobs?limit=20").status
                found["failed"] += status != 200
            # A late request counts from when it was due.
            found["ms"].append((perf_counter() - due_s) * 1_000)
            due_s = max(due_s + PERIOD_S, perf_counter())
        if storm == "watchers":
            with suppress(OSError):
                found["stream"] = blue.ask_status("GET", f"{API}/events".encode()).status
    finally:
        blue.close()
        if process is not None:
            with suppress(subprocess.TimeoutExpired):
                said, _ = process.communicate(b"\n", timeout=SENT_S)
                found["told"] = json.loads(said or b"{}")
            process.kill()
            process.wait()
    return found


def _storm(kind: str, url: str, token: str) -> None:
    """Send all of it, hold it until a line comes in, and print how each was answered."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(FILES, hard)), hard))
    at = urlsplit(url)
    headers = f"Host: x\r\nAuthorization: Bearer {token}\r\n"
    if kind == "bodies":
        head = f"POST {API}/jobs HTTP/1.1\r\n{headers}Content-Length: {BODY_BYTES}\r\n\r\n"
        asked = [head.encode() + b" " * (BODY_BYTES - 1)] * BODIES
    else:
        asked = [
            f"GET {API}/events?after={place % EVENTS} HTTP/1.1\r\n{headers}\r\n".encode()
            for place in range(WATCHERS)
        ]

    def send(request: bytes) -> socket.socket:
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        one.settimeout(SENT_S)
        one.connect((at.hostname, at.port))
        with suppress(OSError):
            one.sendall(request)
        return one

    with ThreadPoolExecutor(16 if kind == "bodies" else 1) as pool:
        every = list(pool.map(send, asked))
    sys.stdin.readline()
    told = Counter(map(_status_of, every))
    print(json.dumps(told))


def _status_of(one: socket.socket) -> str:
    """Return the status that a connection was answered with; `None` where nothing has come."""
    (waiting,) = struct.unpack("i", fcntl.ioctl(one, termios.FIONREAD, b"\0" * 4))
    one.setblocking(False)
    try:
        line = one.recv(12)
    except BlockingIOError:
        return "None"
    except OSError:
        return "0"
    return line[9:12].decode(errors="replace") if waiting and line else "0"


if __name__ == "__main__":
    _storm(*sys.argv[1:])
