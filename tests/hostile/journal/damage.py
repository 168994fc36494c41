"""Damage to a journal is found by `verify` and at the start, in both databases.

Every kind of damage is done with plain SQL, as a disk, an editor or a tool would do it.
"""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import create_engine, make_url, text

from journal_builders import JOINED, array_of, batches_of, read_tables, submitted
from tenfold.compose.live_journal import LiveJournal
from tenfold.fleet.fleet import Fleet
from tenfold.journal import read
from tenfold.journal.append import JournalWriter, open_journal
from tenfold.journal.integrity.head_file import read_head
from tenfold.journal.snapshots import save_snapshot
from tenfold.journal.store import Store, open_store
from tenfold.journal.verify import verify
from tenfold.model.errors import TenfoldError
from tenfold.model.events import JobSubmitted
from tenfold.model.ids import TeamId
from tenfold.model.job.submission import SubmitKey
from tests.rigs.journal import export_older

NUMBERS = count(1)
TRIES = int(os.environ.get("TENFOLD_DAMAGE_TRIES", "30"))
"""Random damages of each kind; more in a soak."""
KILLS = int(os.environ.get("TENFOLD_DAMAGE_KILLS", "3"))
WRITES_UNTIL_KILLED = """
import sys
from pathlib import Path
from tenfold.compose.live_journal import LiveJournal
from tenfold.model.events import JobSubmitted
from tenfold.model.units import Millis
from tenfold.testing.builders import job

journal = LiveJournal(sys.argv[1], "child", 0, head=Path(sys.argv[2]))
first = journal.restore().next_number
while True:
    numbers = range(first, first + 3)
    journal.append([JobSubmitted(Millis(n), job(n, 1)) for n in numbers])
    first += 3
    print(first, flush=True)
"""

SHIFT_DOWN = [f"UPDATE events SET seq = {seq - 1} WHERE seq = {seq}" for seq in range(7, 15)]
SHIFT_UP = [f"UPDATE events SET seq = {seq + 1} WHERE seq = {seq}" for seq in range(14, 5, -1)]
COPIED = "INSERT INTO events SELECT 6, at_ms, kind, replace(body, 'job-3', 'job-77'), chain, shared"
SWAP = "SELECT {} FROM events AS other WHERE other.seq = 13 - events.seq"

DAMAGE: dict[str, tuple[int, list[str]]] = {
    "a changed command": (
        6,
        ["UPDATE events SET body = replace(body, '\"true\"', '\"trve\"') WHERE seq = 6"],
    ),
    "a changed time": (6, ["UPDATE events SET at_ms = at_ms + 1 WHERE seq = 6"]),
    "a changed kind": (6, ["UPDATE events SET kind = 'JobEnded' WHERE seq = 6"]),
    "a byte moved from one column to the next": (
        6,
        ["UPDATE events SET kind = 'JobSubmitte', body = 'd' || body WHERE seq = 6"],
    ),
    "a changed digest": (
        6,
        ["UPDATE events SET chain = (SELECT chain FROM events WHERE seq = 5) WHERE seq = 6"],
    ),
    "a removed digest": (6, ["UPDATE events SET chain = NULL WHERE seq = 6"]),
    "all digests removed": (1, ["UPDATE events SET chain = NULL"]),
    "a removed event": (5, ["DELETE FROM events WHERE seq = 6"]),
    "a removed event and new numbers": (6, ["DELETE FROM events WHERE seq = 6", *SHIFT_DOWN]),
    "an inserted event": (6, [*SHIFT_UP, f"{COPIED} FROM events WHERE seq = 5"]),
    "an appended event": (
        15,
        [
            "INSERT INTO events SELECT 15, at_ms, kind, replace(body, 'job-12', 'job-13'), chain, "
            "shared FROM events WHERE seq = 14"
        ],
    ),
    "two events in the wrong order": (
        6,
        [
            "UPDATE events SET seq = -6 WHERE seq = 6",
            "UPDATE events SET seq = 6 WHERE seq = 7",
            "UPDATE events SET seq = 7 WHERE seq = -6",
        ],
    ),
    "swapped texts": (6, [f"UPDATE events SET body = ({SWAP.format('body')}) WHERE seq IN (6, 7)"]),
    "no last events": (11, ["DELETE FROM events WHERE seq > 11"]),
    "no last events nor their jobs": (
        11,
        ["DELETE FROM events WHERE seq > 11", "DELETE FROM jobs WHERE seq > 11"],
    ),
    "no last events, and a head that fits": (
        11,
        [
            "DELETE FROM events WHERE seq > 11",
            "DELETE FROM jobs WHERE seq > 11",
            "UPDATE chain SET last_seq = 11, tables = NULL, "
            "head = (SELECT chain FROM events WHERE seq = 11)",
        ],
    ),
    "no events at all": (0, ["DELETE FROM events", "DELETE FROM jobs", "DELETE FROM nodes"]),
    "no row of the chain": (0, ["DELETE FROM chain"]),
    "another id of the journal": (1, ["UPDATE chain SET journal = '" + "0" * 32 + "'"]),
}
"""By kind: the event that is named, and the statements. Events 1 and 2 are nodes, 3 to 14 jobs."""

