"""A folder that a job filled or removed is put back; what supervisors write is kept."""

import os
from pathlib import Path
from typing import cast

from tenfold.live.local.attempt.ending import end_line, write_end
from tenfold.live.local.attempt.folder import AttemptFolder, ExecutorDir
from tenfold.live.local.attempt.repair import free_space, is_planted, restore
from tenfold.live.local.spawner.notes import NoteWriter
from tenfold.live.local.spawner.wire import EndLine, LaunchLine

LAUNCH = cast("LaunchLine", {"job": "own-1", "attempt": 1, "team": "red"})
LOG_BYTES = 1_000


def attempt(home: Path) -> tuple[AttemptFolder, int]:
    state = ExecutorDir(str(home))
    state.prepare()
    folder = state.attempt("own-1", 1)
    lock = folder.make(LAUNCH)
    assert lock is not None
    return folder, lock


def test_a_folder_that_a_job_filled_keeps_only_what_its_supervisor_wrote(tmp_path: Path):
    folder, _ = attempt(tmp_path)
    here = Path(folder.path)
    for name in ("stop.json", "0.log", "0.log.1", "0.log@400", "0.beat"):
        (here / name).write_bytes(b"own")
    (here / "1.log").write_bytes(b"x" * (LOG_BYTES + 1))
    (here / "filler").write_bytes(b"x")
    (here / "deep" / "er").mkdir(parents=True)
    (here / "link").symlink_to("/etc")
    free_space(folder, LOG_BYTES)
    left = {"record", "stop.json", "0.log", "0.log.1", "0.log@400", "0.beat"}
    assert set(os.listdir(here)) == left
    assert Path("/etc").is_dir()


def test_a_full_disk_is_written_to_once_the_files_of_the_job_are_gone(tmp_path: Path):
    folder, _ = attempt(tmp_path)
    filler = Path(folder.path, "filler")
    filler.write_bytes(b"x")

    class FullWhileFilled(AttemptFolder):
        def write_end(self, end: EndLine, *, durable: bool = True) -> None:
            if filler.exists():
                raise OSError(28, "No space left on device")
            super().write_end(end, durable=durable)

    full = FullWhileFilled(folder.home, folder.job, folder.number)
    waits: list[float] = []
    write_end(full, end_line("exited", started_ms=1, code=3), NoteWriter("/"), waits.append)
    end = folder.end()
    assert end is not None
    assert (end["exit_code"], waits) == (3, [])


def test_a_removed_folder_gets_its_record_and_its_lock_back(tmp_path: Path):
    folder, lock = attempt(tmp_path)
    Path(folder.path, "record").unlink()
    Path(folder.path).rmdir()
    seen = ExecutorDir(str(tmp_path))
    assert [one.number for one in seen.unsettled()] == [1]
    assert seen.attempt("own-1", 1).is_locked()
    restore(folder)
    assert os.path.samefile(f"{folder.path}/record", folder.marker)
    assert folder.is_locked()
    os.close(lock)
    assert not folder.is_locked()


def test_a_folder_without_marker_and_end_is_not_one_of_the_spawner(tmp_path: Path):
    folder, _ = attempt(tmp_path)
    assert not is_planted(folder)
    folder.write_end(end_line("exited", started_ms=1, code=0))
    folder.settle()
    assert not is_planted(folder)
    planted = folder.home.attempt("own-1", 2)
    Path(planted.path).mkdir()
    assert is_planted(planted)
