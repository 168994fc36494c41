"""The link between spawner and supervisor, and the supervisors that rest, without processes."""

import fcntl
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenfold.live.local.attempt.folder import AttemptFolder, Home
from tenfold.live.local.member.members import open_pipe
from tenfold.live.local.spawner.handover import NOTE, OVER, Post, hand_over, open_link
from tenfold.live.local.spawner.notes import NoteWriter, open_notes
from tenfold.live.local.spawner.supervisor_pool import REST_S_MOST, RESTING_MOST, SupervisorPool
from tenfold.live.local.spawner.watch import Watch

NO_PROCESS = 0


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(str(tmp_path / "state"))
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


def is_held(path: Path) -> bool:
    asked = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(asked, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(asked)
    return False


def resting(crew: SupervisorPool, folder: AttemptFolder, now_s: float = 0.0) -> tuple[Watch, Post]:
    ours, theirs = open_link()
    watched = Watch(folder, NO_PROCESS, -1, ours)
    crew.rest(watched, now_s)
    return watched, Post(theirs.detach())


def test_an_attempt_arrives_with_its_lock(home: Home, tmp_path: Path, signals: tuple[int, int]):
    ours, theirs = open_link()
    post, file = Post(theirs.detach()), tmp_path / "record"
    lock = locked(file)
    assert hand_over(ours, home.attempt("job/1", 7), lock)
    os.close(lock)
    assert is_held(file), "it travels with the message"
    taken = post.following(home, signals[0])
    assert taken is not None
    folder, lock = taken
    assert (folder.job, folder.number) == ("job/1", 7)
    assert not os.get_inheritable(lock)
    assert is_held(file)
    os.close(lock)
    assert not is_held(file)


def test_a_lock_that_nobody_took_is_free_again(home: Home, tmp_path: Path):
    ours, theirs = open_link()
    lock = locked(tmp_path / "record")
    assert hand_over(ours, home.attempt("job", 1), lock)
    os.close(lock)
    theirs.close()
    assert not is_held(tmp_path / "record")
    assert not hand_over(ours, home.attempt("job", 1), os.open(tmp_path, os.O_RDONLY))


def test_who_rests_leaves_when_it_is_told_or_alone(home: Home, signals: tuple[int, int]):
    crew = SupervisorPool()
    watched, post = resting(crew, home.attempt("job", 1))
    watched.let_go()
    assert post.following(home, signals[0]) is None
    _, post = resting(crew, home.attempt("job", 2))
    os.write(signals[1], bytes([signal.SIGCHLD, signal.SIGTERM]))
    assert post.following(home, signals[0]) is None


def test_an_attempt_that_came_with_a_signal_is_taken(
    home: Home, tmp_path: Path, signals: tuple[int, int]
):
    crew = SupervisorPool()
    _, post = resting(crew, home.attempt("job", 1))
    os.write(signals[1], bytes([signal.SIGTERM]))
    assert crew.begin(home.attempt("job", 2), locked(tmp_path / "record")) is not None
    taken = post.following(home, signals[0])
    assert taken is not None
    assert os.read(signals[0], 8) == bytes([signal.SIGTERM]), "the attempt hears of it"


def test_the_last_to_rest_begins_first(home: Home, tmp_path: Path):
    crew = SupervisorPool()
    first, _first_post = resting(crew, home.attempt("a", 1), 0.0)
    second, _second_post = resting(crew, home.attempt("b", 1), 0.1)
    begun = crew.begin(home.attempt("c", 1), locked(tmp_path / "record"))
    assert begun is not None
    assert begun.link is second.link
    assert begun.is_of(home.attempt("c", 1))
    crew.forget(first)
    assert crew.begin(home.attempt("d", 1), locked(tmp_path / "other")) is None


def test_nobody_rests_for_long_and_not_all_do(home: Home, signals: tuple[int, int]):
    crew = SupervisorPool()
    assert crew.wait_s(0.0) is None
    members = [resting(crew, home.attempt("job", number)) for number in range(RESTING_MOST + 1)]
    assert members[-1][1].following(home, signals[0]) is None, "one too many"
    assert crew.wait_s(0.25) == REST_S_MOST - 0.25
    crew.dismiss(REST_S_MOST)
    assert crew.wait_s(REST_S_MOST) is None
    for _, post in members:
        assert post.following(home, signals[0]) is None


def test_one_that_was_signalled_is_given_nothing(
    home: Home, tmp_path: Path, signals: tuple[int, int]
):
    """The signal may still be on its way, and would hit the wrong attempt."""
    crew = SupervisorPool()
    ours, theirs = open_link()
    gone = os.pidfd_open(os.getpid())
    watched = Watch(home.attempt("job", 1), NO_PROCESS, gone, ours)
    watched.was_signalled = True
    crew.rest(watched, 0.0)
    assert crew.begin(home.attempt("job", 2), locked(tmp_path / "record")) is None
    assert Post(theirs.detach()).following(home, signals[0]) is None
    os.close(gone)


def test_notes_take_the_link_and_then_the_pipe(home: Home):
    pipe = open_notes(home.path)
    ours, theirs = open_link()
    post = Post(theirs.detach())
    notes = NoteWriter(home.path, post)
    notes.say({"saw": "started", "at_ms": 1})
    assert ours.recv(100) == NOTE + b'{"saw":"started","at_ms":1}\n'
    assert post.over(b"end\n")
    assert ours.recv(100) == OVER + b"end\n"
    ours.close()
    assert not post.over(b"end\n")
    notes.say({"saw": "started", "at_ms": 2})
    assert os.read(pipe, 100) == b'{"saw":"started","at_ms":2}\n'
    os.close(pipe)