DAMAGED_TEXTS: dict[str, tuple[str, list[str]]] = {
    "a changed command": (
        "event 8 ",
        ["UPDATE shared_texts SET body = replace(body, '\"true\"', '\"trve\"') WHERE seq = 8"],
    ),
    "a removed text": ("event 8 ", ["DELETE FROM shared_texts WHERE seq = 8"]),
    "one line more": ("event 8 ", ["UPDATE shared_texts SET body = body || '\n' WHERE seq = 8"]),
    "the text of another array": (
        "event 8 ",
        ["UPDATE shared_texts SET body = (SELECT body FROM shared_texts WHERE seq = 3)"],
    ),
    "a changed row": ("event 9 ", ["UPDATE events SET body = replace(body, '7', '8') WHERE seq=9"]),
    "a row of another text": ("event 9 ", ["UPDATE events SET shared = 3 WHERE seq = 9"]),
    "a row without its text": ("event 9 ", ["UPDATE events SET shared = NULL WHERE seq = 9"]),
    "a text that no event has": ("text 99", ["INSERT INTO shared_texts VALUES (99, 'a')"]),
}
"""By kind: what is named, and the statements. Events 3 to 7 are of one array, 8 to 12 of another"""

CHANGED_TABLES = [
    "UPDATE jobs SET state = 'succeeded' WHERE id = 'job-3'",
    "UPDATE jobs SET sentence = 'said by nobody' WHERE id = 'job-3'",
    "UPDATE jobs SET id = 'job-99' WHERE id = 'job-3'",
    "DELETE FROM jobs WHERE id = 'job-3'",
    "DELETE FROM jobs",
    "UPDATE nodes SET state = 'cordoned'",
    "DELETE FROM nodes",
    "INSERT INTO attempts (job_id, number, ordered_ms, nodes, reason) "
    "VALUES ('job-3', 1, 0, '[]', 'lost')",
    "UPDATE submit_keys SET number = 99",
    "DELETE FROM submit_keys",
]


