"""What the events of an array share is stored once, and read as if it were not."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from sqlalchemy import text

from journal_builders import JOINED, array_of, submitted
from tenfold.journal import read
from tenfold.journal.append import JournalWriter, open_journal
from tenfold.journal.store import open_store
from tenfold.journal.verify import verify
from tenfold.model.actions import RefuseJob
from tenfold.model.events import ActionOrdered, Event, JobRefused, JobSubmitted, job_of
from tenfold.model.ids import TeamId
from tenfold.model.job.submission import SubmitKey
from tenfold.model.reason import Reason, Text
from tenfold.model.units import Millis

LONG = Reason("node-broken", {"text": Text("x" * 2_000)})


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[JournalWriter]:
    store = open_store(tmp_path / "journal.db")
    yield open_journal(store, "test", 0)
    store.close()


def rows_of(writer: JournalWriter) -> list[tuple[str, int | None]]:
    with writer.store.reading() as connection:
        rows = connection.execute(text("SELECT body, shared FROM events ORDER BY seq")).all()
    return [(row[0], row[1]) for row in rows]


def texts_of(writer: JournalWriter) -> dict[int, str]:
    with writer.store.reading() as connection:
        rows = connection.execute(text("SELECT seq, body FROM shared_texts ORDER BY seq")).all()
    return {row[0]: row[1] for row in rows}


def events_of(writer: JournalWriter) -> list[Event]:
    return [event for _, event in read.events_after(writer.store)]


def refused(events: Sequence[Event]) -> list[Event]:
    """Return refusals of jobs, as they are ordered and carried out, one by one."""
    names = [name for event in events if (name := job_of(event)) is not None]
    return [
        event
        for name in names
        for event in (
            ActionOrdered(Millis(9), RefuseJob(name, (LONG,))),
            JobRefused(Millis(9), name, (LONG,)),
        )
    ]


def test_members_have_short_rows_and_one_text(writer: JournalWriter):
    events = array_of(50)
    writer.append([*JOINED, *events])
    rows, texts = rows_of(writer), texts_of(writer)
    assert list(texts) == [3]
    assert {shared for _, shared in rows[2:]} == {3}
    assert rows[3][0] == '"train-1[1]"\n2\n"1"'
    assert texts[3].count("x" * 300) == 1
    assert events_of(writer) == [*JOINED, *events]
    assert verify(writer.store).findings == ()


def test_the_text_of_a_row_is_the_event_byte_for_byte(writer: JournalWriter):
    events = array_of(3, command=('"id":"train-1[1]"', '\n"seq":1', '["TENFOLD_ARRAY_INDEX","1"]'))
    writer.append(events)
    assert [shared for _, shared in rows_of(writer)] == [1, 1, 1]
    pieces = texts_of(writer)[1].split("\n")
    for (own, _), event in zip(rows_of(writer), events, strict=True):
        values = [*own.split("\n"), ""]
        joined = "".join(a + b for a, b in zip(pieces, values, strict=True))
        assert joined == msgspec.json.encode(event).decode()


def test_refusals_of_members_share_their_reasons(writer: JournalWriter):
    events = array_of(20)
    writer.append(events)
    writer.append(refused(events))
    assert list(texts_of(writer)) == [1, 21, 22]
    assert sum(len(body) for body, _ in rows_of(writer)) < 60 * 40
    assert events_of(writer) == [*events, *refused(events)]
    assert verify(writer.store).findings == ()


def test_single_jobs_and_the_only_event_of_a_commit_are_stored_whole(writer: JournalWriter):
    events = [submitted(number) for number in range(1, 5)]
    writer.append(events)
    writer.append(array_of(1, 9))
    assert texts_of(writer) == {}
    assert {shared for _, shared in rows_of(writer)} == {None}


def test_a_first_member_with_an_idempotency_key_is_stored_whole(writer: JournalWriter):
    first, *others = array_of(5)
    assert isinstance(first, JobSubmitted)
    keyed: list[Event] = [replace(first, key=SubmitKey(TeamId("red"), "k", "d")), *others]
    writer.append(keyed)
    assert [shared for _, shared in rows_of(writer)] == [None, 2, 2, 2, 2]
    assert events_of(writer) == keyed


def test_two_arrays_in_one_commit_do_not_mix(writer: JournalWriter):
    one, other = array_of(4, 1), array_of(4, 5, command=("false",))
    mixed = [event for pair in zip(one, other, strict=True) for event in pair]
    writer.append(mixed)
    assert [shared for _, shared in rows_of(writer)] == [1, 2] * 4
    assert events_of(writer) == mixed


def test_a_commit_in_doubt_is_recognised_by_the_whole_text(writer: JournalWriter):
    events = array_of(6)
    writer.append(events)
    again = open_journal(writer.store, "again", 1)
    again.seq, again._in_doubt = 0, True  # pyright: ignore[reportPrivateUsage]
    again.append([*events, submitted(90)])
    assert again.seq == 7
    assert len(events_of(writer)) == 7
    assert verify(writer.store).findings == ()


def test_jobs_are_read_one_by_one_with_what_they_share(writer: JournalWriter):
    events = array_of(5)
    writer.append(events)
    assert read.submission(writer.store, "train-1[3]") == events[3]
    assert [event for _, event in read.open_submissions(writer.store)] == events


def test_members_share_one_request_in_memory_after_a_restart(writer: JournalWriter):
    writer.append(array_of(5))
    for found in (
        events_of(writer),
        [event for _, event in read.open_submissions(writer.store)],
    ):
        members = [event for event in found if isinstance(event, JobSubmitted)]
        assert len(members) == 5
        assert len({id(one.job.shape) for one in members}) == 1
        assert len({id(one.job.terms) for one in members}) == 1
        assert len({id(one.run_spec.command) for one in members if one.run_spec}) == 1
        assert [one.run_spec.env[-1][1] for one in members if one.run_spec] == [*"01234"]
