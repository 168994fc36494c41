"""How long one team's requests take while another team storms, and what it costs in memory.

Red storms from a process of its own: it lists and submits without a pause, ignores `Retry-After`,
sends bodies that never end, and opens watchers that it does not read. Blue submits and lists a few
times a second; a late answer counts from when the request was due. With
`TENFOLD_BENCH_BEFORE=PATH`, another checkout runs in turn with this one, in the same run.

    ./dev bench fairness
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, perf_counter, sleep
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx
import psutil

from benchmarks.control.load import quantile
from benchmarks.verdict import Verdict
from tenfold.client.client import Client
from tenfold.client.endpoint import Address, read_address

ROUNDS = 3
QUIET_S, STORM_S, SETTLE_S = 4.0, 10.0, 2.0
PERIOD_S = 0.1
LISTERS, SUBMITTERS, BODIES, WATCHERS = 150, 50, 100, 256
BODY_BYTES = 3_900 << 10
START_S = 120.0
MIB = 1 << 20
HERE = Path(__file__).parents[1]
WAITS: dict[str, Any] = {"command": ["true", "x" * 2_000], "gpus_per_node": 8, "nodes": 2}


class Found(NamedTuple):
    """What blue saw in one phase."""

    submit_ms: list[float]
    list_ms: list[float]
    failed: int


class Side:
    """A control plane of one checkout, and what was measured on it."""

    def __init__(self, name: str, tree: Path, folder: Path, *options: str) -> None:
        self.name, self._tree, self._folder = name, tree, folder
        self._options = options
        self.quiet, self.storm = Found([], [], 0), Found([], [], 0)
        self.memory_mib = self.storm_mib = 0.0

    def start(self, number: int) -> None:
        """Start with an empty journal: what an earlier storm left must not count."""
        self._home = self._folder / f"{self.name}-{number}"
        kept = {key: value for key, value in os.environ.items() if not key.startswith("TENFOLD_")}
        words = ["up", "--home", str(self._home), "--listen", "127.0.0.1:0", "--virtual-nodes", "2"]
        words += self._options
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tenfold", *words],
            env={**kept, "PYTHONPATH": str(self._tree / "src")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        ends_s = monotonic() + START_S
        while read_address(self._home) is None:
            assert self._process.poll() is None, f"the control plane of {self._tree} ended"
            assert monotonic() < ends_s, f"the control plane of {self._tree} did not start"
            sleep(0.05)
        with Client(self.address.url, self.address.token) as admin:
            self._tokens = {
                team: admin.create_token(team, team=team).token for team in ("red", "blue")
            }
            admin.submit_many([{**WAITS, "team": "blue"}] * 20)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def address(self) -> Address:
        found = read_address(self._home)
        assert found is not None, "it answers"
        return found

    def measure(self) -> None:
        """Measure blue's requests without a storm, then during one."""
        self.memory_mib = self.memory_mib or self._rss_mib()
        self.quiet = _more(self.quiet, self._blue(QUIET_S))
        with self._storm():
            self.storm = _more(self.storm, self._blue(STORM_S))
            self.storm_mib = max(self.storm_mib, self._rss_mib())

    def _rss_mib(self) -> float:
        return psutil.Process(self._process.pid).memory_info().rss / MIB

    def _blue(self, seconds: float) -> Found:
        return asyncio.run(_ask(self.address.url, self._tokens["blue"], seconds))

    @contextmanager
    def _storm(self) -> Generator[None]:
        words = [sys.executable, "-m", "benchmarks.fairness", self.address.url, self._tokens["red"]]
        red = subprocess.Popen(words, cwd=HERE, stdout=subprocess.DEVNULL)
        try:
            sleep(SETTLE_S)
            yield
        finally:
            red.kill()
            red.wait()


def _more(one: Found, other: Found) -> Found:
    return Found(
        one.submit_ms + other.submit_ms, one.list_ms + other.list_ms, one.failed + other.failed
    )