class Damage:
    """The tests that each database inherits; it gives `address`, an empty one."""

    @pytest.fixture
    def head(self, tmp_path: Path) -> Path:
        return tmp_path / "journal.head"

    @pytest.fixture
    def store(self, address: str, head: Path) -> Iterator[Store]:
        """A journal of 14 events, whose control plane was stopped."""
        journal = live(address, head)
        journal.append(JOINED)
        for number in range(1, 13):
            key = SubmitKey(TeamId("red"), f"key-{number}", "00")
            one = submitted(number)
            journal.append([JobSubmitted(one.at_ms, one.job, one.run_spec, key)])
        journal.close()
        with closing(open_store(address)) as store:
            yield store

    def test_a_whole_journal_is_called_whole(self, store: Store, address: str, head: Path):
        told = verify(store, head)
        assert (told.findings, told.chained_from, told.head_file) == ((), 1, True)
        journal = live(address, head)
        assert journal.warnings == ()
        journal.close()

    @pytest.mark.parametrize("kind", DAMAGE)
    def test_damaged_events_are_found_and_the_first_one_is_named(
        self, store: Store, address: str, head: Path, kind: str
    ):
        named, statements = DAMAGE[kind]
        execute(store, *statements)
        told = verify(store, head)
        assert not told.is_valid
        assert "journal-" in told.findings[0].code
        if named:
            assert f"event {named}" in " ".join(one.message for one in told.findings[:2])
        with pytest.raises(TenfoldError) as caught:
            live(address, head)
        assert caught.value.code.startswith("journal-")

    @pytest.mark.parametrize("kind", DAMAGE)
    def test_damage_is_found_without_the_file_too_unless_the_head_was_changed(
        self, store: Store, kind: str
    ):
        execute(store, *DAMAGE[kind][1])
        assert verify(store).is_valid == (kind == "no last events, and a head that fits")

    @pytest.mark.parametrize("statement", CHANGED_TABLES)
    def test_changed_read_tables_are_reported_and_rebuilt_at_the_start(
        self, store: Store, address: str, head: Path, statement: str
    ):
        before, keys = read_tables(store), read.latest_keys(store, 100)
        execute(store, statement)
        codes = {one.code for one in verify(store, head).findings}
        assert codes == {"read-table-differs"}
        journal = live(address, head)
        assert [one.code for one in journal.warnings] == ["read-tables-rebuilt"]
        journal.close()
        assert (read_tables(store), read.latest_keys(store, 100)) == (before, keys)
        assert verify(store, head).findings == ()

    @pytest.mark.parametrize("kind", DAMAGED_TEXTS)
    def test_damage_to_what_an_array_shares_is_found_and_its_first_event_is_named(
        self, address: str, head: Path, kind: str
    ):
        journal = live(address, head)
        journal.append(JOINED)
        journal.append(array_of(5, 1))
        journal.append(array_of(5, 6))
        journal.close()
        with closing(open_store(address)) as store:
            assert verify(store, head).findings == ()
            with store.reading() as connection:
                texts = connection.execute(text("SELECT seq FROM shared_texts")).scalars().all()
            assert [*texts] == [3, 8]
            named, statements = DAMAGED_TEXTS[kind]
            execute(store, *statements)
            told = verify(store, head)
            assert told.findings[0].code == "journal-damaged"
            assert named in told.findings[0].message
        if named.startswith("event"):
            with pytest.raises(TenfoldError, match=named) as caught:
                live(address, head)
            assert caught.value.code == "journal-damaged"

    def test_damage_before_a_snapshot_is_left_to_verify(
        self, address: str, head: Path, store: Store
    ):
        writer = open_journal(store, "test", 1)
        fleet = Fleet()
        fleet.apply_all([event for _, event in read.events_after(store)])
        save_snapshot(writer, fleet)
        writer.append([submitted(20), submitted(21)])
        execute(store, *DAMAGE["a changed command"][1])
        live(address, head).close()
        assert "event 6 " in verify(store, head).findings[0].message
        execute(store, "UPDATE events SET body = replace(body, '\"true\"', '\"no\"') WHERE seq=16")
        with pytest.raises(TenfoldError, match="event 16"):
            live(address, head)

    def test_the_chain_goes_on_after_compaction(self, address: str, head: Path, tmp_path: Path):
        store, writer = compacted(address, tmp_path)
        assert verify(store).findings == ()
        writer.append([submitted(900), submitted(901)])
        assert verify(store).findings == ()
        exported, kept = export_of(store)
        gone = max(set(range(1, exported)) - {*kept})
        assert kept, "the run left open jobs behind"
        for seq in (kept[0], kept[-1]):
            for statement in (
                f"UPDATE events SET at_ms = at_ms + 1 WHERE seq = {seq}",
                f"DELETE FROM events WHERE seq = {seq}",
                f"UPDATE events SET seq = {gone} WHERE seq = {seq}",
            ):
                with undone(store, statement):
                    assert "journal-damaged" in codes(store), statement
        for statement in (
            f"DELETE FROM events WHERE seq = {exported + 1}",
            f"UPDATE events SET at_ms = at_ms + 1 WHERE seq = {exported + 1}",
            "UPDATE exports SET chain = (SELECT chain FROM events LIMIT 1)",
            "UPDATE exports SET kept = (SELECT chain FROM events WHERE seq = 1)",
            f"DELETE FROM exports WHERE last_seq = {exported}",
        ):
            with undone(store, statement):
                assert codes(store), statement
        with closing(store), undone(store, "UPDATE exports SET bundle = 'x'"):
            assert {*codes(store)} == {"bundle-damaged"}

    def test_a_damaged_event_is_not_moved_to_a_bundle(self, address: str, tmp_path: Path):
        with closing(open_store(address)) as store:
            writer, fleet = open_journal(store, "test", 0), Fleet()
            for batch in batches_of(9):
                writer.append(batch)
                fleet.apply_all(batch)
            save_snapshot(writer, fleet)
            execute(store, "UPDATE events SET at_ms = at_ms + 1 WHERE seq = 4")
            with pytest.raises(TenfoldError, match="event 4 "):
                export_older(writer, tmp_path)
            assert list(tmp_path.glob("*.gz")) == []

    def test_a_journal_from_before_the_chain_is_covered_from_its_next_event(
        self, store: Store, address: str, head: Path
    ):
        execute(
            store,
            "UPDATE events SET chain = NULL",
            "UPDATE chain SET first_seq = 15, tables = NULL",
        )
        with store.writing() as connection:
            start = bytes.fromhex(
                connection.execute(text("SELECT journal FROM chain")).scalar_one()
            )
            connection.execute(text("UPDATE chain SET head = :start"), {"start": start})
        head.unlink()
        journal = live(address, head)
        journal.append([submitted(30), submitted(31)])
        journal.close()
        told = verify(store, head)
        assert (told.findings, told.chained_from) == ((), 15)
        execute(store, "UPDATE events SET at_ms = at_ms + 1 WHERE seq = 15")
        assert "event 15 " in verify(store, head).findings[0].message

    def test_a_head_file_of_another_journal_is_refused(
        self, store: Store, address: str, head: Path
    ):
        other = LiveJournal(str(head.with_name("other.db")), "test", 0, head=head)
        with pytest.raises(TenfoldError) as caught:
            other.restore()
        assert caught.value.code == "journal-replaced"
        assert "remove" in caught.value.hint
        other.close()

    def test_half_a_head_file_is_enough_and_none_is_a_warning(
        self, store: Store, address: str, head: Path
    ):
        content = head.read_bytes()
        for half in (b"x" * 128 + content[128:], content[:128] + b"x" * 128):
            head.write_bytes(half)
            found = read_head(head)
            assert found is not None
            assert found.seq in (13, 14)
        for broken in (b"", b"\0" * 256, content[:50]):
            head.write_bytes(broken)
            assert [one.code for one in verify(store, head).findings] == ["head-damaged"]
            journal = live(address, head)
            assert [one.code for one in journal.warnings] == ["head-damaged"]
            journal.close()
            assert verify(store, head).findings == ()

    def test_random_damage_to_rows_is_found(self, store: Store, head: Path):
        """Change a random column of a random row in one of many ways, and take it back."""
        for seed in range(TRIES):
            dice = Random(f"rows-{seed}")
            statement = random_statement(dice)
            before = dump(store)
            with undone(store, statement):
                same = dump(store) == before
                assert verify(store, head).is_valid == same, f"seed {seed}: {statement}"

    def test_a_writer_killed_at_any_moment_never_looks_damaged(self, address: str, head: Path):
        words = [sys.executable, "-c", WRITES_UNTIL_KILLED, address, str(head)]
        dice = Random(5)
        for _ in range(KILLS):
            with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
                assert child.stdout is not None
                for _ in range(dice.randrange(1, 60)):
                    assert child.stdout.readline()
                child.kill()
            with closing(open_store(address)) as store:
                assert verify(store, head).findings == ()
        live(address, head).close()


