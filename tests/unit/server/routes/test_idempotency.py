"""A request that comes again under its key admits nothing twice, whatever happened in between."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from litestar import Litestar
from litestar.testing import TestClient
from msgspec.structs import replace

from journal_builders import submitted as parse_submissions
from patience import HANG_S
from tenfold.compose import live_journal
from tenfold.journal import read_tables
from tenfold.journal.append import open_journal
from tenfold.journal.integrity.rebuild import rebuild_read_tables
from tenfold.journal.read import find_key, jobs, latest_keys
from tenfold.journal.store import Store, open_store
from tenfold.live import keys
from tenfold.live.keys import RecentKeys
from tenfold.model.events import Event, JobSubmitted
from tenfold.model.ids import TeamId
from tenfold.model.job.submission import SubmitKey
from tenfold.model.reason import Reason
from tenfold.model.units import HOUR, Millis
from tenfold.server.app import make_app
from tenfold.server.auth.tokens import Role
from tenfold.server.runtime.runtime import Runtime, ServerDeps
from unit.server.conftest import NODES
from unit.server.fake_executor import FakeExecutor, FakeProcesses

Client = TestClient[Litestar]
JOBS = "/api/v1/jobs"
ASK = {"command": ["true"], "name": "once"}


def under(key: str, secret: str = "") -> dict[str, str]:
    return {"Idempotency-Key": key, **({"Authorization": f"Bearer {secret}"} if secret else {})}


def test_the_same_key_gives_the_same_job_and_another_key_another(member: Client):
    first = member.post(JOBS, json=ASK, headers=under("k1"))
    again = member.post(
        JOBS, content=b'{ "name": "once", "command": ["true"] }', headers=under("k1")
    )
    other = member.post(JOBS, json=ASK, headers=under("k2"))
    assert [one.status_code for one in (first, again, other)] == [201, 200, 201]
    assert first.json() == again.json()
    assert other.json()["id"] == "once-2"
    assert len(member.get(JOBS).json()["jobs"]) == 2


def test_a_batch_with_an_array_comes_back_with_all_its_names(member: Client):
    batch = {"jobs": [ASK, {**ASK, "array": 3}, {**ASK, "name": "last"}]}
    first = member.post(JOBS, json=batch, headers=under("k"))
    again = member.post(JOBS, json=batch, headers=under("k"))
    assert first.json() == again.json()
    assert [one["id"] for one in again.json()["jobs"]] == ["once-1", "once-2", "last-5"]


def test_something_else_under_the_same_key_is_refused(member: Client):
    member.post(JOBS, json=ASK, headers=under("k1"))
    refused = member.post(JOBS, json={**ASK, "nodes": 1}, headers=under("k1"))
    assert refused.status_code == 409
    assert refused.json()["code"] == "key-taken"
    assert "`k1`" in refused.json()["detail"]
    assert len(member.get(JOBS).json()["jobs"]) == 1


def test_a_key_belongs_to_a_team(client: Client, token: Callable[..., str]):
    made = [
        client.post(JOBS, json=ASK, headers=under("k", token("member", team))).json()["id"]
        for team in ("red", "blue", "red")
    ]
    assert made == ["once-1", "once-2", "once-1"]


@pytest.mark.parametrize("key", ["", "two words", "x" * 201])
def test_a_key_that_cannot_be_one_is_named(member: Client, key: str):
    refused = member.post(JOBS, json=ASK, headers=under(key))
    assert refused.status_code in (400, 422)
    assert refused.json()["field"] == "Idempotency-Key"


def test_many_at_once_under_one_key_are_one_job(app: Litestar, token: Callable[..., str]):
    secret = token()
    with TestClient(app) as client, ThreadPoolExecutor(8) as pool:
        sent = [
            pool.submit(client.post, JOBS, json=ASK, headers=under("k", secret)) for _ in range(16)
        ]
        answers = [one.result() for one in sent]
        assert {one.json()["id"] for one in answers} == {"once-1"}
        assert [one.status_code for one in answers].count(201) == 1
        assert len(client.get(JOBS, headers=under("-", secret)).json()["jobs"]) == 1


def served(path: Path, processes: FakeProcesses) -> Runtime:
    made = Runtime(
        ServerDeps(
            journal=str(path),
            executor=lambda: FakeExecutor(processes),
            logs=processes,
            wait_s=HANG_S,
        )
    )
    made.start(NODES)
    return made


def test_an_answer_that_was_lost_after_the_commit_is_given_by_the_next_control_plane(
    tmp_path: Path, processes: FakeProcesses, monkeypatch: pytest.MonkeyPatch
):
    path, append = tmp_path / "journal.db", live_journal.LiveJournal.append

    def dying(self: live_journal.LiveJournal, events: Sequence[Event]) -> None:
        append(self, events)
        if any(isinstance(event, JobSubmitted) for event in events):
            raise OSError("killed between the disk and the answer")

    first = served(path, processes)
    secret, _ = first.control.tokens.create(name="m", team="red", role=Role.member, days=1)
    with TestClient(make_app(first.control)) as client, monkeypatch.context() as patch:
        patch.setattr(live_journal.LiveJournal, "append", dying)
        lost = client.post(JOBS, json=ASK, headers=under("k", secret))
        assert (lost.status_code, lost.json()["code"]) == (503, "not-known")
    first.stop()
    second = served(path, processes)
    with TestClient(make_app(second.control)) as client:
        again = client.post(JOBS, json=ASK, headers=under("k", secret))
        assert (again.status_code, again.json()["id"]) == (200, "once-1")
        assert [row.id for row in jobs(second.store)] == ["once-1"]
    second.stop()


def key(name: str, digest: str = "d") -> SubmitKey:
    return SubmitKey(TeamId("red"), name, digest)


def submitted(number: int, at_ms: int, name: str | None) -> JobSubmitted:
    fact = parse_submissions(number)
    return replace(fact, at_ms=Millis(at_ms), key=None if name is None else key(name))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "journal.db")


def test_keys_are_kept_for_a_day_and_rebuilt_from_the_events(store: Store):
    writer = open_journal(store, "test", 0)
    hours = (0, 1, 24, 26)
    for number, hour in enumerate(hours, start=1):
        writer.append([submitted(number, hour * HOUR, f"k{hour}")])
    kept = latest_keys(store, 10)
    assert [(row.key, row.number) for row in kept] == [("k1", 2), ("k24", 3), ("k26", 4)]
    assert find_key(store, "red", "k0") is None
    assert find_key(store, "blue", "k1") is None
    rebuild_read_tables(writer)
    assert latest_keys(store, 10) == kept
    assert read_tables.KEY_KEPT_MS >= 24 * HOUR
    store.close()


def test_a_fact_without_a_key_is_written_as_it_always_was():
    told = msgspec.to_builtins(submitted(1, 0, None))
    assert list(told) == ["type", "at_ms", "job", "work"]


def test_the_latest_keys_are_in_memory_and_the_oldest_go(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(keys, "KEYS_KEPT_MAX", 2)
    known = RecentKeys([(key("a"), 1), (key("b"), 2), (key("c"), 3)])
    assert [known.find(key(name)) for name in "abc"] == [None, 2, 3]
    assert isinstance(known.find(key("b", "other")), Reason)
