"""Arrays and keys of requests in SQLite and in a PostgreSQL that really runs: the same answers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from engines.postgres import new_database, running_postgres
from journal_builders import submitted
from tenfold.journal import arrays, read
from tenfold.journal.append import open_journal
from tenfold.journal.integrity.rebuild import rebuild_read_tables
from tenfold.journal.read import find_key, latest_keys
from tenfold.journal.store import open_store
from tenfold.model.events import Event, JobCancelled, JobSubmitted
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.submission import SubmitKey
from tenfold.model.units import HOUR, Millis


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
        return new_database(server, "arrays" if "members" in request.node.name else "keys")
