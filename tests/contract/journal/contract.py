"""What every journal must do, whatever database holds it: one class, run for each."""

import subprocess
import sys
from contextlib import contextmanager

import pytest
from sqlalchemy import delete, update
from sqlalchemy.exc import OperationalError

from contract.journal.compaction import JournalCompaction
from contract.journal.leadership import JournalLeadership
from contract.journal.upkeep import JournalUpkeep
from journal_builders import JOINED, batches_of, read_tables, states_told, submitted
from tenfold.engine.decision_log import Cycle
from tenfold.fleet.fleet import Fleet
from tenfold.journal import read
from tenfold.journal.append import JournalWriter, open_journal
from tenfold.journal.integrity.rebuild import rebuild_read_tables
from tenfold.journal.rows import RunTime
from tenfold.journal.snapshots import restore
from tenfold.journal.store import Store, open_store
from tenfold.journal.tables import JOBS, METADATA
from tenfold.model.actions import StartJob, StopJob
from tenfold.model.errors import Refused, Unreachable
from tenfold.model.events import (
    ActionOrdered,
    ActionRefused,
    Event,
    JobCancelled,
    JobEnded,
    JobRefused,
    JobStarted,
    JobStopped,
)
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Slot
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.reason import Reason
from tenfold.model.units import Millis

A = JobId("job-1")
WHY = Reason("for-others", sentence="another team is owed these gpus")
SLOTS = (Slot(NodeId("n0"), 8), Slot(NodeId("n1"), 8))


START = ActionOrdered(Millis(2), StartJob(A, SLOTS))


WRITES_UNTIL_KILLED = """
import sys
from tenfold.journal.append import open_journal
from tenfold.journal.store import open_store
from tenfold.model.events import JobSubmitted
from tenfold.model.units import Millis
from tenfold.testing.builders import job

writer = open_journal(open_store(sys.argv[1]), "child", 0)
for first in range(0, 30_000, 3):
    writer.append([JobSubmitted(Millis(n), job(n, 1)) for n in range(first, first + 3)])
    print(writer.seq, flush=True)
"""


