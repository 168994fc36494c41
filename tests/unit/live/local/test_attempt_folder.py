"""The files of an attempt: names, locks, and what a reader sees at any moment."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tenfold.live.local.attempt.ending import end_line, write_end
from tenfold.live.local.attempt.folder import ExecutorDir, add_to_record, file_name, plain_name
from tenfold.live.local.spawner.notes import NoteWriter, open_notes
from tenfold.live.local.spawner.wire import LaunchLine


def launch(job: str = "job-1", attempt: int = 1) -> LaunchLine:
    return {
        "job": job,
        "attempt": attempt,
        "team": "team",
        "name": "a job",
        "command": ["true"],
        "env": [],
        "inherited": {"PATH": "/bin"},
        "folder": "",
        "image": "",
        "runtime": "",
        "saves_folder": "",
        "saves_every_ms": None,
        "grace_ms": 30_000,
        "silent_ms_most": None,
        "log_bytes_most": 1_000,
        "members": [{"node": "a", "gpus": [], "cpus_milli": 0, "memory_mib": 0}],
        "ordered_ms": 5,
    }


@pytest.fixture
def home(tmp_path: Path) -> ExecutorDir:
    home = ExecutorDir(str(tmp_path / "state"))
    home.prepare()
    return home


@pytest.mark.parametrize(
    "name", ["job-1", "a/b", "..", ".", "", ".hidden", "%41", "ä b", "x" * 150, "a.1", "A\n"]
)
def test_a_name_becomes_a_file_name_and_back(name: str):
    file = file_name(name)
    assert plain_name(file) == name
    assert "/" not in file
    assert file not in ("", ".", "..")
    assert not file.startswith(".")


def test_a_folder_is_made_once(home: ExecutorDir):
    folder = home.attempt("job-1", 1)
    lock = folder.make(launch())
    assert lock is not None
    assert folder.make(launch()) is None
    assert home.attempt("job-1", 1).launch() == launch()
    os.close(lock)


def test_whoever_made_a_folder_holds_it_until_the_descriptor_is_gone(home: ExecutorDir):
    folder = home.attempt("job-1", 1)
    assert not folder.is_locked()
    lock = folder.make(launch())
    assert lock is not None
    assert folder.is_locked()
    copy = os.dup(lock)
    os.close(lock)
    assert folder.is_locked()
    os.close(copy)
    assert not folder.is_locked()
    again = folder.take_lock()
    assert folder.is_locked()
    os.close(again)


def test_two_who_ask_at_once_do_not_see_each_other(home: ExecutorDir):
    folder = home.attempt("job-1", 1)
    os.close(folder.make(launch()) or -1)
    asking = os.open(f"{folder.path}/record", os.O_RDONLY)
    assert not folder.is_locked()
    os.close(asking)


def test_what_a_spawner_left_half_made_does_not_stand_in_the_way(home: ExecutorDir):
    folder = home.attempt("job-1", 1)
    staging = Path(folder.job_folder) / ".1"
    staging.mkdir(parents=True)
    (staging / "record").write_text('{"launch": {"jo')
    Path(folder.marker).write_text("")
    assert home.unsettled() == []
    assert home.numbers("job-1") == []
    lock = folder.make(launch())
    assert lock is not None
    assert [one.number for one in home.unsettled()] == [1]
    os.close(lock)


def test_a_line_that_is_still_being_written_does_not_count(home: ExecutorDir):
    folder = home.attempt("job-1", 1)
    lock = folder.make(launch())
    assert lock is not None
    add_to_record(lock, {"supervisor": 7})
    os.write(lock, b'{"started": {"at_')
    assert folder.record() == {"launch": launch(), "supervisor": 7}
    os.close(lock)


def test_the_last_supervisor_counts(home: ExecutorDir):
    folder = home.attempt("job-1", 1)
    lock = folder.make(launch())
    assert lock is not None
    for pid in (7, 8):
        add_to_record(lock, {"supervisor": pid})
    assert folder.record().get("supervisor") == 8
    os.close(lock)


def test_attempts_are_listed_until_they_are_settled(home: ExecutorDir):
    for job, number in (("b", 1), ("a", 2), ("a", 10)):
        os.close(home.attempt(job, number).make(launch(job, number)) or -1)
    assert sorted((one.job, one.number) for one in home.unsettled()) == [
        ("a", 2),
        ("a", 10),
        ("b", 1),
    ]
    home.attempt("a", 2).settle()
    home.attempt("a", 2).settle()
    assert sorted((one.job, one.number) for one in home.unsettled()) == [("a", 10), ("b", 1)]
    assert home.numbers("a") == [2, 10]


def test_an_end_is_there_whole_or_not_at_all(home: ExecutorDir):
    folder = home.attempt("job-1", 1)
    os.close(folder.make(launch()) or -1)
    Path(folder.path, ".end.json").write_text('{"at_ms"')
    assert folder.end() is None
    folder.write_end(end_line("exited", started_ms=3, code=-9, member=0))
    end = folder.end()
    assert end is not None
    assert (end["exit_code"], end["signal"], end["member"]) == (None, 9, 0)


def test_an_end_is_tried_until_the_disk_takes_it_and_trouble_is_told_once(
    home: ExecutorDir, monkeypatch: pytest.MonkeyPatch
):
    folder = home.attempt("job-1", 1)
    os.close(folder.make(launch()) or -1)
    notes = open_notes(home.path)
    real, waits = folder.write_end, []

    def full(end: object, *, durable: bool) -> None:
        if len(waits) < 4:
            raise OSError(28, "No space left on device")
        real(end, durable=durable)  # type: ignore[arg-type]

    monkeypatch.setattr(folder, "write_end", full)
    write_end(folder, end_line("exited", started_ms=3, code=0), NoteWriter(home.path), waits.append)
    assert waits == [0.05, 0.1, 0.2, 0.4]
    assert folder.end() is not None
    told = [json.loads(line) for line in os.read(notes, 65_536).splitlines()]
    assert [note["saw"] for note in told] == ["trouble"]
    os.close(notes)


def test_no_end_is_written_once_the_state_directory_is_deleted(home: ExecutorDir):
    folder = home.attempt("job-1", 1)
    lock = folder.make(launch())
    assert lock is not None
    shutil.rmtree(home.path)

    def wait(seconds: float) -> None:
        raise AssertionError(f"it waits {seconds} s for a directory that will not return")

    end = end_line("exited", started_ms=3, code=0)
    write_end(folder, end, NoteWriter(home.path), wait, lock=lock)
    os.close(lock)


def test_an_end_waits_for_a_state_directory_that_is_out_of_reach(home: ExecutorDir):
    folder = home.attempt("job-1", 1)
    lock = folder.make(launch())
    assert lock is not None
    away = f"{home.path}-away"
    os.rename(home.path, away)

    def wait(_: float) -> None:
        os.rename(away, home.path)

    end = end_line("exited", started_ms=3, code=0)
    write_end(folder, end, NoteWriter(home.path), wait, lock=lock)
    assert folder.end() is not None
    os.close(lock)


def test_notes_wait_while_the_pipe_is_full_and_are_dropped_without_a_reader(home: ExecutorDir):
    writer = NoteWriter(home.path)
    writer.send({"saw": "started", "at_ms": 1})
    assert not writer.has_unsent
    notes = open_notes(home.path)
    while not writer.has_unsent:
        writer.send({"saw": "started", "at_ms": 1})
    first = os.read(notes, 1_000_000)
    writer.flush()
    assert not writer.has_unsent
    assert first + os.read(notes, 1_000_000) == b'{"saw":"started","at_ms":1}\n' * (
        len(first) // 28 + 1
    )
    os.close(notes)


def test_a_lost_node_is_remembered(home: ExecutorDir):
    home.mark_node("a/b", lost=True)
    assert home.is_lost("a/b")
    assert not home.is_lost("a")
    for _ in range(2):
        home.mark_node("a/b", lost=False)
    assert not home.is_lost("a/b")