def live(address: str, head: Path) -> LiveJournal:
    """Start as a control plane does."""
    journal = LiveJournal(address, "test", 0, head=head)
    try:
        journal.restore()
    except BaseException:
        journal.close()
        raise
    return journal


def execute(store: Store, *statements: str) -> None:
    with store.writing() as connection:
        for statement in statements:
            connection.execute(text(statement))


class undone:
    """Damage a journal for a while."""

    def __init__(self, store: Store, statement: str) -> None:
        self._store = store
        self._statement = statement
        self._before: dict[str, list[dict[str, Any]]] = {}

    def __enter__(self) -> None:
        with self._store.reading() as connection:
            for table in ("events", "exports"):
                rows = connection.execute(text(f"SELECT * FROM {table}")).mappings()
                self._before[table] = [dict(row) for row in rows]
        execute(self._store, self._statement)

    def __exit__(self, *_: object) -> None:
        with self._store.writing() as connection:
            for table, rows in self._before.items():
                connection.execute(text(f"DELETE FROM {table}"))
                for row in rows:
                    names = ", ".join(row)
                    marks = ", ".join(f":{name}" for name in row)
                    connection.execute(text(f"INSERT INTO {table} ({names}) VALUES ({marks})"), row)


def dump(store: Store) -> list[tuple[object, ...]]:
    """Return the events as they are stored, with the types of their columns."""
    columns = "seq, at_ms, kind, body, chain"
    if store.dialect == "sqlite":
        columns = "seq, at_ms, CAST(kind AS BLOB), CAST(body AS BLOB), CAST(chain AS BLOB), "
        columns += "typeof(at_ms), typeof(kind), typeof(body), typeof(chain)"
    with store.reading() as connection:
        rows = connection.execute(text(f"SELECT {columns} FROM events ORDER BY seq"))
        return [tuple(row) for row in rows]


