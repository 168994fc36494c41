"""Which ends are synced, and when: those that no journal took."""

import os
from pathlib import Path

import pytest

from tenfold.live.local.attempt.ending import end_line
from tenfold.live.local.attempt.folder import AttemptFolder, ExecutorDir
from tenfold.live.local.attempt.recent_ends import SYNC_AFTER_MS, RecentEnds


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every file and folder that is synced, in order."""
    found: list[str] = []
    sync = os.fsync

    def note(file: int) -> None:
        found.append(os.readlink(f"/proc/self/fd/{file}"))
        sync(file)

    monkeypatch.setattr(os, "fsync", note)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> AttemptFolder:
    home = ExecutorDir(str(tmp_path))
    home.prepare()
    folder = home.attempt("job", 1)
    Path(folder.path).mkdir(parents=True)
    Path(folder.marker).touch()
    return folder


def written(folder: AttemptFolder, now_ms: int = 0) -> RecentEnds:
    folder.write_end(end_line("exited", started_ms=1, code=0), durable=False)
    recent = RecentEnds()
    recent.add(folder, now_ms)
    return recent


def everything(folder: AttemptFolder) -> list[str]:
    attempts = os.path.dirname(folder.job_folder)
    return [f"{folder.path}/end.json", folder.path, folder.job_folder, attempts]


def test_an_end_that_nobody_took_is_synced_after_a_while(folder: AttemptFolder, synced: list[str]):
    recent = written(folder)
    recent.sync_due(SYNC_AFTER_MS - 1)
    assert (synced, recent.wait_ms(SYNC_AFTER_MS - 1)) == ([], 1)
    recent.sync_due(SYNC_AFTER_MS)
    assert (synced, recent.wait_ms(SYNC_AFTER_MS)) == (everything(folder), None)


def test_an_end_that_the_journal_has_is_not_synced(folder: AttemptFolder, synced: list[str]):
    recent = written(folder)
    folder.settle()
    recent.sync_due(SYNC_AFTER_MS)
    assert (synced, recent.wait_ms(SYNC_AFTER_MS)) == ([], None)


def test_a_supervisor_that_exits_syncs_what_is_left(folder: AttemptFolder, synced: list[str]):
    written(folder).sync_all()
    assert synced == everything(folder)


def test_a_folder_that_is_gone_keeps_nothing_waiting(folder: AttemptFolder):
    recent = written(folder)
    Path(f"{folder.path}/end.json").unlink()
    recent.sync_all()
    assert recent.wait_ms(0) is None
