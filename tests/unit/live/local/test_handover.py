"""The link between spawner and supervisor, and the supervisors that rest, without processes."""

import fcntl
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenfold.live.local.attempt.folder import AttemptFolder, ExecutorDir
from tenfold.live.local.attempt.recent_ends import RecentEnds
from tenfold.live.local.member.members import open_pipe
from tenfold.live.local.spawner.handover import (
    ATTEMPT_OVER,
    NOTE,
    SpawnerChannel,
    hand_over,
    open_link,
)
from tenfold.live.local.spawner.notes import NoteWriter, open_notes
from tenfold.live.local.spawner.supervisor_pool import IDLE_MAX, IDLE_S_MAX, SupervisorPool
from tenfold.live.local.spawner.watch import SupervisorWatch

NO_PROCESS = 0


@pytest.fixture
def home(tmp_path: Path) -> ExecutorDir:
    home = ExecutorDir(str(tmp_path / "state"))
    home.prepare()
    return home


@pytest.fixture
def signals() -> Iterator[tuple[int, int]]:
    reader, writer = open_pipe()
    yield reader, writer
    os.close(reader)
    os.close(writer)


def locked(path: Path) -> int:
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def is_locked(path: Path) -> bool:
    asked = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(asked, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(asked)
    return False


def resting(
    pool: SupervisorPool, folder: AttemptFolder, now_s: float = 0.0
) -> tuple[SupervisorWatch, SpawnerChannel]:
    ours, theirs = open_link()
    watched = SupervisorWatch(folder, NO_PROCESS, -1, ours)
    pool.add_idle(watched, now_s)
    return watched, SpawnerChannel(theirs.detach())


def test_an_attempt_arrives_with_its_lock(
    home: ExecutorDir, tmp_path: Path, signals: tuple[int, int]
):
    ours, theirs = open_link()
    channel, file = SpawnerChannel(theirs.detach()), tmp_path / "record"
    lock = locked(file)
    assert hand_over(ours, home.attempt("job/1", 7), lock)
    os.close(lock)
    assert is_locked(file), "it travels with the message"
    taken = channel.wait_for_next(home, signals[0], RecentEnds())
    assert taken is not None
    folder, lock = taken
    assert (folder.job, folder.number) == ("job/1", 7)
    assert not os.get_inheritable(lock)
    assert is_locked(file)
    os.close(lock)
    assert not is_locked(file)


def test_a_lock_that_nobody_took_is_free_again(home: ExecutorDir, tmp_path: Path):
    ours, theirs = open_link()
    lock = locked(tmp_path / "record")
    assert hand_over(ours, home.attempt("job", 1), lock)
    os.close(lock)
    theirs.close()
    assert not is_locked(tmp_path / "record")
    assert not hand_over(ours, home.attempt("job", 1), os.open(tmp_path, os.O_RDONLY))


def test_who_rests_leaves_when_it_is_told_or_alone(home: ExecutorDir, signals: tuple[int, int]):
    pool = SupervisorPool()
    watched, channel = resting(pool, home.attempt("job", 1))
    watched.release()
    assert channel.wait_for_next(home, signals[0], RecentEnds()) is None
    _, channel = resting(pool, home.attempt("job", 2))
    os.write(signals[1], bytes([signal.SIGCHLD, signal.SIGTERM]))
    assert channel.wait_for_next(home, signals[0], RecentEnds()) is None


def test_an_attempt_that_came_with_a_signal_is_taken(
    home: ExecutorDir, tmp_path: Path, signals: tuple[int, int]
):
    pool = SupervisorPool()
    _, channel = resting(pool, home.attempt("job", 1))
    os.write(signals[1], bytes([signal.SIGTERM]))
    assert pool.assign(home.attempt("job", 2), locked(tmp_path / "record")) is not None
    taken = channel.wait_for_next(home, signals[0], RecentEnds())
    assert taken is not None
    assert os.read(signals[0], 8) == bytes([signal.SIGTERM]), "the attempt hears of it"


def test_the_last_to_rest_begins_first(home: ExecutorDir, tmp_path: Path):
    pool = SupervisorPool()
    first, _first_post = resting(pool, home.attempt("a", 1), 0.0)
    second, _second_post = resting(pool, home.attempt("b", 1), 0.1)
    begun = pool.assign(home.attempt("c", 1), locked(tmp_path / "record"))
    assert begun is not None
    assert begun.link is second.link
    assert begun.supervises(home.attempt("c", 1))
    pool.forget(first)
    assert pool.assign(home.attempt("d", 1), locked(tmp_path / "other")) is None


def test_nobody_rests_for_long_and_not_all_do(home: ExecutorDir, signals: tuple[int, int]):
    pool = SupervisorPool()
    assert pool.wait_s(0.0) is None
    members = [resting(pool, home.attempt("job", number)) for number in range(IDLE_MAX + 1)]
    assert members[-1][1].wait_for_next(home, signals[0], RecentEnds()) is None, "one too many"
    assert pool.wait_s(0.25) == IDLE_S_MAX - 0.25
    pool.release_expired(IDLE_S_MAX)
    assert pool.wait_s(IDLE_S_MAX) is None
    for _, channel in members:
        assert channel.wait_for_next(home, signals[0], RecentEnds()) is None


def test_one_that_was_signalled_is_given_nothing(
    home: ExecutorDir, tmp_path: Path, signals: tuple[int, int]
):
    """The signal may still be on its way, and would hit the wrong attempt."""
    pool = SupervisorPool()
    ours, theirs = open_link()
    gone = os.pidfd_open(os.getpid())
    watched = SupervisorWatch(home.attempt("job", 1), NO_PROCESS, gone, ours)
    watched.was_signalled = True
    pool.add_idle(watched, 0.0)
    assert pool.assign(home.attempt("job", 2), locked(tmp_path / "record")) is None
    assert SpawnerChannel(theirs.detach()).wait_for_next(home, signals[0], RecentEnds()) is None
    os.close(gone)


def test_notes_take_the_link_and_then_the_pipe(home: ExecutorDir):
    pipe = open_notes(home.path)
    ours, theirs = open_link()
    channel = SpawnerChannel(theirs.detach())
    notes = NoteWriter(home.path, channel)
    notes.send({"saw": "started", "at_ms": 1})
    assert ours.recv(100) == NOTE + b'{"saw":"started","at_ms":1}\n'
    assert channel.report_end(b"end\n")
    assert ours.recv(100) == ATTEMPT_OVER + b"end\n"
    ours.close()
    assert not channel.report_end(b"end\n")
    notes.send({"saw": "started", "at_ms": 2})
    assert os.read(pipe, 100) == b'{"saw":"started","at_ms":2}\n'
    os.close(pipe)
