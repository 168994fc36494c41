"""Several ranks, several writers: a torn set never loads, and a successor is not disturbed."""

import errno
import fcntl
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from checkpoint_builders import FOLDER, on
from tenfold.checkpoint import CheckpointError, How, Saver, load, load_at, save, verify
from tenfold.checkpoint.fence import attempt_here, run_here
from tenfold.checkpoint.files import DISK, Files
from tenfold.checkpoint.gather import announce
from tenfold.checkpoint.manifest import SaveRequest, committed
from tenfold.checkpoint.sealed import write_sealed
from tenfold.checkpoint.shard import shard_of, write_shard
from tests.rigs.forgetful import ForgetfulDisk


def values_of(step: int, rank: int) -> dict[str, object]:
    return {"rank": rank, "rows": np.full(30, 100 * step + rank)}


def save_all(folder: Path, step: int, ranks: int, how: How) -> list[Path]:
    with ThreadPoolExecutor(ranks) as pool:
        started = [
            pool.submit(save, folder, step, values_of(step, rank), rank=rank, ranks=ranks, how=how)
            for rank in range(ranks)
        ]
        return [one.result() for one in started]


def call_of(step: int, ranks: int, nonce: str, save_number: int = 1) -> SaveRequest:
    return SaveRequest(step, save_number, ranks, 0, run_here(), nonce)


@pytest.mark.parametrize("files", [DISK, ForgetfulDisk()], ids=["disk", "memory"])
def test_every_rank_gets_its_own_values_back(tmp_path: Path, files: Files):
    for step in (1, 2, 3):
        paths = save_all(tmp_path, step, 3, on(files, wait_s=20))
        assert len(set(paths)) == 1
    for rank in range(3):
        for found in (
            load(tmp_path, rank=rank, ranks=3, files=files),
            load_at(paths[0], rank=rank, ranks=3, files=files),
        ):
            assert found is not None
            assert found.step == 3
            assert found.values["rank"] == rank
            assert np.array_equal(found.values["rows"], values_of(3, rank)["rows"])
    assert [one.step for one in committed(files, tmp_path)] == [3, 2]


def test_a_set_without_one_rank_never_becomes_a_checkpoint():
    disk = ForgetfulDisk()
    save_all(FOLDER, 1, 2, on(disk, wait_s=20))
    with pytest.raises(CheckpointError, match="no shard from rank 1") as caught:
        save(FOLDER, 2, values_of(2, 0), rank=0, ranks=2, how=on(disk, wait_s=0.01))
    assert caught.value.code == "checkpoint-shards-missing"
    assert [(one.step, one.state) for one in verify(FOLDER, files=disk)] == [(1, "valid")]


def test_a_rank_whose_first_rank_never_calls_gives_up():
    with pytest.raises(CheckpointError) as caught:
        save(FOLDER, 2, 0, rank=1, ranks=2, how=on(ForgetfulDisk(), wait_s=0.01))
    assert caught.value.code == "checkpoint-abandoned"


def test_a_shard_that_a_dead_run_left_is_not_taken_for_a_new_one():
    disk = ForgetfulDisk()
    old = call_of(5, 2, "aaaa")
    announce(disk, FOLDER, old)
    write_shard(disk, FOLDER / old.staging, "aaaa", 1, "of the dead run", read_back=True)
    [path, _] = save_all(FOLDER, 5, 2, on(disk, wait_s=20))
    assert load_at(path, rank=1, ranks=2, files=disk).values["rank"] == 1


def test_a_shard_counts_only_for_the_save_it_names():
    disk = ForgetfulDisk()
    disk.make_folder(FOLDER)
    write_shard(disk, FOLDER, "aaaa", 1, "of another save", read_back=True)
    assert shard_of(disk, FOLDER, "aaaa", 1) is not None
    assert shard_of(disk, FOLDER, "bbbb", 1) is None
    assert shard_of(disk, FOLDER, "aaaa", 0) is None


@pytest.mark.parametrize(
    "other", [{"run": "another launch"}, {"attempt": 1}, {"step": 6}, {"ranks": 3}]
)
def test_a_rank_does_not_answer_the_call_of_another_run(other: dict[str, object]):
    disk = ForgetfulDisk()
    call = replace(call_of(5, 2, "aaaa"), **other)
    announce(disk, FOLDER, call)
    with pytest.raises(CheckpointError):
        save(FOLDER, 5, values_of(5, 1), rank=1, ranks=2, how=on(disk, wait_s=0.01))
    assert disk.names(FOLDER / call.staging) == ["call.json"]


def test_a_rank_that_answered_a_dead_run_answers_the_next():
    disk = ForgetfulDisk()
    announce(disk, FOLDER, call_of(5, 2, "aaaa"))
    how = on(disk, wait_s=20)
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(save, FOLDER, 5, values_of(5, 1), rank=1, ranks=2, how=how)
        stale = FOLDER / call_of(5, 2, "aaaa").staging
        while "shard-00001.json" not in disk.names(stale):
            disk.pause()
        first = save(FOLDER, 5, values_of(5, 0), rank=0, ranks=2, how=how)
        assert second.result() == first
    assert load_at(first, rank=1, ranks=2, files=disk).values["rank"] == 1


