"""A server whose journal is not its own, waits or is read in parts, and a clock that is ahead."""

import sqlite3
from pathlib import Path
from threading import Event
from time import monotonic

import pytest
from litestar import Litestar
from litestar.testing import TestClient
from sqlalchemy import select

from tenfold.clock import steady
from tenfold.clock.steady import SteadyClock
from tenfold.journal import read, usable
from tenfold.journal.append import open_journal
from tenfold.journal.store import open_store
from tenfold.journal.tables import EVENTS
from tenfold.journal.usable import check_usable
from tenfold.model.errors import InputError, Unreachable
from tenfold.model.events import NodeCordoned
from tenfold.model.ids import NodeId
from tenfold.model.reason import Reason
from tenfold.model.units import Millis
from tenfold.report.reasons.render import render
from tenfold.server.background.background import BackgroundTask, stop_all
from tenfold.server.runtime.runtime import Runtime

Client = TestClient[Litestar]


class Endless(BackgroundTask):
    """Never comes to an end by itself."""

    def __init__(self, end_s: float) -> None:
        super().__init__("the endless one", end_s)
        self.let_go = Event()
        self.is_over = False

    def work(self) -> None:
        self.let_go.wait()
        self.is_over = True


def test_what_does_not_end_is_left_behind_and_said(caplog: pytest.LogCaptureFixture):
    those = [Endless(0.0), Endless(0.0)]
    for one in those:
        one.start()
    stop_all(those)
    assert not any(one.is_over for one in those)
    assert (
        caplog.messages.count(
            "background task `the endless one` did not stop within 0 s; abandoning it"
        )
        == 2
    )
    for one in those:
        one.let_go.set()


def test_what_was_never_started_is_stopped_all_the_same():
    Endless(0.0).stop()


def test_the_file_of_another_program_is_left_alone(tmp_path: Path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE theirs (one)")
    with pytest.raises(InputError) as raised:
        open_store(path)
    assert raised.value.code == "not-a-journal"
    with sqlite3.connect(path) as other:
        names = other.execute("SELECT name FROM sqlite_master").fetchall()
    assert names == [("theirs",)]


def test_a_journal_that_another_holds_is_said_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(usable, "LOCK_MS", 0)
    store = open_store(tmp_path / "journal.db")
    check_usable(store)
    other = sqlite3.connect(tmp_path / "journal.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unreachable) as raised:
        check_usable(store)
    assert raised.value.code == "journal-locked"
    other.execute("ROLLBACK")
    other.close()
    check_usable(store)
    store.close()


def test_pages_of_large_events_are_short_and_miss_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = open_store(tmp_path / "journal.db")
    writer = open_journal(store, "test", 1)
    said = Reason("large", sentence="x" * 1_000)
    facts = [NodeCordoned(Millis(at), NodeId(f"n{at}"), cause=said) for at in range(50)]
    writer.append(facts)
    whole = list(read.event_pages(store))
    monkeypatch.setattr(read, "PAGE_CHARACTERS", 5_000)
    parts = list(read.event_pages(store))
    assert len(whole) == 1
    assert len(parts) > 5
    assert [one for page in parts for one in page] == whole[0]
    with store.reading() as connection:
        size = sum(len(body) for body in connection.execute(select(EVENTS.c.body)).scalars())
    assert size > 50_000
    store.close()


def test_a_clock_that_was_ahead_says_by_how_much(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(steady.time, "time_ns", lambda: 5_000_000_000)
    monkeypatch.setattr(steady, "_passed_ms", lambda: 7)
    assert SteadyClock(Millis(65_000)).ahead_ms() == 60_000
    assert SteadyClock(Millis(0)).ahead_ms() == 0


def test_a_server_tells_of_a_clock_that_is_ahead(
    runtime: Runtime, caplog: pytest.LogCaptureFixture
):
    runtime.wait_until_ready(30.0)
    ahead = runtime._clock_from(Millis(runtime.control.now_ms() + 3_600_000))
    assert runtime.clock_ahead_ms() == pytest.approx(ahead.ahead_ms(), abs=60_000)
    assert any("behind the last event" in one for one in caplog.messages)
    assert b"tenfold_clock_ahead_seconds 3" in runtime.meters.text()


def test_readiness_tells_of_a_write_that_waits_and_of_its_end(runtime: Runtime, member: Client):
    runtime.wait_until_ready(30.0)
    assert runtime.late() is None
    runtime.store.writes_since_s = monotonic() - 10
    told = runtime.late()
    assert told is not None
    assert (told.code, render(told)) == (
        "journal-waits",
        "the journal has not responded for 10 s",
    )
    answer = member.get("/readyz")
    assert (answer.status_code, answer.json()["code"]) == (503, "journal-waits")
    runtime.store.writes_since_s = None
    assert member.get("/readyz").status_code == 200
