"""What a journal costs: durable submissions a second, restarts, and memory with a long history.

Nothing is held against a threshold: a commit waits for the disk, and disks differ. Each figure
stands beside what the disk alone does, a write and an fsync of as many bytes.
"""

import argparse
import os
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, NamedTuple

import psutil
from sqlalchemy import Connection

from tenfold.engine.digest import fleet_digest
from tenfold.fleet.fleet import Fleet
from tenfold.journal import read, read_tables
from tenfold.journal.append import JournalWriter, open_journal
from tenfold.journal.integrity.rebuild import rebuild_read_tables
from tenfold.journal.leadership.lease import take_lease
from tenfold.journal.snapshots import restore, save_snapshot
from tenfold.journal.store import Store, open_store
from tenfold.model.actions import StartJob
from tenfold.model.events import (
    KIND_OF,
    ActionOrdered,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    NodeJoined,
)
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Slot
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.units import Millis
from tenfold.testing.builders import job, nodes

NODES, GPUS = 128, 8
WARM = 10
"""Appends before the first that is timed."""
TOGETHER = NODES * GPUS
WORK = RunSpec(name="train", command=("python", "train.py", "--config", "large.yaml"))
MIB = 1 << 20


def submissions(first: int, count: int) -> list[Event]:
    return [
        JobSubmitted(Millis(number), job(number, 1, team=f"team-{number % 15}"), WORK)
        for number in range(first, first + count)
    ]


def lives(jobs: int) -> Iterator[list[Event]]:
    """Yield the facts of jobs that come, run and end, a fleet full of them at a time."""
    yield [NodeJoined(Millis(0), node) for node in nodes(NODES, gpus=GPUS)]
    for first in range(0, jobs, TOGETHER):
        names = [(number, JobId(f"job-{number}")) for number in range(first, first + TOGETHER)]
        now = Millis(first + TOGETHER)
        yield submissions(first, TOGETHER)
        yield [
            ActionOrdered(now, StartJob(name, (Slot(NodeId(f"n{number % NODES}"), 1),)))
            for number, name in names
        ]
        yield [JobStarted(now, name) for _, name in names]
        yield [JobEnded(now, name, exit_code=0) for _, name in names]


