"""Which folders of attempts go, and which stay whatever their age."""

import os
from pathlib import Path

import pytest

from tenfold.live.local.attempt.ending import end_line
from tenfold.live.local.attempt.folder import AttemptFolder, ExecutorDir
from tenfold.live.local.attempt.pruning import DAY_MS, GIB, AttemptRetention, prune
from tenfold.model.errors import InputError
from tenfold.server.runtime.settings import Settings, check
from unit.live.local.test_attempt_folder import launch

NOW_MS = 100 * DAY_MS
ALL = AttemptRetention(days=1_000, gib=1_000)


@pytest.fixture
def home(tmp_path: Path) -> ExecutorDir:
    home = ExecutorDir(str(tmp_path / "state"))
    home.prepare()
    return home


def attempt(
    home: ExecutorDir,
    job: str,
    number: int = 1,
    *,
    days: float = 0,
    size: int = 0,
    settled: bool = True,
) -> AttemptFolder:
    """Make the folder of an attempt that ended so many days ago."""
    folder = home.attempt(job, number)
    lock = folder.make(launch(job, number))
    assert lock is not None
    Path(folder.path, "0.log").write_bytes(b"x" * size)
    folder.write_end(end_line("exited", started_ms=1, code=0))
    os.close(lock)
    ended_ns = round((NOW_MS - days * DAY_MS) * 1_000_000)
    os.utime(f"{folder.path}/end.json", ns=(ended_ns, ended_ns))
    if settled:
        folder.settle()
    return folder


def left(home: ExecutorDir) -> list[str]:
    """Return the jobs that still have a folder."""
    return sorted(os.listdir(f"{home.path}/attempts"))


def pruned(home: ExecutorDir, kept: AttemptRetention, *active_jobs: str) -> int:
    return prune(home, kept, NOW_MS, lambda: frozenset(active_jobs)).folders


def test_attempts_older_than_the_days_go(home: ExecutorDir):
    attempt(home, "old", days=15)
    attempt(home, "young", days=13)
    assert pruned(home, AttemptRetention()) == 1
    assert left(home) == ["young"]


def test_the_newest_stay_up_to_the_size(home: ExecutorDir):
    for day in (1, 2, 3):
        attempt(home, f"job-{day}", days=day, size=1 << 20)
    assert pruned(home, AttemptRetention(gib=2.5 * (1 << 20) / GIB)) == 1
    assert left(home) == ["job-1", "job-2"]


def test_attempts_of_a_job_that_is_not_over_stay(home: ExecutorDir):
    attempt(home, "long", 1, days=90)
    assert pruned(home, AttemptRetention(days=0, gib=0), "long") == 0
    assert left(home) == ["long"]


def test_an_end_that_is_not_in_the_journal_yet_stays(home: ExecutorDir):
    folder = attempt(home, "job", days=90, settled=False)
    assert pruned(home, AttemptRetention(days=0, gib=0)) == 0
    folder.settle()
    assert pruned(home, AttemptRetention(days=0, gib=0)) == 1


def test_an_attempt_that_is_held_or_has_no_end_stays(home: ExecutorDir):
    held = home.attempt("held", 1)
    lock = held.make(launch("held"))
    assert lock is not None
    held.settle()
    assert pruned(home, AttemptRetention(days=0, gib=0)) == 0
    held.write_end(end_line("exited", started_ms=1, code=0))
    assert pruned(home, AttemptRetention(days=0, gib=0)) == 0, "its supervisor lives"
    os.close(lock)
    assert pruned(home, AttemptRetention(days=0, gib=0)) == 1
    assert left(home) == []


def test_what_was_moved_aside_before_a_kill_is_removed_the_next_time(home: ExecutorDir):
    folder = attempt(home, "job", days=90)
    os.rename(folder.path, f"{folder.job_folder}/1.gone")
    attempt(home, "job", 2, days=1)
    assert pruned(home, ALL) == 0
    assert os.listdir(folder.job_folder) == ["2"]


def test_names_that_are_no_plain_file_names_are_understood(home: ExecutorDir):
    attempt(home, "sweep-1[3]", days=90)
    assert pruned(home, AttemptRetention(), "sweep-1[3]") == 0
    assert pruned(home, AttemptRetention()) == 1


@pytest.mark.parametrize(
    "kept",
    [AttemptRetention(days=-1), AttemptRetention(gib=-1), AttemptRetention(days=float("nan"))],
)
def test_days_and_sizes_below_nothing_are_refused(kept: AttemptRetention, tmp_path: Path):
    with pytest.raises(InputError) as refused:
        check(Settings(state_dir=tmp_path, kept=kept))
    assert refused.value.code == "wrong-value"


def test_only_the_latest_attempts_of_a_job_stay_even_if_it_is_not_over(home: ExecutorDir):
    for number in range(1, 31):
        attempt(home, "often", number, days=0)
    assert pruned(home, AttemptRetention(), "often") == 10
    assert home.numbers("often") == list(range(11, 31))
    assert pruned(home, AttemptRetention(attempts=1)) == 19
    assert home.numbers("often") == [30]
