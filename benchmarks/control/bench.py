"""How much a control plane takes: jobs end to end, submissions, people, and a long history.

`tenfold up` as a process of its own with its durable journal, asked over HTTP, beside Slurm,
HyperQueue and Ray on the same machine: pairs of runs, one of each system in turn, so that a machine
that slows down slows both. Nodes are virtual, and every system may run as many jobs at once.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter, process_time, sleep
from typing import Any, NamedTuple

import psutil

from benchmarks.chaos.plane import Plane
from benchmarks.control import peers
from benchmarks.control.cpu import CpuMeter, metered
from benchmarks.control.peers import Measured, pause_s
from benchmarks.journal_speed import lives
from benchmarks.verdict import Verdict
from tenfold.client.client import Client
from tenfold.client.endpoint import read_address
from tenfold.journal.append import open_journal
from tenfold.journal.store import open_store

JOBS, SLOTS, NODES = 1_000, 16, 2
PAIRS = 5
QUEUED, BATCH = 10_000, 500
CLIENTS, LOAD_S = 100, 20.0
HISTORY = 100_000
LOOK_S = 0.05
MIB = 1 << 20
TRUE: dict[str, Any] = {"command": ["true"], "gpus_per_node": 1, "cpus_per_node": 0}
HOLD: dict[str, Any] = {**TRUE, "command": ["sleep", "3600"], "gpus_per_node": 8, "grace": 1}
LIMITED: dict[str, Any] = {**TRUE, "cpus_per_node": 0.1, "memory_gib_per_node": 0.1}
MEMORY = Path("/dev/shm")


class Runs:
    """A control plane that runs many short jobs, again and again."""

    def __init__(self, plane: Plane, job: dict[str, Any], meter: CpuMeter) -> None:
        self._meter = meter
        self.client = _client(plane)
        self._job = job
        self._done = 0

    def run(self) -> Measured:
        """Measure from submitting an array to the end of its last job."""
        before_ms, own_s, began_s = self._meter.ms(), process_time(), perf_counter()
        self._done += JOBS
        self.client.submit(**self._job, array=JOBS)
        while left := self._done - self.client.fleet().jobs.get("succeeded", 0):
            sleep(pause_s(perf_counter() - began_s, JOBS - left, JOBS))
        seconds, own_ms = perf_counter() - began_s, (process_time() - own_s) * 1_000
        return Measured(JOBS / seconds, (self._meter.ms() - before_ms + own_ms) / JOBS)


@contextmanager
def running(folder: Path, job: dict[str, Any], *options: str) -> Generator[Runs, None, None]:
    """Start a control plane and run the first jobs, which are not counted, as nobody's are."""
    folder.chmod(0o755)
    plane = Plane(folder / "home", NODES, *options)
    plane.begin()
    assert plane.pid is not None, "it was started"
    with metered(plane.pid) as meter:
        try:
            plane.wait()
            # All jobs in one working directory, as those of the others.
            runs = Runs(plane, {**job, "workdir": "/"}, meter)
            with runs.client:
                runs.run()
                yield runs
        finally:
            plane.leave()


class Pairs(NamedTuple):
    """Runs of Tenfold and of a peer, in turn."""

    ours: list[Measured]
    theirs: list[Measured]

    @property
    def rate(self) -> float:
        """Median over pairs of our rate over theirs."""
        pairs = zip(self.ours, self.theirs, strict=True)
        return median(our.jobs_s / their.jobs_s for our, their in pairs)

    @property
    def cpu(self) -> float:
        """Median over pairs of our CPU time over theirs."""
        pairs = zip(self.ours, self.theirs, strict=True)
        return median(our.cpu_ms / their.cpu_ms for our, their in pairs)


