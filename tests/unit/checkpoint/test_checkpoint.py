"""Saving and loading: what stays, what is passed over, and what is said about it."""

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from checkpoint_builders import FOLDER, on, same
from tenfold.checkpoint import CheckpointError, How, load, load_at, newest, save, verify
from tenfold.checkpoint import files as real
from tenfold.checkpoint.manifest import committed
from tests.rigs.forgetful import ForgetfulDisk

VALUES = {"weights": np.arange(1000.0), "step": 7, "note": ("adam", None, b"\x00\xff")}


def saved(disk: ForgetfulDisk, steps: range, keep: int = 2) -> list[Path]:
    return [save(FOLDER, step, {"s": np.full(50, step)}, keep=keep, how=on(disk)) for step in steps]


def steps(disk: ForgetfulDisk) -> list[int]:
    return [entry.step for entry in committed(disk, FOLDER)]


def test_what_was_saved_is_loaded(tmp_path: Path):
    path = save(tmp_path / "new" / "run", 1200, VALUES)
    assert path == tmp_path / "new" / "run" / "step-0000001200-save-000001"
    found = load(tmp_path / "new" / "run")
    assert found is not None
    assert (found.step, found.path, found.passed_over) == (1200, path, ())
    assert same(found.values, VALUES)
    assert (found.meta["ranks"], found.meta["save"]) == (1, 1)
    found.values["weights"][0] = 5.0


def test_a_checkpoint_is_files_that_any_tool_reads(tmp_path: Path):
    path = save(tmp_path, 3, VALUES)
    names = ["manifest.json", "shard-00000.bin", "shard-00000.json"]
    assert sorted(os.listdir(path)) == names
    body = json.loads((path / "manifest.json").read_text())["body"]
    assert body["step"] == 3
    size, sha256 = body["files"]["shard-00000.bin"]
    assert size == 8000 + 2
    told = subprocess.run(["sha256sum", path / "shard-00000.bin"], capture_output=True, check=True)
    assert told.stdout.split()[0].decode() == sha256


def test_nothing_is_pickled():
    room = Path(real.__file__).parent
    assert [path for path in room.glob("*.py") if "import pickle" in path.read_text()] == []


def test_where_nothing_was_saved_nothing_is_loaded(tmp_path: Path):
    assert load(tmp_path) is None
    assert load(tmp_path / "no-such-folder") is None
    assert verify(tmp_path) == []


def test_the_newest_two_stay():
    disk = ForgetfulDisk()
    saved(disk, range(5))
    assert steps(disk) == [4, 3]
    saved(disk, range(5, 9), keep=3)
    assert steps(disk) == [8, 7, 6]


def test_the_newest_is_the_one_that_was_saved_last_not_the_one_with_the_highest_step():
    disk = ForgetfulDisk()
    saved(disk, range(100, 102))
    saved(disk, range(50, 51))
    found = load(FOLDER, files=disk)
    assert found is not None
    assert found.step == 50
    assert steps(disk) == [50, 101]


def test_a_step_that_is_saved_again_is_written_beside_the_first(tmp_path: Path):
    first, second = (save(tmp_path, 9, {"try": number}) for number in (1, 2))
    assert first != second
    found = load(tmp_path)
    assert found is not None
    assert found.values == {"try": 2}
    assert load_at(first).values == {"try": 1}


@pytest.mark.parametrize("name", ["shard-00000.bin", "shard-00000.json", "manifest.json"])
def test_one_bit_that_rots_anywhere_makes_it_fall_back_and_say_why(name: str):
    for bit in range(0, 1200, 37):
        disk = ForgetfulDisk()
        _, newest = saved(disk, range(2))
        disk.rot(newest / name, bit)
        found = load(FOLDER, files=disk)
        assert found is not None
        assert found.step == 0
        [report] = found.passed_over
        assert (report.path, report.state) == (newest, "damaged")
        assert report.problem
        assert [one.state for one in verify(FOLDER, files=disk)] == ["damaged", "valid"]


