"""The journal of a live fleet, replayed: over kills, other policies and exports."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import select

from live_lives import Turns, live
from tenfold.cli.main import main
from tenfold.engine.decision_log import Cycle
from tenfold.files.records.replay_bundle import Bundle, read_bundle
from tenfold.journal.append import open_journal
from tenfold.journal.snapshots import restore, save_snapshot
from tenfold.journal.store import open_store
from tenfold.journal.tables import CYCLES, POLICIES
from tenfold.model.errors import InputError
from tenfold.model.events import (
    Event,
    JobCancelled,
    JobEnded,
    JobSubmitted,
    NodeCordoned,
    NodeJoined,
)
from tenfold.model.ids import JobId
from tenfold.model.policy.policy import Policy
from tenfold.model.units import Millis
from tenfold.report.reasons.render import render
from tenfold.study.replay.bundle import explain_job, verify
from tenfold.study.replay.records import keep_record, open_record, write_record
from tenfold.study.replay.rerun import rerun
from tenfold.testing.builders import job, nodes
from tests.rigs.journal import export_older

JOINED: list[Event] = [NodeJoined(Millis(1), node) for node in nodes(2)]
GPUS = sum(node.gpus for node in nodes(2))
HALF = GPUS // 2


def came(number: int, gpus: int) -> Event:
    return JobSubmitted(Millis(number), job(number, gpus))


def ended(at_ms: int, number: int) -> Event:
    return JobEnded(Millis(at_ms), JobId(f"job-{number}"))


FIRST: Turns = [(1, JOINED), (2, [came(2, HALF)]), (3, [came(3, GPUS)]), (4, [came(4, 1)])]
"""`job-4` could start, and waits behind `job-3` where the line is kept."""
SECOND: Turns = [(5, [came(5, 1)]), (6, [ended(6, 2)]), (9, [])]


@pytest.fixture(name="path")
def a_journal(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def told(path: Path) -> Bundle:
    return open_record(str(path))[0]


def test_what_a_controller_decided_is_decided_again(path: Path):
    live(path, "fifo", [*FIRST, *SECOND])
    found = verify(told(path))
    assert found.same
    assert (found.policies, found.starts, found.orders) == (("fifo",), 1, 2)


@pytest.mark.parametrize("ends", ["stopped", "killed", "killed after orders"])
def test_each_stretch_is_replayed_under_the_policy_that_decided_it(path: Path, ends: str):
    live(path, "fifo", FIRST[:3])
    live(path, "edf", FIRST[3:], ends=ends)
    live(path, "fifo", SECOND)
    bundle = told(path)
    found = verify(bundle)
    assert found.difference is None
    assert found.same
    assert (found.policies, found.starts) == (("fifo", "edf", "fifo"), 3)
    wrong = replace(bundle.header, stretches=(replace(bundle.stretches[0], first_cycle=1),))
    difference = verify(replace(bundle, header=wrong)).difference
    assert difference is not None
    assert difference.at_ms == 4


def test_a_cut_cycle_belongs_to_the_one_that_gave_its_orders(path: Path):
    live(path, "fifo", FIRST[:3])
    live(path, "edf", FIRST[3:], ends="killed after orders")
    live(path, "fifo", [], ends="killed")
    live(path, "las", SECOND)
    bundle = told(path)
    assert [line.is_cut for line in bundle.lines if isinstance(line, Cycle)].count(True) == 1
    assert verify(bundle).same


def test_a_cycle_under_way_is_closed_by_the_reader(path: Path):
    live(path, "edf", FIRST, ends="killed after orders")
    bundle = told(path)
    assert isinstance(bundle.lines[-1], Cycle)
    assert bundle.lines[-1].is_cut
    assert verify(bundle).same


def test_facts_that_nobody_decided_about_yet_are_no_difference(path: Path):
    live(path, "fifo", FIRST, ends="killed")
    bundle = told(path)
    assert not isinstance(bundle.lines[-1], Cycle)
    assert verify(bundle).same


def test_a_journal_from_before_policies_were_noted_is_replayed_by_name(path: Path):
    live(path, None, FIRST, decides="edf")
    bundle, notes = open_record(str(path))
    assert "assumed from its name" in notes[0]
    assert verify(bundle).same
    live(path, "fifo", SECOND)
    found = verify(told(path))
    assert (found.same, found.policies) == (True, ("edf", "fifo"))


def test_reading_leaves_an_old_journal_as_it_is(path: Path):
    live(path, "fifo", FIRST)
    with closing(sqlite3.connect(path)) as old, old:
        old.execute("DROP TABLE policies")
        old.execute("UPDATE alembic_version SET version_num = '0005'")
    assert verify(told(path)).same
    with closing(sqlite3.connect(path)) as old:
        assert old.execute("SELECT version_num FROM alembic_version").fetchone()[0] == "0005"


def test_a_doctored_journal_ends_with_status_1_and_names_the_cycle(
    path: Path, capsys: pytest.CaptureFixture[str]
):
    live(path, "fifo", [*FIRST, *SECOND])
    with closing(sqlite3.connect(path)) as doctored, doctored:
        doctored.execute(
            "UPDATE events SET body = replace(body, 'job-3', 'job-4') "
            "WHERE seq > 6 AND kind IN ('ActionOrdered', 'JobStarted')"
        )
    assert main(["replay", str(path)]) == 1
    said = capsys.readouterr().out
    assert "differs in cycle 6, at" in said
    assert main(["replay", str(path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["difference"]["cycle"] == 6


def exported(path: Path, folder: Path) -> Path:
    """Move all events that are there into a bundle."""
    with closing(open_store(path)) as store:
        writer = open_journal(store, "test", 0)
        save_snapshot(writer, restore(store).fleet)
        export = export_older(writer, folder)
        assert export is not None
        return export.file


def test_where_old_events_are_gone_the_replay_begins_from_a_snapshot(path: Path):
    live(path, "fifo", FIRST[:3])
    live(path, "edf", FIRST[3:])
    first = exported(path, path.parent)
    live(path, "fifo", SECOND[:2])
    second = exported(path, path.parent)
    live(path, "edf", [(10, [came(10, 1)])])
    bundle, notes = open_record(str(path))
    assert "starts from a snapshot" in notes[0]
    assert first.name in notes[0]
    found = verify(bundle)
    assert (found.same, found.events) == (True, 5)
    for part, policies in ((first, ("fifo", "edf")), (second, ("fifo",))):
        replayed = verify(read_bundle(part))
        assert replayed.same
        assert replayed.policies[-len(policies) :] == policies


def test_a_record_goes_through_a_bundle_into_another_journal(path: Path, tmp_path: Path):
    live(path, "fifo", FIRST[:3])
    live(path, "edf", [*FIRST[3:], *SECOND], ends="killed after orders")
    bundle = told(path)
    write_record(bundle, tmp_path / "run.jsonl.gz")
    read = read_bundle(tmp_path / "run.jsonl.gz")
    assert (read.header, read.lines, read.end) == (bundle.header, bundle.lines, bundle.end)
    assert (tmp_path / "run.jsonl.gz").stat().st_mode & 0o077 == 0
    keep_record(read, str(tmp_path / "other.db"), 0)
    other = told(tmp_path / "other.db")
    assert other.lines == bundle.lines
    assert verify(other).policies == verify(bundle).policies
    assert verify(other).same


def test_a_bundle_that_begins_late_is_not_taken_into_a_journal(path: Path, tmp_path: Path):
    live(path, "fifo", FIRST)
    exported(path, tmp_path)
    live(path, "fifo", SECOND)
    with pytest.raises(InputError) as caught:
        keep_record(told(path), str(tmp_path / "other.db"), 0)
    assert caught.value.code == "bundle-begins-late"


def test_another_policy_is_tried_on_the_same_work(path: Path):
    later: Turns = [
        (1_000, [ended(1_000, 2)]),
        (5_000, [ended(5_000, 3), JobCancelled(Millis(5_000), JobId("job-5"))]),
        (6_000, [ended(6_000, 4)]),
    ]
    live(path, "fifo", [*FIRST, (5, [came(5, 1), came(6, GPUS)]), *later])
    again = rerun(told(path), Policy(name="edf"))
    assert "1 job was cancelled or never started: left out of both runs" in again.notes
    assert (
        "1 job was still running when the record ended: the rerun uses the run time so far"
        in again.notes
    )
    started = {
        event.job_id: event.at_ms for event in again.again if type(event).__name__ == "JobStarted"
    }
    assert started[JobId("job-4")] == 4
    assert started[JobId("job-3")] >= 1_000


def test_a_node_that_was_never_taken_into_use_is_left_out_under_another_policy(path: Path):
    slow = nodes(1, name="slow")[0]
    refused: list[Event] = [NodeJoined(Millis(1), slow), NodeCordoned(Millis(1), slow.id)]
    live(path, "fifo", [(1, [*JOINED, *refused]), *FIRST[1:], (1_000, [ended(1_000, 2)])])
    again = rerun(told(path), Policy(name="edf"))
    assert "1 node was cordoned and never used: skipped" in again.notes
    assert again.gpus == GPUS


def test_another_policy_is_tried_from_a_snapshot_on(path: Path):
    live(path, "fifo", FIRST)
    exported(path, path.parent)
    live(path, "fifo", [(1_000, [ended(1_000, 2)]), (5_000, [ended(5_000, 3)])])
    again = rerun(told(path), Policy(name="edf"))
    assert any("running when the record began" in note for note in again.notes)
    assert {event.job.id for event in again.recorded if isinstance(event, JobSubmitted)} == {
        "job-3",
        "job-4",
    }


def test_a_job_that_was_there_before_the_record_has_a_story(path: Path):
    live(path, "fifo", FIRST)
    exported(path, path.parent)
    live(path, "fifo", [(1_000, [ended(1_000, 2)])])
    story = explain_job(told(path), "job-3")
    assert render(story.stages[0].why).endswith("before the recording begins")
    assert [stage.code for stage in story.stages] == ["submitted", "start-ordered", "started"]


@pytest.mark.parametrize(
    ("name", "code"), [("nothing.db", "no-journal"), ("empty.db", "not-a-journal")]
)
def test_what_is_no_journal_is_refused(tmp_path: Path, name: str, code: str):
    sqlite3.connect(tmp_path / "empty.db").close()
    (tmp_path / "empty.db").touch()
    with pytest.raises(InputError) as caught:
        open_record(str(tmp_path / name))
    assert caught.value.code == code


def test_a_policy_that_cannot_be_read_is_damage(path: Path):
    live(path, "fifo", FIRST)
    with closing(open_store(path)) as store, store.writing() as connection:
        connection.execute(POLICIES.update().values(body="{"))
    with pytest.raises(InputError) as caught:
        told(path)
    assert caught.value.code == "journal-damaged"


def test_numbers_of_cycles_go_on_where_an_export_took_them_all(path: Path):
    live(path, "fifo", FIRST)
    exported(path, path.parent)
    live(path, "edf", SECOND[:1])
    live(path, "fifo", SECOND[1:])
    found = verify(told(path))
    assert found.same
    assert found.policies[-2:] == ("edf", "fifo")
    with closing(open_store(path)) as store, store.reading() as connection:
        numbers = list(connection.execute(select(CYCLES.c.number)).scalars())
    assert numbers == [4, 5, 6, 7]


def test_the_state_folder_is_replayed_where_nothing_is_named(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    live(path, "fifo", [*FIRST, *SECOND])
    monkeypatch.setenv("TENFOLD_HOME", str(path.parent))
    assert main(["replay"]) == 0
    assert (
        "all 2 actions match the recording; the final fleet state is the same"
        in capsys.readouterr().out
    )
    assert main(["replay", "--explain", "job-4"]) == 0
    assert "submitted" in capsys.readouterr().out
    bundle = path.parent / "out.jsonl"
    assert main(["replay", "--export", str(bundle)]) == 0
    assert main(["replay", str(bundle), "--into", str(path.parent / "again.db")]) == 0
    assert main(["replay", str(path.parent / "again.db"), "--policy", "edf", "--json"]) == 0
    assert main(["replay", "--export", "x.jsonl", "--into", "x.db"]) == 2