class JournalContract(JournalCompaction, JournalUpkeep, JournalLeadership):
    """Tests that each kind of database inherits; it gives `address`, an empty one."""

    def test_what_was_appended_is_read_back_in_order(self, writer: JournalWriter, address: str):
        batches = batches_of(3)
        for batch in batches:
            writer.append(batch)
        told = [event for batch in batches for event in batch]
        again = open_store(address)
        assert list(read.events_after(again)) == list(enumerate(told, start=1))
        assert list(read.events_after(again, 5, 9)) == list(enumerate(told, start=1))[5:9]
        assert open_journal(again, "next", 2).seq == len(told)
        again.close()

    def test_nothing_to_append_writes_nothing(self, writer: JournalWriter):
        writer.append([])
        assert writer.seq == 0
        assert list(read.events_after(writer.store)) == []

    def test_a_writer_that_was_followed_is_refused(self, store: Store, writer: JournalWriter):
        writer.append(JOINED)
        second = open_journal(store, "second", 2_000)
        with pytest.raises(Refused) as caught:
            writer.append([submitted(1)])
        assert caught.value.code == "lease-lost"
        assert "second" in caught.value.message
        second.append([submitted(2)])
        assert [seq for seq, _ in read.events_after(store)] == [1, 2, 3]
        begun = [(one.epoch, one.first_seq, one.holder) for one in read.writers(store)]
        assert begun == [(1, 1, "first"), (2, 3, "second")]

    def test_an_append_that_fails_leaves_nothing_and_may_be_tried_again(
        self, writer: JournalWriter, monkeypatch: pytest.MonkeyPatch
    ):
        writer.append(JOINED)
        with monkeypatch.context() as patched:
            patched.setattr("tenfold.journal.append.update_read_tables", _fails)
            with pytest.raises(Unreachable) as caught:
                writer.append([submitted(1)])
        assert caught.value.code == "journal-unwritable"
        assert read.jobs(writer.store) == []
        writer.append([submitted(1), submitted(2)])
        assert [seq for seq, _ in read.events_after(writer.store)] == [1, 2, 3, 4]

    def test_a_commit_that_got_through_unheard_is_not_written_twice(
        self, writer: JournalWriter, monkeypatch: pytest.MonkeyPatch
    ):
        _break_after_commit(writer, monkeypatch, [*JOINED, submitted(1)])
        writer.append([*JOINED, submitted(1), submitted(2)])
        assert [seq for seq, _ in read.events_after(writer.store)] == [1, 2, 3, 4]
        assert writer.seq == 4

    def test_a_cycle_written_in_between_does_not_settle_a_doubt(
        self, writer: JournalWriter, monkeypatch: pytest.MonkeyPatch
    ):
        _break_after_commit(writer, monkeypatch, JOINED)
        writer.note(Cycle(Millis(1), "tenfold", 0, 0, 0))
        writer.flush()
        writer.append([*JOINED, submitted(1)])
        assert [seq for seq, _ in read.events_after(writer.store)] == [1, 2, 3]

    def test_events_that_nobody_applied_are_not_written_over(
        self, writer: JournalWriter, monkeypatch: pytest.MonkeyPatch
    ):
        _break_after_commit(writer, monkeypatch, [*JOINED, submitted(1)])
        with pytest.raises(Refused) as caught:
            writer.append([*JOINED, submitted(2)])
        assert caught.value.code == "journal-ahead"

    def test_a_writer_that_is_killed_leaves_what_it_acknowledged(self, address: str):
        words = [sys.executable, "-c", WRITES_UNTIL_KILLED, address]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            heard = [int(child.stdout.readline()) for _ in range(25)]
            child.kill()
            heard += [int(line) for line in child.stdout if line.endswith("\n")]
        store = open_store(address)
        present = [seq for seq, _ in read.events_after(store)]
        assert present[: heard[-1]] == list(range(1, heard[-1] + 1))
        assert len(present) <= heard[-1] + 3
        assert restore(store).seq == len(present) == len(read.jobs(store, limit=1_000))
        writer = open_journal(store, "next", 1)
        writer.append([submitted(90_000)])
        assert writer.seq == len(present) + 1
        store.close()

    def test_read_tables_say_what_the_fleet_says(self, writer: JournalWriter):
        fleet = Fleet()
        for batch in batches_of(11, jobs=20):
            writer.append(batch)
            fleet.apply_all(batch)
            waiting = states_told(fleet)
            rows = {row.id: row.state for row in read.jobs(writer.store, limit=1_000)}
            open_rows = {
                name: state for name, state in rows.items() if state in waiting.values()
            } | {name: rows[name] for name in waiting}
            assert open_rows == waiting
            told = {row.id: row.state for row in read.nodes(writer.store)}
            assert told == fleet.states

    def test_read_tables_can_be_built_anew(self, writer: JournalWriter):
        for batch in batches_of(5, jobs=20):
            writer.append(batch)
        before = read_tables(writer.store)
        assert before["jobs"]
        assert before["attempts"]
        with writer.writing() as connection:
            connection.execute(update(JOBS).values(state="lost"))
            connection.execute(delete(METADATA.tables["attempts"]))
        rebuild_read_tables(writer)
        assert read_tables(writer.store) == before

    def test_a_preempted_job_waits_again_with_its_attempts(self, writer: JournalWriter):
        writer.append([*JOINED, submitted(1), START])
        assert _state(writer) == "starting"
        writer.append([JobStarted(Millis(3), A)])
        assert _state(writer) == "running"
        writer.append([ActionOrdered(Millis(4), StopJob(A, "preempted", WHY))])
        assert _state(writer) == "stopping"
        writer.append([JobStopped(Millis(5), A, "preempted", Millis(1), exit_code=143)])
        story = read.job(writer.store, A)
        assert story is not None
        assert (story.job.state, story.job.reason) == ("pending", "preempted")
        writer.append([START, JobStarted(Millis(7), A), JobEnded(Millis(9), A, exit_code=0)])
        story = read.job(writer.store, A)
        assert story is not None
        assert (story.job.state, story.job.name) == ("succeeded", "train-1")
        told = [
            (one.number, one.started_ms, one.ended_ms, one.nodes, one.exit_code, one.reason)
            for one in story.attempts
        ]
        assert told == [
            (1, 3, 5, ("n0", "n1"), 143, "preempted"),
            (2, 7, 9, ("n0", "n1"), 0, "completed"),
        ]
        assert read.attempts_of(writer.store, [A, "none"]) == {A: story.attempts, "none": ()}

    def test_run_times_are_summed_over_attempts_until_now(self, writer: JournalWriter):
        writer.append([*JOINED, submitted(1), START])
        assert read.run_times(writer.store, A, 10) == []
        writer.append([JobStarted(Millis(3), A)])
        assert read.run_times(writer.store, A, 10) == [RunTime(2, 7)]
        writer.append([JobStopped(Millis(5), A, "preempted", Millis(1), exit_code=143)])
        writer.append([START, JobStarted(Millis(7), A), JobEnded(Millis(11), A, exit_code=0)])
        assert read.run_times(writer.store, A, 90) == [RunTime(2, 6)]

    def test_jobs_are_counted_with_the_filters_of_a_listing(self, writer: JournalWriter):
        writer.append([*JOINED, *(submitted(number) for number in range(1, 6))])
        writer.append([submitted(6, "blue"), JobCancelled(Millis(3), A)])
        store = writer.store
        assert read.job_count(store) == 6
        assert read.job_count(store, team="red") == 5
        assert read.job_count(store, state="pending") == 5
        assert read.job_count(store, team="red", state="pending") == 4
        named = read.JobFilter(named=["job-1", "job-2", "none"])
        assert read.job_count(writer.store, within=named) == 2

    def test_a_start_that_was_refused_is_an_attempt_that_never_ran(self, writer: JournalWriter):
        writer.append([*JOINED, submitted(1), START, ActionRefused(Millis(3), START.action, WHY)])
        story = read.job(writer.store, A)
        assert story is not None
        assert (story.job.state, story.job.sentence) == ("pending", WHY.sentence)
        (attempt,) = story.attempts
        assert (attempt.started_ms, attempt.ended_ms, attempt.reason) == (None, 3, WHY.code)

    def test_jobs_that_never_ran_end_with_their_reason(self, writer: JournalWriter):
        writer.append([*JOINED, submitted(1), submitted(2)])
        writer.append([JobRefused(Millis(3), A, (WHY,)), JobCancelled(Millis(3), JobId("job-2"))])
        told = [(row.state, row.reason) for row in read.jobs(writer.store)]
        assert told == [("cancelled", "cancelled"), ("failed", WHY.code)]
        assert read.job(writer.store, "job-3") is None

    def test_jobs_are_listed_newest_first_page_by_page(self, writer: JournalWriter):
        writer.append([submitted(number, "red" if number % 3 else "blue") for number in range(10)])
        writer.append([JobCancelled(Millis(20), JobId("job-3"))])
        store = writer.store
        first = read.jobs(store, limit=4)
        assert [row.id for row in first] == ["job-9", "job-8", "job-7", "job-6"]
        rest = read.jobs(store, before=first[-1].seq)
        assert [row.id for row in rest] == [f"job-{number}" for number in range(5, -1, -1)]
        assert [row.id for row in read.jobs(store, team="blue", state="pending")] == [
            *("job-9", "job-6", "job-0")
        ]
        assert read.counts(store) == {"pending": 9, "cancelled": 1}
        assert read.counts(store, "blue") == {"pending": 3, "cancelled": 1}
        found = read.submission(store, "job-4")
        assert found is not None
        assert found.run_spec == RunSpec(name="train-4", command=("true",))


def _fails(*_: object) -> None:
    raise OperationalError("INSERT", {}, Exception("disk is full"))


def _break_after_commit(
    writer: JournalWriter, monkeypatch: pytest.MonkeyPatch, events: list[Event]
) -> None:
    """Append events whose commit gets through, and whose writer hears that it did not."""
    writing = writer.store.writing

    @contextmanager
    def broken():
        with writing() as connection:
            yield connection
        _fails()

    with monkeypatch.context() as patched:
        patched.setattr(writer.store, "writing", broken)
        with pytest.raises(Unreachable):
            writer.append(events)


def _state(writer: JournalWriter) -> str:
    return read.jobs(writer.store)[0].state
