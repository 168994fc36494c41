"""Break a journal off at every write, and see that what was acknowledged is there.

A run of some fifty appends, with snapshots, an export and checkpoints among them, is written to
a disk that notes every operation. For each, the files are made as a crash at that point may leave
them, opened with the plain driver, and held against what had been acknowledged by then. The
crash takes any part of what was not synced; the seed of its dice is printed.
"""

import argparse
import sqlite3
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

from sqlalchemy import select

from benchmarks.journal_disk import Disk, Op, after_crash, noted_disk
from tenfold.compose.policies import placing_decider
from tenfold.engine.digest import fleet_digest
from tenfold.engine.loop import run
from tenfold.fleet.fleet import Fleet
from tenfold.journal import read
from tenfold.journal.append import JournalWriter, open_journal
from tenfold.journal.integrity.chain import read_chain
from tenfold.journal.integrity.head_file import Head, HeadFile
from tenfold.journal.integrity.rebuild import rebuild_read_tables
from tenfold.journal.integrity.table_sum import READ_TABLES
from tenfold.journal.snapshots import exported_until, restore, save_snapshot
from tenfold.journal.store import Store, last_seq, open_store
from tenfold.journal.verify import verify
from tenfold.model.errors import TenfoldError
from tenfold.model.events import Event, JobCancelled, JobSubmitted
from tenfold.model.ids import TeamId
from tenfold.model.job.job import Shape
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.job.submission import Submission, admitted
from tenfold.model.policy.policy import Policy
from tests.rigs.journal import export_older
from tests.rigs.soak import simulated
from tests.rigs.worlds import drawn_world

APPENDS = 50
SNAPSHOT_EVERY = 12
EXPORT_AFTER = 30
ARRAY_AT, ARRAY_ENDED_AT = 6, 20
"""The appends in which an array comes, and in which most of it is cancelled."""
MEMBERS = 40
NAME = "journal.db"


class Written(NamedTuple):
    """A run: what was asked of the disk, and how many events each append brought it to."""

    ops: list[Op]
    events: list[Event]
    ends: list[int]
    """Events after each append; marks in `ops` count the appends that were acknowledged."""
    heads: Sequence[Head] = ()
    """What the head file said after each append."""

    def acknowledged(self, point: int) -> int:
        """Return the events that were acknowledged before an operation."""
        appends = self._appends(point)
        return self.ends[appends - 1] if appends else 0

    def head(self, point: int) -> Head | None:
        """Return the newest head that the file could have before an operation."""
        appends = self._appends(point)
        return self.heads[appends - 1] if appends and self.heads else None

    def _appends(self, point: int) -> int:
        return max((op.at for op in self.ops[:point] if op.kind == "mark"), default=0)


def history(seed: int = 3, appends: int = APPENDS) -> list[list[Event]]:
    """Return the facts of a simulated run in so many batches."""
    batches: list[list[Event]] = []

    class Kept:
        def append(self, events: Sequence[Event]) -> None:
            if events:
                batches.append(list(events))

    world = drawn_world(Random(seed), jobs=(60, 60))
    decider = placing_decider(Policy(name="tenfold", placement=world.placement))
    run(simulated(world), Fleet(), [decider], journal=Kept())
    assert len(batches) >= appends, f"seed {seed} makes {len(batches)} batches"
    _add_array(batches)
    return batches[:appends]


def _add_array(batches: Sequence[list[Event]]) -> None:
    """Add an array, whose members share text, and end most of it before the export."""
    first, ended = batches[ARRAY_AT], batches[ARRAY_ENDED_AT]
    names = RunSpec(name="array", command=("python", "x" * 2_000))
    shape = Shape(key="1", gpus=1)
    array = Submission(team=TeamId("red"), shape=shape, run_spec=names, array=MEMBERS)
    jobs = admitted(array, 10_000, first[-1].at_ms)
    first += [JobSubmitted(first[-1].at_ms, one.job, one.run_spec) for one in jobs]
    ended += [JobCancelled(ended[-1].at_ms, one.job.id) for one in jobs[: MEMBERS - 5]]


def written(folder: Path, batches: Sequence[list[Event]], synchronous: str = "FULL") -> Written:
    """Write a run to a noted disk."""
    with noted_disk(folder / NAME, synchronous) as (disk, connect):
        store = open_store(folder / NAME, connect=connect)
        heads: list[Head] = []
        ends = appended(open_journal(store, "faults", 0), batches, disk, heads)
        store.close()
    return Written(disk.ops, [event for batch in batches for event in batch], ends, heads)


