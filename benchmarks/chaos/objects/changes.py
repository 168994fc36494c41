"""Backends are added and replaced, and a whole tier is drained, under load: what clients notice.

Every request is sent once: one that fails has failed. The slow-down of a change is the requests
answered in a second before it, over those while its command runs; client, server and the command
share the machine. Bytes written are held against the fewest that placement allows.
"""

import statistics
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any

import msgspec
from msgspec import Struct, field

from benchmarks.chaos.objects.clients import BUCKET
from benchmarks.chaos.objects.kills import command
from tests.rigs.objects import ObjectServer, object_server

OBJECTS = 200
OBJECT_BYTES = 1 << 20
SMALL_BYTES = 60_000
READERS = 3
BEFORE_S = 15.0
LIMIT = "10M"


class Ask(Struct, frozen=True):
    """How much, and from which dice."""

    objects: int = OBJECTS
    before_s: float = BEFORE_S
    seed: int = 1


class Change(Struct, kw_only=True):
    """One change: what clients noticed, and what was written."""

    name: str
    seconds: float
    requests: int
    p50_ms: float
    p99_ms: float
    bytes_written: int = 0
    bytes_fewest: float = 0.0

    @property
    def per_s(self) -> float:
        """Return requests answered in a second."""
        return self.requests / self.seconds

    @property
    def over_fewest(self) -> float:
        """Return bytes written over the fewest possible."""
        return self.bytes_written / self.bytes_fewest if self.bytes_fewest else 0.0


class Found(Struct, kw_only=True):
    """What came of it."""

    before: Change
    changes: list[Change] = field(default_factory=list[Change])
    failures: list[str] = field(default_factory=list[str])
    requests: int = 0


class Load:
    """Threads that read and write through boto3 until they are stopped."""

    def __init__(self, server: ObjectServer, keys: Sequence[str], body: bytes, seed: int) -> None:
        self.latencies_ms: list[float] = []
        self.failures: list[str] = []
        self._keys, self._body, self._seed = keys, body, seed
        self._server = server
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(number,), daemon=True)
            for number in range(READERS + 1)
        ]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def _run(self, number: int) -> None:
        s3 = self._server.s3(retries={"total_max_attempts": 1}, read_timeout=300)
        dice, count = Random(f"{self._seed}/{number}"), 0
        while not self._stopped.is_set():
            count += 1
            began_s = perf_counter()
            try:
                if number < READERS:
                    self._read(s3, dice.choice(self._keys))
                else:
                    self._write(s3, count)
            except Exception as error:
                self.failures.append(repr(error))
            self.latencies_ms.append((perf_counter() - began_s) * 1_000)

    def _read(self, s3: Any, key: str) -> None:
        if s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() != self._body:
            self.failures.append(f"{key} has other bytes")

    def _write(self, s3: Any, count: int) -> None:
        s3.put_object(Bucket=BUCKET, Key=f"new/{count}", Body=self._body[:SMALL_BYTES])
        if count > 50:
            s3.delete_object(Bucket=BUCKET, Key=f"new/{count - 50}")