def side_by_side(thresholds: dict[str, float]) -> list[Verdict]:
    """Run pairs with every peer that can be run here."""
    print(f"{JOBS:,} jobs of `true`, end to end, {SLOTS} at once; median of {PAIRS} pairs")
    print(f"{'':14} {'jobs/s':>16} {'CPU ms a job':>16}   Tenfold over it, pair by pair")
    verdicts: list[Verdict] = []
    with (
        tempfile.TemporaryDirectory(prefix="tenfold-") as folder,
        running(Path(folder), TRUE, "--team-users", "off") as ours,
    ):
        for name in peers.PEERS:
            with peers.running(name, JOBS, SLOTS) as peer:
                if peer.not_run:
                    print(f"{name:14} not run: {peer.not_run}")
                    # Asked for, and left without a measurement: that is no miss of ours.
                    _ = thresholds[f"over_{name}"], thresholds[f"cpu_over_{name}"]
                    continue
                peer.run()
                pairs = Pairs([], [])
                for _ in range(PAIRS):
                    pairs.ours.append(ours.run())
                    pairs.theirs.append(peer.run())
                verdicts += _told(name, peer.name, pairs, thresholds)
    return verdicts


def _told(name: str, title: str, pairs: Pairs, thresholds: dict[str, float]) -> list[Verdict]:
    each = zip(pairs.ours, pairs.theirs, strict=True)
    shares = " ".join(f"{our.jobs_s / their.jobs_s:.2f}" for our, their in each)
    for who, runs in (("Tenfold", pairs.ours), (title, pairs.theirs)):
        rate, cpu = median(run.jobs_s for run in runs), median(run.cpu_ms for run in runs)
        print(f"{who:14} {rate:16.0f} {cpu:16.2f}   {shares if runs is pairs.theirs else ''}")
    return [
        Verdict(
            f"jobs a second over those of {title}, median of {PAIRS} pairs",
            pairs.rate,
            at_least=thresholds[f"over_{name}"],
        ),
        Verdict(
            f"CPU time a job over that of {title}, median of {PAIRS} pairs",
            pairs.cpu,
            thresholds[f"cpu_over_{name}"],
        ),
    ]


def costs() -> None:
    """Print what durability and each kind of isolation cost a job."""
    kinds: list[tuple[str, dict[str, Any], list[str], Path | None]] = [
        ("as above", TRUE, ["--team-users", "off"], None),
        ("state directory in memory: nothing is durable", TRUE, ["--team-users", "off"], MEMORY),
        ("CPU and memory limits", LIMITED, ["--team-users", "off"], None),
        ("a user for each team", TRUE, ["--team-users", "on"], None),
        ("limits and a user", LIMITED, ["--team-users", "on"], None),
    ]
    print("what a job costs, CPU ms (jobs/s): median of 3 runs in turn")
    found: dict[str, list[Measured]] = {}
    # All folders stay to the end: ext4 without a journal is slow where much was just removed.
    with ExitStack() as stack:
        planes: dict[str, Runs] = {}
        for name, job, options, parent in kinds:
            if (parent and not parent.is_dir()) or ("on" in options and os.geteuid() != 0):
                print(f"{name:46} not run here")
                continue
            folder = tempfile.TemporaryDirectory(prefix="tenfold-", dir=parent)
            path = Path(stack.enter_context(folder))
            planes[name] = stack.enter_context(running(path, job, *options))
        for _ in range(3):
            for name, runs in planes.items():
                found.setdefault(name, []).append(runs.run())
    for name, runs in found.items():
        cpu, rate = median(run.cpu_ms for run in runs), median(run.jobs_s for run in runs)
        print(f"{name:46} {cpu:6.2f} ({rate:.0f})")


class Rates(NamedTuple):
    submitted_s: float
    """Durable submissions a second, in batches."""
    load: dict[str, Any]
    memory_mib: float


def tenfold(folder: Path) -> Rates:
    """Measure one control plane with ten thousand jobs that wait."""
    plane = Plane(folder / "home", NODES)
    plane.begin()
    try:
        plane.wait()
        with _client(plane) as client:
            client.submit_many([HOLD] * NODES)
            submitted_s = handed_in(client)
            load = asked(plane, client)
        return Rates(submitted_s, load, memory_mib(plane))
    finally:
        plane.leave()


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
        [sys.executable, "-m", "benchmarks.control.load", *words],
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
    verdicts = side_by_side(thresholds)
    costs()
    with tempfile.TemporaryDirectory(prefix="tenfold-") as folder:
        ours = tenfold(Path(folder))
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