def test_a_shard_that_rots_takes_the_whole_set_with_it():
    disk = ForgetfulDisk()
    for step in (1, 2):
        [path, _] = save_all(FOLDER, step, 2, on(disk, wait_s=20))
    disk.rot(path / "shard-00001.bin", 5)
    for rank in (0, 1):
        found = load(FOLDER, rank=rank, ranks=2, files=disk)
        assert found is not None
        assert found.step == 1
    assert load_at(path, rank=0, ranks=2, files=disk).step == 2
    with pytest.raises(CheckpointError) as caught:
        load_at(path, rank=1, ranks=2, files=disk)
    assert caught.value.code == "checkpoint-damaged"


def test_another_number_of_ranks_is_refused_and_not_fallen_back_over():
    disk = ForgetfulDisk()
    save_all(FOLDER, 1, 2, on(disk, wait_s=20))
    with pytest.raises(CheckpointError, match="saved by 2 ranks") as caught:
        load(FOLDER, ranks=4, files=disk)
    assert caught.value.code == "checkpoint-ranks-differ"


def test_a_checkpoint_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(CheckpointError) as caught:
        load_at(tmp_path / "step-0000000001-save-000001")
    assert caught.value.code == "checkpoint-not-there"


def test_a_run_that_has_a_successor_can_write_no_more():
    disk = ForgetfulDisk()
    save(FOLDER, 10, "first", how=on(disk, attempt=1))
    with Saver(FOLDER, how=on(disk, attempt=2)) as successor:
        begun = successor.load()
        assert begun is not None
        assert begun.step == 10
        with pytest.raises(CheckpointError, match="attempt 2 has started") as caught:
            save(FOLDER, 11, "stale", how=on(disk, attempt=1))
        assert caught.value.code == "checkpoint-fenced"
        successor.save(11, "second")
    found = load(FOLDER, files=disk)
    assert found is not None
    assert (found.values, found.meta["attempt"]) == ("second", 2)


@pytest.mark.parametrize("sweeps", [True, False])
def test_a_successor_that_comes_while_a_save_is_under_way_is_seen_before_it_counts(sweeps: bool):
    """On a file system whose locks do nothing, nothing else would stop it."""

    class NoLocks(ForgetfulDisk):
        def lock(self, path, wait_s):
            self._held.clear()
            return super().lock(path, wait_s)

        def rename(self, old, new):
            super().rename(old, new)
            if new.name == "manifest.json" and new.parent.name.startswith("step-0000000002"):
                self.succeed()

        def succeed(self):
            if not sweeps:
                write_sealed(self, FOLDER / "fence.json", {"attempt": 2})
                return
            with Saver(FOLDER, how=on(self, attempt=2)) as successor:
                successor.load()

    disk = NoLocks()
    save(FOLDER, 1, 0, how=on(disk, attempt=1))
    with pytest.raises(CheckpointError) as caught:
        save(FOLDER, 2, 0, how=on(disk, attempt=1))
    assert caught.value.code == "checkpoint-fenced"
    assert [one.step for one in committed(disk, FOLDER)] == [1]


def test_a_fence_that_rots_is_known_from_the_checkpoints():
    disk = ForgetfulDisk()
    save(FOLDER, 1, 0, how=on(disk, attempt=3))
    disk.rot(FOLDER / "fence.json", 100)
    with pytest.raises(CheckpointError):
        save(FOLDER, 2, 0, how=on(disk, attempt=2))


def test_the_attempt_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("TENFOLD_ATTEMPT", "4")
    assert attempt_here() == 4
    monkeypatch.setenv("TENFOLD_ATTEMPT", "four")
    assert attempt_here() == 0


def test_two_launches_are_told_apart(monkeypatch):
    monkeypatch.setenv("MASTER_PORT", "29500")
    first = run_here()
    monkeypatch.setenv("MASTER_PORT", "29501")
    assert run_here() != first


def test_a_folder_that_another_process_writes_to_is_busy(tmp_path: Path):
    save(tmp_path, 1, 0)
    holder = os.open(tmp_path / "lock", os.O_RDWR)
    fcntl.flock(holder, fcntl.LOCK_EX)
    try:
        with pytest.raises(CheckpointError, match=f"process {os.getpid()} on") as caught:
            save(tmp_path, 2, 0, how=How(wait_s=0.01))
        assert caught.value.code == "checkpoint-folder-busy"
    finally:
        os.close(holder)
    save(tmp_path, 2, 0)


def test_a_file_system_without_locks_is_written_to_and_said_to_be_one(
    tmp_path: Path, monkeypatch, caplog
):
    def none(file: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", none)
    assert save(tmp_path, 1, 0).is_dir()
    assert "cannot lock" in caplog.text