def judged(trial: Path, head: Path, before: list[tuple[object, ...]]) -> tuple[bool, bool]:
    """Return whether a damaged file is called whole, and whether its events are the same."""
    for name in ("-wal", "-shm"):
        trial.with_name(trial.name + name).unlink(missing_ok=True)
    try:
        with closing(open_store(trial)) as store:
            is_valid = verify(store, head).is_valid
    except TenfoldError:
        is_valid = False
    try:
        with closing(open_store(trial)) as store:
            same = dump(store) == before
    except TenfoldError:
        same = False
    return is_valid, same


def pages_of_events(plain: sqlite3.Connection) -> list[int]:
    """Return the pages that hold the events, by their numbers from 0."""
    try:
        rows = plain.execute("SELECT pageno FROM dbstat WHERE name = 'events'").fetchall()
    except sqlite3.OperationalError:
        root = "SELECT rootpage FROM sqlite_master WHERE name = 'events'"
        rows = plain.execute(root).fetchall()
    return [row[0] - 1 for row in rows]


def random_statement(dice: Random) -> str:
    seq = dice.randrange(1, 15)
    other = dice.choice([one for one in range(1, 15) if one != seq])
    place = dice.randrange(1, 200)
    return dice.choice(
        [
            f"UPDATE events SET at_ms = at_ms + {dice.choice((-1, 1, 1 << 40))} WHERE seq = {seq}",
            f"UPDATE events SET kind = substr(kind, {dice.randrange(1, 4)}) WHERE seq = {seq}",
            f"UPDATE events SET body = substr(body, 1, {place}) || 'x' || substr(body, "
            f"{place + dice.randrange(3)}) WHERE seq = {seq}",
            f"UPDATE events SET body = (SELECT body FROM events AS o WHERE o.seq = {other}) "
            f"WHERE seq = {seq}",
            f"UPDATE events SET chain = (SELECT chain FROM events AS o WHERE o.seq = {other}) "
            f"WHERE seq = {seq}",
            f"UPDATE events SET seq = {dice.randrange(15, 99)} WHERE seq = {seq}",
            f"DELETE FROM events WHERE seq = {seq}",
            f"DELETE FROM events WHERE seq >= {seq}",
            f"UPDATE events SET chain = NULL WHERE seq >= {seq}",
        ]
    )


def compacted(address: str, folder: Path) -> tuple[Store, JournalWriter]:
    """Make a journal whose older events moved out in two parts, except those of open jobs."""
    store = open_store(address)
    writer, fleet = open_journal(store, "test", 0), Fleet()
    batches = batches_of(9, jobs=30)
    for number, batch in enumerate(batches[: len(batches) * 2 // 3]):
        writer.append(batch)
        fleet.apply_all(batch)
        if number in (len(batches) // 3, len(batches) // 2):
            save_snapshot(writer, fleet)
            assert export_older(writer, folder) is not None
    return store, writer


def export_of(store: Store) -> tuple[int, list[int]]:
    with store.reading() as connection:
        last = connection.execute(text("SELECT max(last_seq) FROM exports")).scalar_one()
        kept = connection.execute(text(f"SELECT seq FROM events WHERE seq <= {last} ORDER BY seq"))
        return last, list(kept.scalars())


def codes(store: Store) -> list[str]:
    return [one.code for one in verify(store).findings]


def cloned(server: str, address: str, replica: str) -> str:
    name = make_url(address).database
    url = make_url(server).set(drivername="postgresql+psycopg")
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f'CREATE DATABASE "{replica}" TEMPLATE "{name}"'))
    engine.dispose()
    return url.set(database=replica).render_as_string(hide_password=False)
