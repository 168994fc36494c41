"""Processor time and latency of each request through proxies, interleaved in one run.

All proxies stand in front of the same replica, and rounds go over them in turn, so other work on
the machine is the same for all. Ours checks a token, chooses of two replicas, counts tokens and
keeps its limits; the others forward.
"""

import asyncio
import subprocess
import sys
from statistics import median, quantiles

from benchmarks.gateway.contenders import CONTENDERS, ROOT, Contender, Direct
from benchmarks.gateway.load import requests, stream
from benchmarks.verdict import Verdict

ROUNDS = 7
CONNECTIONS = 16
REQUESTS = 1_500
WARM = 200
STREAMS = 4


def run(thresholds: dict[str, float]) -> list[Verdict]:
    backend = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.gateway.backend", "0"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert backend.stdout is not None
    port = int(backend.stdout.readline())
    proxies: list[Contender | Direct] = []
    try:
        for name, start in CONTENDERS.items():
            try:
                proxies.append(start(port))
            except RuntimeError as error:
                print(f"skipped {name}: {error}")
        return _verdicts(_measure(proxies), thresholds)
    finally:
        for proxy in proxies:
            proxy.close()
        backend.kill()
        backend.wait()


class _Measured:
    def __init__(self) -> None:
        self.cpu_ms: list[float] = []
        self.took_ms: list[float] = []
        self.delay_ms: list[float] = []
        self.gap_ms: list[float] = []


def _measure(proxies: list[Contender | Direct]) -> dict[str, _Measured]:
    measured = {proxy.name: _Measured() for proxy in proxies}
    # The slow ones are sent fewer requests, so that the run ends.
    counts = {
        one.name: 300 if one.name in ("LiteLLM", "Ray Serve") else REQUESTS for one in proxies
    }
    for proxy in proxies:
        asyncio.run(requests(proxy.port, WARM, CONNECTIONS))
    for number in range(ROUNDS):
        for proxy in proxies:
            found, count = measured[proxy.name], counts[proxy.name]
            before = proxy.cpu_s()
            took = asyncio.run(requests(proxy.port, count, CONNECTIONS))
            found.cpu_ms.append(1_000 * (proxy.cpu_s() - before) / count)
            found.took_ms += [1_000 * one for one in took]
        print(f"round {number + 1} of {ROUNDS}", flush=True)
    for _ in range(STREAMS):
        for proxy in proxies:
            delays, gaps = asyncio.run(stream(proxy.port))
            measured[proxy.name].delay_ms += [1_000 * one for one in delays]
            measured[proxy.name].gap_ms += [1_000 * one for one in gaps]
    return measured


def _verdicts(measured: dict[str, _Measured], thresholds: dict[str, float]) -> list[Verdict]:
    print(f"{'':22} CPU ms  p50 ms  p99 ms  token delay ms  token gap ms")
    for name, one in measured.items():
        p99 = quantiles(one.took_ms, n=100)[98]
        print(
            f"{name:22} {median(one.cpu_ms):6.3f}  {median(one.took_ms):6.1f}  {p99:6.1f}"
            f"  {median(one.delay_ms):14.2f}  {median(one.gap_ms):12.2f}"
        )
    ours, bare, alone = (measured[one] for one in ("tenfold", "bare aiohttp proxy", "no proxy"))
    # Of each round, so that what else ran is the same for both.
    ratio = median(mine / theirs for mine, theirs in zip(ours.cpu_ms, bare.cpu_ms, strict=True))
    added = median(ours.delay_ms) - median(alone.delay_ms)
    return [
        Verdict("CPU of a request over a bare aiohttp proxy", ratio, thresholds["over_bare"], "x"),
        Verdict("delay added to a token", added, thresholds["token_ms"], " ms"),
        *_with_haproxy(measured, thresholds),
    ]


def _with_haproxy(measured: dict[str, _Measured], thresholds: dict[str, float]) -> list[Verdict]:
    """Return how HAProxy as the data plane compares with HAProxy alone, where it is installed."""
    if "HAProxy" not in measured or "tenfold with HAProxy" not in measured:
        return []
    ours, theirs, alone = (measured[one] for one in ("tenfold with HAProxy", "HAProxy", "no proxy"))
    rounds = zip(ours.cpu_ms, theirs.cpu_ms, strict=True)
    ratio = median(mine / other for mine, other in rounds)
    added = median(ours.delay_ms) - median(alone.delay_ms)
    return [
        Verdict("CPU with HAProxy over HAProxy alone", ratio, thresholds["over_haproxy"], "x"),
        Verdict("delay added to a token with HAProxy", added, thresholds["token_ms"], " ms"),
    ]