def test_files_that_are_missing_cut_or_swapped_make_it_fall_back(tmp_path: Path):
    harms = [
        lambda path: (path / "manifest.json").unlink(),
        lambda path: (path / "shard-00000.bin").unlink(),
        lambda path: os.truncate(path / "shard-00000.bin", 10),
        lambda path: (path / "manifest.json").write_text("[]"),
        lambda path: (path / "manifest.json").write_bytes(b"\xff\xfe"),
        lambda path: path.rename(path.with_name("step-0000000099-save-000099")),
    ]
    for number, harm in enumerate(harms):
        folder = tmp_path / str(number)
        save(folder, 1, VALUES)
        harm(save(folder, 2, VALUES))
        found = load(folder)
        assert found is not None
        assert found.step == 1
        assert len(found.passed_over) == 1


def test_the_newest_that_holds_is_known_without_loading_it():
    disk = ForgetfulDisk()
    assert newest(FOLDER, files=disk) is None
    older, latest = saved(disk, range(2))
    disk.rot(latest / "shard-00000.bin", 0)
    quick, sure = (newest(FOLDER, hashes=hashes, files=disk) for hashes in (False, True))
    assert quick is not None
    assert sure is not None
    assert (quick.path, sure.path) == (latest, older)
    assert sure.at_ms is not None
    disk.remove(latest / "shard-00000.bin")
    assert newest(FOLDER, files=disk) == sure


def test_where_none_holds_that_is_an_error_and_not_a_new_beginning():
    disk = ForgetfulDisk()
    for path in saved(disk, range(2)):
        disk.rot(path / "shard-00000.bin", 0)
    with pytest.raises(CheckpointError, match="none of 2 checkpoints") as caught:
        load(FOLDER, files=disk)
    assert caught.value.code == "checkpoint-none-valid"


def test_a_damaged_one_does_not_count_among_those_kept():
    disk = ForgetfulDisk()
    _, newest = saved(disk, range(2))
    disk.rot(newest / "shard-00000.bin", 0)
    # This process has read step 1 back when it wrote it; only reading it again shows.
    load(FOLDER, files=disk)
    saved(disk, range(2, 3))
    assert steps(disk) == [2, 1, 0]
    saved(disk, range(3, 4))
    assert steps(disk) == [3, 2]


def test_a_full_disk_leaves_the_old_ones_and_says_so():
    disk = ForgetfulDisk()
    saved(disk, range(2))
    disk.room = 300
    with pytest.raises(CheckpointError, match="disk full while writing") as caught:
        saved(disk, range(2, 3))
    assert caught.value.code == "checkpoint-disk-full"
    assert [one.state for one in verify(FOLDER, files=disk)] == ["valid", "valid"]
    disk.room = None
    saved(disk, range(3, 4))
    assert steps(disk) == [3, 1]


def test_a_disk_may_fill_up_at_any_byte():
    needed = ForgetfulDisk(room=10**6)
    saved(needed, range(1))
    used = 10**6 - (needed.room or 0)
    assert used > 1000
    for room in range(0, used, 29):
        disk = ForgetfulDisk()
        saved(disk, range(2))
        disk.room = room
        with pytest.raises(CheckpointError) as caught:
            saved(disk, range(2, 3))
        assert caught.value.code == "checkpoint-disk-full"
        assert disk.room == room, "what was written of it is given back"
        found = [(one.step, one.state) for one in verify(FOLDER, files=disk)]
        assert found == [(1, "valid"), (0, "valid")]