def appends(address: str | None) -> None:
    print("\nsubmissions, each commit on the disk before the next begins")
    print(f"{'batch':>6} {'commits/s':>10} {'jobs/s':>10} {'CPU us/job':>11} {'disk alone/s':>13}")
    for batch in (1, 10, 100, 1_000):
        commits = max(10, min(200, 20_000 // batch))
        with TemporaryDirectory(dir=".") as folder:
            store = open_store(address or Path(folder) / "journal.db")
            writer = open_journal(store, "speed", 0)
            made = [submissions(writer.seq + n * batch, batch) for n in range(commits)]
            writer.append([NodeJoined(Millis(0), node) for node in nodes(1, name=f"n{batch}-")])
            start_s, cpu_s = perf_counter(), process_time()
            for events in made:
                writer.append(events)
            took_s, cpu_s = perf_counter() - start_s, process_time() - cpu_s
            store.close()
            alone = synced_a_second(Path(folder) / "alone", 400 * batch, commits)
        a_second, cpu_us = commits / took_s, cpu_s / commits / batch * 1e6
        shown = f"{a_second:>10.0f} {a_second * batch:>10.0f} {cpu_us:>11.0f} {alone:>13.0f}"
        print(f"{batch:>6} {shown}")


class UnchainedWriter(JournalWriter):
    """A writer without the digest chain, for comparison only: `verify` rejects what it writes."""

    def _rows(self, events: Sequence[Event]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        encode = self._encoder.encode
        rows = [
            {
                "seq": seq,
                "at_ms": event.at_ms,
                "kind": KIND_OF[type(event)],
                "body": encode(event).decode(),
                "chain": None,
                "shared": None,
            }
            for seq, event in enumerate(events, start=self.seq + 1)
        ]
        return rows, []

    def _record_end(self, connection: Connection, seq: int, digest: bytes, change: int) -> None:
        return


class Spent(NamedTuple):
    """Wall and CPU time of one append."""

    wall_s: float
    cpu_s: float


def chain_cost(address: str | None, rounds: int) -> None:
    """Append the same batches with and without the chain, in turn: the disk is shared by both."""
    print("\nwith the digest chain, sums and head file (a) and without them (b), in turn")
    print(f"{'batch':>6} {'a jobs/s':>9} {'b jobs/s':>9} {'cost':>6} {'median':>7} ", end="")
    print(f"{'a CPU us':>9} {'b CPU us':>9} {'cost':>6}")
    for batch in (1, 10, 100, 1_000):
        commits = max(20, min(300, 30_000 // batch)) * rounds
        with TemporaryDirectory(dir=".") as folder:
            spent = _in_turn(Path(folder), address, batch, commits)
        (wall_a, wall_b), (cpu_a, cpu_b) = (
            [sum(one[at] for one in each) for each in spent] for at in (0, 1)
        )
        middle = [median(one.wall_s for one in each) for each in spent]
        jobs = commits * batch
        print(
            f"{batch:>6} {jobs / wall_a:>9.0f} {jobs / wall_b:>9.0f} {wall_a / wall_b - 1:>6.1%} "
            f"{middle[0] / middle[1] - 1:>7.1%} {cpu_a / jobs * 1e6:>9.1f} "
            f"{cpu_b / jobs * 1e6:>9.1f} {cpu_a / cpu_b - 1:>6.1%}"
        )


def _in_turn(
    folder: Path, address: str | None, batch: int, commits: int
) -> tuple[list[Spent], list[Spent]]:
    # Two journals cannot share a database of PostgreSQL: each `%s` in the URL becomes a name.
    stores = [
        open_store(folder / f"{name}.db" if address is None else address.replace("%s", name))
        for name in ("a", "b")
    ]
    chained = open_journal(stores[0], "speed", 0)
    chained.record_head(folder / "a.head")
    plain = UnchainedWriter(stores[1], take_lease(stores[1], "speed", 0))
    spent: tuple[list[Spent], list[Spent]] = ([], [])
    for number in range(commits + WARM):
        events = submissions(chained.seq, batch)
        for which in ((0, 1), (1, 0))[number % 2]:
            with nullcontext() if which == 0 else _without_sums():
                start_s, cpu_s = perf_counter(), process_time()
                (chained, plain)[which].append(events)
                took = Spent(perf_counter() - start_s, process_time() - cpu_s)
            if number >= WARM:
                spent[which].append(took)
    chained.close_head()
    for store in stores:
        store.close()
    return spent


def _no_digest(*_: object) -> int:
    return 0


@contextmanager
def _without_sums() -> Generator[None, None, None]:
    before = read_tables.digest_of, read_tables.sum_of_values
    read_tables.digest_of = read_tables.sum_of_values = _no_digest
    try:
        yield
    finally:
        read_tables.digest_of, read_tables.sum_of_values = before


def synced_a_second(path: Path, size: int, count: int) -> float:
    data = os.urandom(size)
    with path.open("wb", buffering=0) as stream:
        start_s = perf_counter()
        for _ in range(count):
            stream.write(data)
            os.fsync(stream.fileno())
        return count / (perf_counter() - start_s)


def fill(store: Store, jobs: int) -> tuple[JournalWriter, Fleet]:
    writer, fleet = open_journal(store, "speed", 0), Fleet()
    for events in lives(jobs):
        writer.append(events)
        fleet.apply_all(events)
    return writer, fleet


def restarts(events: int) -> None:
    with TemporaryDirectory(dir=".") as folder:
        path = Path(folder) / "journal.db"
        store = open_store(path)
        start_s, cpu_s = perf_counter(), process_time()
        writer, fleet = fill(store, events // 4)
        took_s, cpu_s = perf_counter() - start_s, process_time() - cpu_s
        size = path.stat().st_size / MIB
        print(f"\n{writer.seq:,} events, {size:.0f} MiB, written in {took_s:.0f} s, ", end="")
        print(f"{cpu_s:.0f} of CPU")
        _restart(path, fleet, "without a snapshot")
        rest = submissions(events, 50_000)
        start_s = perf_counter()
        save_snapshot(writer, fleet)
        print(f"snapshot of an idle fleet: {perf_counter() - start_s:.3f} s")
        _restart(path, fleet, "with a snapshot of the end")
        writer.append(rest)
        fleet.apply_all(rest)
        _restart(path, fleet, "with a snapshot 50,000 events old, all of them submissions")
        start_s = perf_counter()
        save_snapshot(writer, fleet)
        print(f"snapshot with 50,000 jobs that wait: {perf_counter() - start_s:.3f} s")
        _restart(path, fleet, "with that snapshot")
        start_s, cpu_s = perf_counter(), process_time()
        rebuild_read_tables(writer)
        took_s, cpu_s = perf_counter() - start_s, process_time() - cpu_s
        print(f"read tables built anew in {took_s:.0f} s, {cpu_s:.0f} of CPU")
        store.close()


def _restart(path: Path, fleet: Fleet, how: str) -> None:
    start_s, cpu_s = perf_counter(), process_time()
    store = open_store(path)
    found = restore(store)
    took_s, cpu_s = perf_counter() - start_s, process_time() - cpu_s
    assert fleet_digest(found.fleet) == fleet_digest(fleet), "another fleet came back"
    store.close()
    applied = found.seq - found.snapshot_seq
    print(f"restart {how}: {took_s:.2f} s, {cpu_s:.2f} of CPU ({applied:,} events applied)")


def memory(jobs: int) -> None:
    before = psutil.Process().memory_info().rss
    with TemporaryDirectory(dir=".") as folder:
        path = Path(folder) / "journal.db"
        store = open_store(path)
        writer, fleet = fill(store, jobs)
        after = psutil.Process().memory_info().rss
        told = sum(read.counts(store).values())
        more = (after - before) / MIB
        print(f"\n{told:,} jobs of history: {more:.0f} MiB more than before, ", end="")
        print(f"{after / MIB:.0f} MiB in all; {path.stat().st_size / MIB:.0f} MiB on the disk")
        start_s = perf_counter()
        for _ in range(100):
            read.jobs(store, team="team-3", limit=100)
        print(f"a page of 100 jobs of one team: {(perf_counter() - start_s) * 10:.2f} ms")
        start_s = perf_counter()
        read.counts(store)
        print(f"counts by state: {(perf_counter() - start_s) * 1_000:.1f} ms")
        assert fleet.version == writer.seq
        store.close()


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.journal_speed")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--url", help="a PostgreSQL to append to, in place of SQLite")
    parser.add_argument("--chain", type=int, metavar="ROUNDS", help="the digest chain's cost alone")
    asked = parser.parse_args(words)
    if asked.chain is not None:
        chain_cost(asked.url, asked.chain)
        return 0
    memory(asked.jobs)
    appends(asked.url)
    restarts(asked.events)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
