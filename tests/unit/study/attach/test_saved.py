"""Saved output of a Slurm cluster as a journal: its stories, its trace, and a second reading."""

from pathlib import Path

import pytest

from engines.slurm_attach import differences, own_stories, slurm_stories
from tenfold.compose.fleet import load_facts
from tenfold.compose.inputs import job_trace
from tenfold.files.slurm.accounting import read_accounting
from tenfold.files.slurm.saved import read_saved
from tenfold.model.errors import InputError
from tenfold.study.attach.readings import Readings
from tenfold.study.attach.recorder import (
    PAUSE_MOST_S,
    last_reading_s,
    pause_after,
    read_status,
    record_saved,
)
from tenfold.study.replay.calibration import calibrate
from tenfold.study.replay.records import open_record
from tenfold.study.why.recorded import ask, saved_at

SAVED = Path(__file__).parents[4] / "examples" / "clusters" / "slurm-saved"


def record(folder: Path) -> int:
    """Record the saved output once; return the number of events."""
    readings, saved = Readings(load_facts(None)), read_saved(SAVED)
    reading = readings.of_saved(saved, SAVED)
    return record_saved(
        folder, reading, readings, readings.policy_of(saved.config, saved.partitions)
    )


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder with the saved output."""
    folder = tmp_path_factory.mktemp("attached")
    assert record(folder) > 1_000
    return folder


def test_every_story_is_that_of_sacct(state: Path) -> None:
    theirs = slurm_stories(read_accounting(SAVED / "sacct.txt"))
    assert len(theirs) > 200
    assert differences(own_stories(state), theirs) == []


def test_the_same_files_again_add_nothing(state: Path) -> None:
    assert record(state) == 0
    assert read_status(state).events == 0
    assert last_reading_s(state) == read_status(state).reading_s


def test_a_journal_is_a_job_history(state: Path) -> None:
    trace = job_trace(state)
    began = [one for one in own_stories(state) if one.started_s is not None]
    assert len(trace.jobs) == len({one.job for one in began})
    assert trace.jobs[0].submitted_ms == 0
    assert all(trace.starts_ms[job.id] >= job.submitted_ms for job in trace.jobs)


def test_a_held_job_says_why_and_a_replay_says_how_well_it_simulates(state: Path) -> None:
    bundle, _ = open_record(str(state))
    saved = saved_at(bundle)
    held = next(iter(saved.fleet.held))
    answer = ask(saved, held, "none")
    assert answer.why is not None
    assert answer.why.reason == saved.holds[held]
    found = calibrate(bundle)
    assert found is not None
    assert found.jobs > 200
    assert found.error is not None
    assert found.calibrated == (found.error <= 0.15)


def test_a_folder_without_a_journal_is_refused(tmp_path: Path) -> None:
    assert last_reading_s(tmp_path) is None
    with pytest.raises(InputError, match="no attached cluster"):
        read_status(tmp_path)


def test_the_pause_follows_what_a_reading_costs() -> None:
    assert pause_after(10, 0.2, 0.001) == 10
    assert pause_after(10, 3.0, 0.001) == 30
    assert pause_after(10, 0.2, 0.5) == 50
    assert pause_after(10, 900.0, 0.0) == PAUSE_MOST_S


def test_a_pending_job_gets_an_uncalibrated_forecast(state: Path) -> None:
    bundle, _ = open_record(str(state))
    saved = saved_at(bundle)
    answer = ask(saved, "188")
    assert answer.why is not None
    assert answer.why.reason.code == "too-few-free"
    assert not saved.wait_log_of().outcomes


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        read_saved(tmp_path / "nope")
