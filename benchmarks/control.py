"""How much a control plane takes: jobs end to end, submissions, people, and a long history.

`tenfold up` as a process of its own with its durable journal, asked over HTTP, beside Slurm,
HyperQueue and Ray in the same run on the same machine. Nodes are virtual, and every system may
run as many jobs at once.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, sleep
from typing import Any, NamedTuple

import psutil

from benchmarks import control_peers
from benchmarks.chaos.plane import Plane
from benchmarks.journal_speed import lives
from benchmarks.verdict import Verdict
from tenfold.client.client import Client
from tenfold.client.endpoint import read_address
from tenfold.journal.append import open_journal
from tenfold.journal.store import open_store

JOBS, SLOTS, NODES = 1_000, 16, 2
QUEUED, BATCH = 10_000, 500
CLIENTS, LOAD_S = 100, 20.0
HISTORY = 100_000
LOOK_S = 0.05
MIB = 1 << 20
TRUE: dict[str, Any] = {"command": ["true"], "gpus_per_node": 1, "cpus_per_node": 0}
HOLD: dict[str, Any] = {**TRUE, "command": ["sleep", "3600"], "gpus_per_node": 8, "grace": 1}


class Rates(NamedTuple):
    done_s: list[float]
    """Jobs completed a second, in each of two runs."""
    submitted_s: float
    """Durable submissions a second, in batches."""
    load: dict[str, Any]
    memory_mib: float


def tenfold(folder: Path) -> Rates:
    """Measure one control plane from its first job to ten thousand that wait."""
    plane = Plane(folder / "home", NODES)
    plane.begin()
    try:
        plane.wait()
        with _client(plane) as client:
            done_s = [end_to_end(client, JOBS, before) for before in (0, JOBS)]
            client.submit_many([HOLD] * NODES)
            submitted_s = handed_in(client)
            load = asked(plane, client)
        return Rates(done_s, submitted_s, load, memory_mib(plane))
    finally:
        plane.leave()


def end_to_end(client: Client, jobs: int, before: int) -> float:
    """Return jobs a second from handing in an array to the end of its last member."""
    began_s = perf_counter()
    client.submit(**TRUE, array=jobs)
    while client.fleet().jobs.get("succeeded", 0) < before + jobs:
        sleep(LOOK_S)
    return jobs / (perf_counter() - began_s)


def handed_in(client: Client) -> float:
    """Return submissions a second, each batch on the disk before the next is sent."""
    began_s = perf_counter()
    for _ in range(QUEUED // BATCH):
        client.submit_many([TRUE] * BATCH)
    return QUEUED / (perf_counter() - began_s)


def asked(plane: Plane, client: Client) -> dict[str, Any]:
    """Return how long requests of many people take while thousands of jobs wait."""
    address = read_address(plane.folder.path)
    assert address is not None, "it answers"
    one = client.page(state="pending", limit=1).jobs[0].id
    words = [address.url, address.token, str(CLIENTS), str(LOAD_S), one]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.control_load", *words],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def remembered(folder: Path) -> tuple[float, float]:
    """Return MiB and seconds from start to answer of a control plane with a long history."""
    plane = Plane(folder / "home", NODES)
    plane.folder.prepare()
    store = open_store(str(plane.folder.journal))
    writer = open_journal(store, "history", 0)
    for events in lives(HISTORY):
        writer.append(events)
    store.close()
    plane.begin()
    try:
        plane.wait()
        with _client(plane) as client:
            while client.fleet().jobs.get("succeeded", 0) < HISTORY:
                sleep(LOOK_S)
            client.page(limit=1_000)
        return memory_mib(plane), plane.wait_s
    finally:
        plane.leave()


def memory_mib(plane: Plane) -> float:
    address = read_address(plane.folder.path)
    assert address is not None, "it answers"
    return psutil.Process(address.pid).memory_info().rss / MIB


def _client(plane: Plane) -> Client:
    client = plane.client()
    assert client is not None, "it answers"
    return client


def run(thresholds: dict[str, float]) -> list[Verdict]:
    with tempfile.TemporaryDirectory(prefix="tenfold-") as folder:
        ours = tenfold(Path(folder))
    best = max(ours.done_s)
    print(f"{JOBS:,} jobs of `true`, end to end, {SLOTS} at once, completed a second")
    print(f"{'Tenfold':24} {best:8.0f}   first run {ours.done_s[0]:.0f}")
    verdicts: list[Verdict] = []
    for name in ("slurm", "hyperqueue", "ray"):
        found = getattr(control_peers, name)(JOBS, SLOTS)
        if isinstance(found, str):
            print(f"{name:24} not run: {found}")
            continue
        over = best / found.jobs_s
        print(
            f"{found.name:24} {found.jobs_s:8.0f}   first run {found.first_jobs_s:.0f}; "
            f"Tenfold does {over:.2f} times as many"
        )
        if name == "slurm":
            verdicts.append(
                Verdict("completed a second over Slurm's", over, at_least=thresholds["over_slurm"])
            )
    print(f"durable submissions a second, batches of {BATCH}: {ours.submitted_s:,.0f}")
    for kind, told in ours.load["kinds"].items():
        line = f"{told['count']:6} requests, p50 {told['p50']:.1f} ms, p99 {told['p99']:.1f} ms"
        print(f"{CLIENTS} clients, {QUEUED:,} jobs wait, {kind:8} {line}")
    with tempfile.TemporaryDirectory(prefix="tenfold-") as folder:
        held_mib, start_s = remembered(Path(folder))
    print(f"memory: {ours.memory_mib:.0f} MiB with {QUEUED:,} jobs that wait")
    print(f"{HISTORY:,} jobs of history: {held_mib:.0f} MiB, answers after {start_s:.1f} s")
    every = ours.load["kinds"]["all"]
    return [
        *verdicts,
        Verdict(
            "durable submissions a second",
            ours.submitted_s,
            at_least=thresholds["submissions"],
        ),
        Verdict("API, p99", every["p99"], thresholds["api_ms_p99"], " ms"),
        Verdict("API, requests that failed", ours.load["failed"], 0),
        Verdict("memory with a long history", held_mib, thresholds["history_mib"], " MiB"),
    ]
