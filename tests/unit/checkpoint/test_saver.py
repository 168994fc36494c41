"""When a checkpoint is due, notices to stop, and signs of life."""

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tenfold.checkpoint import CheckpointError, Saver, load


@pytest.fixture(autouse=True)
def _bare(monkeypatch):
    for name in ("DIR", "EVERY_S"):
        monkeypatch.delenv(f"TENFOLD_CHECKPOINT_{name}", raising=False)
    monkeypatch.delenv("TENFOLD_HEARTBEAT", raising=False)
    monkeypatch.delenv("TENFOLD_ATTEMPT", raising=False)


def test_one_is_due_when_the_time_has_passed_and_not_before(tmp_path: Path):
    with Saver(tmp_path, every_s=10) as saver:
        assert not saver.due(1, now=100.0)
        assert not saver.due(2, now=109.9)
        assert saver.due(3, now=110.0)
        saver.save(3, "three", now=112.0)
        assert not saver.due(3, now=500.0)
        assert not saver.due(4, now=121.9)
        assert saver.due(4, now=122.0)


def test_the_environment_says_where_and_how_often(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("TENFOLD_CHECKPOINT_DIR", str(tmp_path / "there"))
    monkeypatch.setenv("TENFOLD_CHECKPOINT_EVERY_S", "2.5")
    with Saver("here", every_s=60) as saver:
        assert (saver.folder, saver.every_s) == (tmp_path / "there", 2.5)
        saver.save(1, 0)
    assert load(tmp_path / "there") is not None


@pytest.mark.parametrize("stated", ["often", "-1", "nan"])
def test_a_time_that_is_none_is_refused(tmp_path: Path, monkeypatch, stated: str):
    monkeypatch.setenv("TENFOLD_CHECKPOINT_EVERY_S", stated)
    with pytest.raises(CheckpointError, match=f"`{stated}` is not a number") as caught:
        Saver(tmp_path)
    assert caught.value.code == "checkpoint-wrong-argument"


def test_without_a_folder_it_says_how_to_name_one():
    with pytest.raises(CheckpointError, match="TENFOLD_CHECKPOINT_DIR"):
        Saver()


@pytest.mark.parametrize("notice", [signal.SIGTERM, signal.SIGUSR1])
def test_a_notice_asks_to_stop_and_makes_a_save_due_once(tmp_path: Path, notice: signal.Signals):
    before = signal.getsignal(notice)
    with Saver(tmp_path, every_s=1e9) as saver:
        assert not saver.due(7)
        os.kill(os.getpid(), notice)
        assert saver.asked_to_stop
        assert saver.due(7)
        saver.save(7, 0)
        assert not saver.due(7)
    assert signal.getsignal(notice) == before


def test_a_handler_that_was_there_before_is_still_called(tmp_path: Path):
    heard: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: heard.append(number))
    try:
        with Saver(tmp_path) as saver:
            os.kill(os.getpid(), signal.SIGUSR1)
            assert saver.asked_to_stop
        assert heard == [signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_outside_the_main_thread_it_saves_without_hearing_notices(tmp_path: Path):
    def one() -> Path:
        with Saver(tmp_path) as saver:
            return saver.save(1, 0)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(one).result().is_dir()


def test_a_run_goes_on_from_its_checkpoint(tmp_path: Path):
    with Saver(tmp_path) as saver:
        assert saver.load() is None
        saver.save(5, {"at": 5})
    with Saver(tmp_path) as saver:
        found = saver.load()
        assert found is not None
        assert found.values == {"at": 5}
        assert not saver.due(5, now=1e9)


def test_a_beat_tells_the_step(tmp_path: Path, monkeypatch):
    beat = tmp_path / "beat"
    monkeypatch.setenv("TENFOLD_HEARTBEAT", str(beat))
    with Saver(tmp_path / "run") as saver:
        saver.beat(3)
        assert json.loads(beat.read_text())["step"] == 3
        os.utime(beat, (0, 0))
        saver.beat()
        assert beat.stat().st_mtime > 0
        assert json.loads(beat.read_text())["step"] == 3
        saver.save(4, 0)
        assert json.loads(beat.read_text())["step"] == 4


def test_a_beat_that_cannot_be_written_stops_nobody(tmp_path: Path, monkeypatch, caplog):
    monkeypatch.setenv("TENFOLD_HEARTBEAT", str(tmp_path / "no" / "such" / "beat"))
    with Saver(tmp_path / "run") as saver:
        saver.beat(1)
        saver.beat(2)
    assert len([one for one in caplog.records if "cannot write heartbeat" in one.message]) == 1