async def _ask(url: str, token: str, seconds: float) -> Found:
    """Submit and list at fixed times, whether or not the last answer has come."""
    found = Found([], [], 0)
    failed = 0
    headers = {"Authorization": f"Bearer {token}"}

    async def one(kind: str, due_s: float) -> None:
        nonlocal failed
        await asyncio.sleep(max(0.0, due_s - perf_counter()))
        try:
            if kind == "submit":
                answer = await client.post("/api/v1/jobs", json=WAITS)
            else:
                answer = await client.get("/api/v1/jobs", params={"limit": "20"})
            failed += answer.status_code >= 300
        except httpx.HTTPError:
            failed += 1
        took_ms = (perf_counter() - due_s) * 1_000
        (found.submit_ms if kind == "submit" else found.list_ms).append(took_ms)

    async with httpx.AsyncClient(
        base_url=url, headers=headers, timeout=60.0, trust_env=False
    ) as client:
        began_s = perf_counter()
        due = [began_s + number * PERIOD_S for number in range(int(seconds / PERIOD_S))]
        await asyncio.gather(*(one(kind, at) for at in due for kind in ("submit", "list")))
    return found._replace(failed=failed)


async def _red(url: str, token: str) -> None:
    """Storm until killed."""
    at = urlsplit(url)

    def asked(method: str, target: str, body: bytes = b"", length: int | None = None) -> bytes:
        size = len(body) if length is None else length
        lines = [f"{method} {target} HTTP/1.1", "Host: x", f"Authorization: Bearer {token}"]
        return "\r\n".join([*lines, f"Content-Length: {size}", "", ""]).encode() + body

    async def again(request: bytes) -> None:
        while True:
            with suppress(OSError, asyncio.IncompleteReadError, ValueError):
                reader, writer = await asyncio.open_connection(at.hostname, at.port)
                while True:
                    writer.write(request)
                    head = await reader.readuntil(b"\r\n\r\n")
                    size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                    await reader.readexactly(size)

    async def once(request: bytes) -> None:
        while True:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection(at.hostname, at.port, limit=1)
                writer.write(request)
                await writer.drain()
                # Nothing is read, so that the answer fills all buffers.
                await asyncio.sleep(3_600)
                del reader

    job = json.dumps({"jobs": [WAITS] * 5}).encode()
    body = asked("POST", "/api/v1/jobs", b" " * (BODY_BYTES - 1), BODY_BYTES)
    await asyncio.gather(
        *(again(asked("GET", "/api/v1/jobs?limit=200")) for _ in range(LISTERS)),
        *(again(asked("POST", "/api/v1/jobs", job)) for _ in range(SUBMITTERS)),
        *(once(asked("GET", "/api/v1/events?after=0")) for _ in range(WATCHERS)),
        *(once(body) for _ in range(BODIES)),
    )


def run(thresholds: dict[str, float]) -> list[Verdict]:
    """Measure this checkout, in turn with another if there is one."""
    with tempfile.TemporaryDirectory(prefix="tenfold-") as folder:
        sides = [Side("after", HERE, Path(folder))]
        before = os.environ.get("TENFOLD_BENCH_BEFORE")
        if before:
            sides.insert(0, Side("before", Path(before), Path(folder)))
        for number in range(ROUNDS):
            for side in sides:
                side.start(number)
                try:
                    side.measure()
                finally:
                    side.stop()
    for side in sides:
        _print(side)
    now = sides[-1]
    every = now.storm.submit_ms + now.storm.list_ms
    return [
        Verdict("blue, p99 in a storm", quantile(every, 0.99), thresholds["blue_ms_p99"], " ms"),
        Verdict("blue, requests that failed", now.storm.failed, 0),
        Verdict("memory of a storm", now.storm_mib - now.memory_mib, thresholds["mib"], " MiB"),
    ]


def _print(side: Side) -> None:
    for name, found in (("quiet", side.quiet), ("storm", side.storm)):
        for kind, took in (("submit", found.submit_ms), ("list", found.list_ms)):
            figures = [quantile(took, share) for share in (0.5, 0.99)]
            print(
                f"{side.name:6} {name:5} {kind:6} {len(took):5} requests, "
                f"p50 {figures[0]:.1f} ms, p99 {figures[1]:.1f} ms"
            )
        print(f"{side.name:6} {name:5} failed {found.failed}")
    print(f"{side.name:6} memory {side.memory_mib:.0f} MiB, in a storm {side.storm_mib:.0f} MiB")


if __name__ == "__main__":
    asyncio.run(_red(sys.argv[1], sys.argv[2]))
