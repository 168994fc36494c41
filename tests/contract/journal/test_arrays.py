"""Arrays and keys of requests in SQLite and in a PostgreSQL that really runs: the same answers."""

import asyncio
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import select

from engines.postgres import new_database, running_postgres
from journal_builders import JOINED, array_of, submitted
from tenfold.engine.digest import fleet_digest
from tenfold.files.records.replay_bundle import read_bundle
from tenfold.fleet.fleet import Fleet
from tenfold.journal import arrays, read
from tenfold.journal.append import open_journal
from tenfold.journal.integrity.rebuild import rebuild_read_tables
from tenfold.journal.read import find_key, latest_keys
from tenfold.journal.record import record_of
from tenfold.journal.retention import export_events
from tenfold.journal.snapshots import restore, save_snapshot
from tenfold.journal.store import Store, open_store
from tenfold.journal.tables import SHARED_TEXTS
from tenfold.journal.verify import verify
from tenfold.model.events import Event, JobCancelled, JobSubmitted, job_of
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.submission import SubmitKey
from tenfold.model.units import HOUR, Millis
from tenfold.server.auth.tokens import Role, Token
from tenfold.server.event_pages import PAGE_CHARACTERS, EventPages, page_range


class ArraysAndKeys:
    """What both must do."""

    def test_members_are_those_of_one_array_and_no_other(self, address: str):
        store = open_store(address)
        writer = open_journal(store, "test", 0)
        names = [f"a-1[{one}]" for one in range(12)]
        names += ["a-1", "a-10[0]", "a-1-x[0]", "A-1[0]", "a[1]", "a-2[0]", "a-1[12]"]
        facts: list[Event] = [named(name, number) for number, name in enumerate(names, start=1)]
        writer.append([*facts, JobCancelled(Millis(99), JobId("a-1[3]"))])
        found = [row.id for row in arrays.members(store, "a-1")]
        assert found == [f"a-1[{one}]" for one in range(13)]
        assert len(arrays.members(store, "a-1", live=True)) == 12
        whole = arrays.array(store, "a-1")
        assert whole is not None
        assert (whole.count, whole.state) == (13, "pending")
        assert whole.states == {"pending": 12, "cancelled": 1}
        assert arrays.array(store, "a-3") is None
        listed = read.jobs(store, within=read.JobFilter(array="a-1"), limit=2)
        assert [row.id for row in listed] == ["a-1[12]", "a-1[11]"]
        assert read.jobs(store, within=read.JobFilter(since_ms=10**12)) == []
        store.close()

    def test_a_key_is_found_by_its_team_for_a_day(self, address: str):
        store = open_store(address)
        writer = open_journal(store, "test", 0)
        for number, hour in enumerate((0, 1, 26), start=1):
            writer.append([keyed(number, hour)])
        kept = latest_keys(store, 10)
        assert [(row.key, row.number) for row in kept] == [("k1", 2), ("k26", 3)]
        assert find_key(store, "red", "k26") == kept[-1]
        assert find_key(store, "blue", "k26") is None
        writer.append([replace(keyed(4, 27), key=SubmitKey(TeamId("red"), "k26", "other"))])
        again = find_key(store, "red", "k26")
        assert again is not None
        assert (again.digest, again.number) == ("other", 4)
        before = latest_keys(store, 10)
        rebuild_read_tables(writer)
        assert latest_keys(store, 10) == before
        store.close()

    def test_what_members_share_is_stored_once_and_read_by_everyone(self, address: str):
        store = open_store(address)
        writer = open_journal(store, "test", 0)
        events = [*JOINED, *array_of(600)]
        writer.append(events)
        assert texts_of(store) == [3]
        assert [event for _, event in read.events_after(store)] == events
        assert read.submission(store, "train-1[599]") == events[-1]
        assert [event for _, event in read.open_submissions(store)] == events[2:]
        assert record_of(store).bundle.lines == events
        fleet = Fleet()
        fleet.apply_all(events)
        save_snapshot(writer, fleet)
        writer.append(array_of(600, 1_000))
        assert fleet_digest(restore(store).fleet) == fleet_digest(fleet_of(store))
        rebuild_read_tables(writer)
        assert verify(store).findings == ()
        store.close()

    def test_a_page_of_a_stream_ends_at_the_size_of_what_is_sent(self, address: str):
        store = open_store(address)
        open_journal(store, "test", 0).append([*JOINED, *array_of(600)])
        admin = Token(
            id="t", name="root", team="ops", role=Role.admin, created_ms=0, expires_ms=9**9
        )
        pages, seq = EventPages(store), 0
        while seq < 602:
            found = page_range(store, seq, 602)
            sent = asyncio.run(pages.page(admin, seq, found.last))
            assert found.characters <= PAGE_CHARACTERS
            assert len(sent) <= 2 * PAGE_CHARACTERS
            assert sent.count(b"x" * 300) == found.last - max(seq, 2)
            seq = found.last
        store.close()

    def test_a_shared_text_stays_while_an_event_needs_it(self, address: str, tmp_path: Path):
        store = open_store(address)
        writer = open_journal(store, "test", 0)
        events = array_of(10)
        names = [job for event in events if (job := job_of(event)) is not None]
        writer.append([*JOINED, *events])
        writer.append([JobCancelled(Millis(2), name) for name in names[:8]])
        kept = export_events(writer, tmp_path, writer.seq)
        assert kept.kept == 4
        writer.append(array_of(3, 50))
        assert texts_of(store) == [3, 21]
        assert verify(store).findings == ()
        submissions = [event for _, event in read.open_submissions(store)]
        assert submissions == [*events[8:], *array_of(3, 50)]
        writer.append([JobCancelled(Millis(60), name) for name in names[8:]])
        export_events(writer, tmp_path, writer.seq)
        assert texts_of(store) == [21]
        assert verify(store).findings == ()
        bundles = sorted(tmp_path.glob("events-*"))
        moved = [line for one in bundles for line in read_bundle(one).lines]
        assert [line for line in moved if line in events] == events
        store.close()


def texts_of(store: Store) -> list[int]:
    with store.reading() as connection:
        return [
            *connection.execute(select(SHARED_TEXTS.c.seq).order_by(SHARED_TEXTS.c.seq)).scalars()
        ]


def fleet_of(store: Store) -> Fleet:
    fleet = Fleet()
    fleet.apply_all([event for _, event in read.events_after(store)])
    return fleet


def named(name: str, number: int) -> JobSubmitted:
    fact = submitted(number)
    return replace(fact, job=replace(fact.job, id=JobId(name)))


def keyed(number: int, hour: int) -> JobSubmitted:
    key = SubmitKey(TeamId("red"), f"k{hour}", "digest")
    return replace(submitted(number), at_ms=Millis(hour * HOUR), key=key)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_postgres() as address:
        yield address


class TestSqlite(ArraysAndKeys):
    @pytest.fixture
    def address(self, tmp_path: Path) -> str:
        return str(tmp_path / "journal.db")


@pytest.mark.engine
class TestPostgres(ArraysAndKeys):
    @pytest.fixture
    def address(self, server: str, request: pytest.FixtureRequest) -> str:
        return new_database(server, f"arrays{zlib.crc32(request.node.name.encode())}")