class Changes:
    """One object store whose tiers change."""

    def __init__(self, folder: Path, ask: Ask) -> None:
        self._folder, self._ask = folder, ask
        self._backends = {"hot": 4, "warm": 4}

    def run(self) -> Found:
        """Fill the store, measure it, and change it."""
        self._write_tiers()
        body = Random(self._ask.seed).randbytes(OBJECT_BYTES)
        keys = [f"k{number}" for number in range(self._ask.objects)]
        with object_server(self._folder, "--processes", "2") as server:
            s3 = server.s3()
            s3.create_bucket(Bucket=BUCKET)
            for key in keys:
                s3.put_object(Bucket=BUCKET, Key=key, Body=body)
            with Load(server, keys, body, self._ask.seed) as load:
                found = Found(before=self._before(load))
                found.changes += [
                    self._expand(load),
                    self._replace(load),
                    self._drain(load, "hot", "warm", ""),
                    self._drain(load, "warm", "hot", LIMIT),
                ]
            found.failures, found.requests = load.failures, len(load.latencies_ms)
        return found

    def _before(self, load: Load) -> Change:
        first, began_s = len(load.latencies_ms), perf_counter()
        threading.Event().wait(self._ask.before_s)
        return _change("before", load.latencies_ms[first:], perf_counter() - began_s)

    def _expand(self, load: Load) -> Change:
        self._backends["hot"] += 1
        self._write_tiers()
        stored = sum(self._stored("hot").values())
        return self._measured(load, "expand hot from 4 to 5 backends", stored / 5, "expand", "hot")

    def _replace(self, load: Load) -> Change:
        self._backends["hot"] += 1
        self._write_tiers()
        fewest = self._stored("hot")["hot0"]
        return self._measured(load, "replace a disk of hot", fewest, "replace", "hot0", "hot5")

    def _drain(self, load: Load, tier: str, to: str, limit: str) -> Change:
        stored = {"hot": 2.0, "warm": 1.5}
        fewest = sum(self._stored(tier).values()) / stored[tier] * stored[to]
        words = ["drain", tier, "--to", to]
        if limit:
            command(self._folder, "expand", to, "--json")
            words += ["--limit", limit]
        name = f"drain {tier} into {to}" + (f" at {limit}B/s" if limit else "")
        return self._measured(load, name, fewest, *words)

    def _measured(self, load: Load, name: str, fewest: float, *words: str) -> Change:
        first, began_s = len(load.latencies_ms), perf_counter()
        done = command(self._folder, *words, "--json")
        seconds = perf_counter() - began_s
        if done.returncode:
            load.failures.append(f"{name}: {done.stderr[-300:]}")
        change = _change(name, load.latencies_ms[first:], seconds)
        change.bytes_written = msgspec.json.decode(done.stdout or "{}").get("bytes_written", 0)
        change.bytes_fewest = fewest
        print(f"  {name}: {seconds:.0f} s", file=sys.stderr, flush=True)
        return change

    def _stored(self, tier: str) -> dict[str, int]:
        listed = msgspec.json.decode(command(self._folder, "tier", "list", "--json").stdout)
        found = next(one for one in listed if one["name"] == tier)
        return {one["name"]: one["stored_bytes"] for one in found["backends"]}

    def _write_tiers(self) -> None:
        lines: list[str] = []
        for tier, layout in (("hot", "replicas = 2"), ("warm", 'erasure = "2+1"')):
            lines += [f"[tiers.{tier}]", layout]
            for number in range(self._backends[tier]):
                name = f"{tier}{number}"
                lines += [f"[[tiers.{tier}.backends]]", f'name = "{name}"']
                lines += [f'directory = "disks/{name}"']
        (self._folder / "tiers.toml").write_text("\n".join(lines) + "\n")


def _change(name: str, latencies_ms: Sequence[float], seconds: float) -> Change:
    ordered = sorted(latencies_ms) or [0.0]
    return Change(
        name=name,
        seconds=seconds,
        requests=len(latencies_ms),
        p50_ms=statistics.median(ordered),
        p99_ms=ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))],
    )


def lines(found: Found) -> list[str]:
    """Return a row for each change."""
    shown = [
        f"{'change':34} {'seconds':>8} {'requests/s':>11} {'slow-down':>10} {'p50 ms':>7} "
        f"{'p99 ms':>7} {'MB written':>11} {'over fewest':>12}"
    ]
    for one in [found.before, *found.changes]:
        slower = found.before.per_s / one.per_s if one.requests else float("inf")
        moved = (
            f"{one.bytes_written / 1e6:11.1f} {one.over_fewest:11.2f}x" if one.bytes_fewest else ""
        )
        shown.append(
            f"{one.name:34} {one.seconds:8.1f} {one.per_s:11.1f} {slower:9.2f}x {one.p50_ms:7.1f} "
            f"{one.p99_ms:7.1f} {moved}".rstrip()
        )
    shown.append(f"requests: {found.requests:,}, failed: {len(found.failures)}")
    return shown + [f"failed: {one}" for one in found.failures[:10]]