def test_a_real_disk_that_refuses_leaves_the_old_ones(tmp_path: Path, monkeypatch):
    save(tmp_path, 1, VALUES)

    def refuse(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        with pytest.raises(CheckpointError) as caught:
            save(tmp_path, 2, VALUES)
    assert caught.value.code == "checkpoint-not-written"
    [report] = verify(tmp_path)
    assert (report.step, report.state) == (1, "valid")


def test_a_disk_that_writes_something_else_is_found_by_reading_back():
    class Wrong(ForgetfulDisk):
        def write(self, path, chunks):
            super().write(path, chunks)
            if path.suffix == ".bin":
                self.rot(path, 3)

    disk = Wrong()
    with pytest.raises(CheckpointError) as caught:
        saved(disk, range(1))
    assert caught.value.code == "checkpoint-read-back-differs"
    assert load(FOLDER, files=disk) is None
    save(FOLDER, 1, b"abc", how=How(files=disk, read_back=False))
    assert [one.state for one in verify(FOLDER, files=disk)] == ["damaged"]


def test_what_a_dead_writer_left_is_reported_and_swept_away(tmp_path: Path):
    save(tmp_path, 1, VALUES)
    left = tmp_path / "step-0000000002-save-000002.tmp-abc123"
    left.mkdir()
    (left / "shard-00000.bin").write_bytes(b"half")
    assert [one.state for one in verify(tmp_path)] == ["valid", "unfinished"]
    found = load(tmp_path)
    assert found is not None
    assert found.step == 1
    save(tmp_path, 3, VALUES)
    assert not left.exists()


def test_a_real_disk_is_asked_to_keep_every_file_before_its_name_counts(
    tmp_path: Path, monkeypatch
):
    save(tmp_path, 1, VALUES)
    order: list[str] = []
    sync, rename = os.fsync, Path.rename

    def synced(descriptor: int) -> None:
        sync(descriptor)
        order.append(
            "sync " + re.sub(r"tmp-\w+", "tmp", Path(f"/proc/self/fd/{descriptor}").readlink().name)
        )

    def renamed(old: Path, new: Path) -> Path:
        order.append(f"name {new.name}")
        return rename(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "rename", renamed)
    name = save(tmp_path, 2, VALUES).name
    wanted = ["sync shard-00000.bin", "sync shard-00000.json.new", "name shard-00000.json"]
    wanted += [f"sync {name}.tmp", "sync manifest.json.new", "name manifest.json"]
    wanted += [f"sync {name}.tmp", f"name {name}", f"sync {tmp_path.name}"]
    seen = iter(order)
    assert all(one in seen for one in wanted), order


def test_strange_neighbours_are_left_alone(tmp_path: Path):
    for name in ("notes.txt", "step-12", "step-0000000001-save-000001.bak"):
        (tmp_path / name).write_text("mine")
    (tmp_path / "step-0000000007-save-000009").write_text("a file, not a folder")
    save(tmp_path, 1, VALUES)
    found = load(tmp_path)
    assert found is not None
    assert found.step == 1
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_rename_that_went_through_twice_is_no_failure(tmp_path: Path):
    (tmp_path / "new").mkdir()
    real.DISK.rename(tmp_path / "old", tmp_path / "new")
    with pytest.raises(FileNotFoundError):
        real.DISK.rename(tmp_path / "old", tmp_path / "newer")


@pytest.mark.parametrize("wrong", [{"step": -1}, {"keep": 1}, {"rank": 2, "ranks": 2}])
def test_arguments_that_cannot_be_are_refused(tmp_path: Path, wrong: dict[str, int]):
    with pytest.raises(CheckpointError) as caught:
        save(tmp_path, **{"step": 1, "values": 0, **wrong})
    assert caught.value.code == "checkpoint-wrong-argument"


def test_importing_it_brings_in_nothing_heavy_and_nothing_else_of_tenfold():
    program = "import sys, tenfold.checkpoint; print(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    assert [name for name in ("numpy", "torch", "msgspec", "pickle") if name in loaded] == []
    ours = [name for name in loaded if name.startswith("tenfold.")]
    assert [name for name in ours if not name.startswith("tenfold.checkpoint")] == []