def appended(
    writer: JournalWriter,
    batches: Iterable[list[Event]],
    disk: Disk,
    heads: list[Head] | None = None,
) -> list[int]:
    """Append batches, try again where the disk refuses, and mark what was acknowledged."""
    fleet, ends = Fleet(), list[int]()
    file = writer.store.file
    assert file is not None, "the noted disk holds SQLite alone"
    with writer.store.reading() as connection:
        journal = read_chain(connection).journal
    for number, batch in enumerate(batches, start=1):
        _until_it_works(lambda batch=batch: writer.append(batch))
        ends.append(writer.seq)
        if heads is not None:
            heads.append(Head(journal, writer.seq, writer.digest))
        disk.mark(number)
        fleet.apply_all(batch)
        if number % SNAPSHOT_EVERY == 0:
            _until_it_works(lambda: save_snapshot(writer, fleet))
        if number == EXPORT_AFTER:
            _until_it_works(lambda: export_older(writer, file.parent))
    return ends


def _until_it_works(attempt: object) -> None:
    for _ in range(20):
        try:
            attempt()  # pyright: ignore
        except TenfoldError as error:
            if error.code not in ("journal-unwritable", "journal-unreachable"):
                raise
        else:
            return
    raise AssertionError("the disk has refused for too long")


def wrong_after(run: Written, point: int, seed: int) -> str:
    """Return what is wrong after a crash at an operation; empty where nothing is."""
    dice = Random(f"{seed}-{point}")
    with TemporaryDirectory(dir=_in_memory()) as folder:
        for name, content in after_crash(run.ops[:point], dice).items():
            (Path(folder) / name).write_bytes(content)
        try:
            return _wrong_in(run, point, Path(folder) / NAME)
        except (TenfoldError, sqlite3.Error) as error:
            return f"it cannot be opened: {error}"


def _wrong_in(run: Written, point: int, path: Path) -> str:
    with closing(sqlite3.connect(path)) as plain:
        sound = plain.execute("PRAGMA integrity_check").fetchone()[0]
    if sound != "ok":
        return f"the database is damaged: {sound}"
    store = open_store(path)
    try:
        with store.reading() as connection:
            exported, last = exported_until(connection), last_seq(connection)
        least = run.acknowledged(point)
        if last < least:
            return f"{least} events were acknowledged, {last} are there"
        present = dict(read.events_after(store))
        told = dict(enumerate(run.events[:last], start=1))
        after = {seq: event for seq, event in told.items() if seq > exported or seq in present}
        if present != after or last not in (0, *run.ends):
            return "what is there is not what was appended"
        fleet = Fleet()
        fleet.apply_all(run.events[:last])
        if fleet_digest(restore(store).fleet) != fleet_digest(fleet):
            return "the fleet that comes back is another one"
        if wrong := _false_alarm(store, run.head(point), path.with_suffix(".head")):
            return wrong
        before = tables_of(store)
        rebuild_read_tables(open_journal(store, "after", 1))
        if tables_of(store) != before:
            return "the read tables are not those of the events"
    finally:
        store.close()
    return ""


def _false_alarm(store: Store, head: Head | None, path: Path) -> str:
    """Return what `verify` calls damage after a crash, with the newest head that may be there."""
    if head is not None:
        HeadFile(path, head).close()
    # The export is a file that the noted disk does not hold.
    found = [one for one in verify(store, path).findings if one.code != "bundle-missing"]
    return f"a crash is called damage: {found[0].message}" if found else ""


def tables_of(store: Store) -> list[list[tuple[object, ...]]]:
    """Return all that the read tables hold."""
    with store.reading() as connection:
        return [
            [tuple(row) for row in connection.execute(select(one).order_by(*one.primary_key))]
            for one in READ_TABLES
        ]


def _in_memory() -> str | None:
    """Return a folder that costs no disk: the crash is over by then."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.journal_faults")
    parser.add_argument("--seed", type=int, default=1, help="that of the dice of the crashes")
    parser.add_argument("--rounds", type=int, default=3, help="crashes at each operation")
    asked = parser.parse_args(words)
    start_s, broken, tried = perf_counter(), 0, 0
    with TemporaryDirectory() as folder:
        run = written(Path(folder), history())
    kinds = {kind: sum(op.kind == kind for op in run.ops) for kind in ("write", "sync", "delete")}
    print(f"{len(run.ends)} appends, {len(run.events)} events; {kinds}")
    for seed in range(asked.seed, asked.seed + asked.rounds):
        for point in range(len(run.ops) + 1):
            tried += 1
            if wrong := wrong_after(run, point, seed):
                broken += 1
                print(f"BROKEN at operation {point}, seed {seed}: {wrong}")
    print(
        f"{tried} crashes at {len(run.ops) + 1} points from seed {asked.seed}: "
        f"{broken} broken, {perf_counter() - start_s:.0f} s"
    )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
