"""Files that a job wrote to be read by the control plane: of any kind, size and content.

The loop reads none of them. What reads them takes small regular files only, and believes no time
that is in the future.
"""

import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from threading import Event as Gate

import pytest
from msgspec import UNSET

from hostile.jobs.hurried_loop import hurried_loop
from hostile.plane import API, Plane, Watch
from patience import until
from tenfold import checkpoint
from tenfold.checkpoint.last_saved import CHECKPOINTS_MOST, MANIFEST_BYTES_MOST, last_saved_ms
from tenfold.checkpoint.sealed import seal, unseal
from tenfold.live.executor import AttemptLost
from tenfold.live.local.attempt.folder import ExecutorDir
from tenfold.live.local.attempt.reports import end_observation
from tenfold.live.local.executor import LocalExecutor, state_of
from tenfold.model.events import JobEnded, JobStarted, JobStopped
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.job.run_spec import CheckpointSpec, RunSpec
from tenfold.model.units import Millis

GIB = 1 << 30
ALLOCATED_MOST = 8 * MANIFEST_BYTES_MOST
Forge = Callable[[Path], None]


def sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, GIB)


def endless_link(path: Path) -> None:
    path.symlink_to("/dev/zero")


def linked_elsewhere(path: Path) -> None:
    other = path.with_name("other.json")
    other.write_bytes(manifest_of(path.parent, 1_000))
    path.symlink_to(other)


def deep(path: Path) -> None:
    path.write_bytes(b"[" * 500_000)


def many_digits(path: Path) -> None:
    path.write_bytes(b'{"sha256": "", "body": ' + b"9" * 1_000_000 + b"}")


def no_object(path: Path) -> None:
    path.write_bytes(b"[]")


FORGERIES: list[Forge] = [
    sparse,
    os.mkfifo,
    Path.mkdir,
    endless_link,
    linked_elsewhere,
    deep,
    many_digits,
    no_object,
]


def manifest_of(folder: Path, at_ms: int) -> bytes:
    """Return a manifest with no ranks, as anybody can make it: the hash is no signature."""
    step, save = (int(part) for part in folder.name.split("-")[1::2])
    body: dict[str, object] = {
        "format": 1,
        "step": step,
        "save": save,
        "ranks": 0,
        "attempt": 1,
        "run": "",
        "nonce": "",
        "at_ms": at_ms,
        "files": {},
    }
    made = seal(body)
    assert unseal(made, "manifest") == body
    return made


def entry(folder: Path, save: int) -> Path:
    made = folder / f"step-{save:010d}-save-{save:06d}"
    made.mkdir(parents=True)
    return made


@pytest.mark.parametrize("forge", FORGERIES, ids=lambda one: one.__name__)
def test_a_manifest_that_is_none_is_passed_over_at_no_cost(tmp_path: Path, forge: Forge):
    checkpoint.save(tmp_path, 1, {"weight": 1.0})
    saved_ms = last_saved_ms(tmp_path)
    assert saved_ms is not None
    for save in range(2, CHECKPOINTS_MOST):
        forge(entry(tmp_path, save) / "manifest.json")
    tracemalloc.start()
    try:
        assert last_saved_ms(tmp_path) == saved_ms
        assert tracemalloc.get_traced_memory()[1] < ALLOCATED_MOST
    finally:
        tracemalloc.stop()


def test_only_the_newest_of_many_forged_checkpoints_are_examined(tmp_path: Path):
    checkpoint.save(tmp_path, 1, {"weight": 1.0})
    for save in range(2, CHECKPOINTS_MOST + 2):
        sparse(entry(tmp_path, save) / "manifest.json")
    assert last_saved_ms(tmp_path) is None


def test_a_checkpoint_folder_that_is_a_link_is_passed_over(tmp_path: Path):
    real = entry(tmp_path / "elsewhere", 7)
    (real / "manifest.json").write_bytes(manifest_of(real, 1_000))
    own = tmp_path / "own"
    own.mkdir()
    (own / real.name).symlink_to(real)
    assert last_saved_ms(tmp_path / "elsewhere") == 1_000
    assert last_saved_ms(own) is None
    (tmp_path / "linked").symlink_to(tmp_path / "elsewhere")
    assert last_saved_ms(tmp_path / "linked") == 1_000, "the folder itself may be a link"


@pytest.mark.parametrize("forged", [10**30, 2**62])
def test_a_save_in_the_far_future_is_progress_until_now_at_most(tmp_path: Path, forged: int):
    with hurried_loop(tmp_path, lambda job, run_spec: Millis(forged)) as loop:
        job_id = loop.submit("false", checkpoint=CheckpointSpec(folder="ckpt"))
        stopped = loop.wait(lambda one: isinstance(one, JobStopped))
        loop.wait(lambda one: isinstance(one, JobStarted), 2)
    assert isinstance(stopped, JobStopped)
    assert stopped.job_id == job_id
    begun = next(one for one in loop.events if isinstance(one, JobStarted))
    assert stopped.progress_ms <= stopped.at_ms - begun.at_ms
    assert stopped.failure is not UNSET
    assert stopped.failure.saved_ms == stopped.at_ms


def test_a_read_that_hangs_holds_up_nobody_and_the_job_not_for_ever(tmp_path: Path):
    """The clock of the loop jumps over the time that the read may take."""
    gate, asked = Gate(), Gate()

    def saved_at(job: Job, run_spec: RunSpec) -> Millis | None:
        asked.set()
        gate.wait()
        return None

    with hurried_loop(tmp_path, saved_at) as loop:
        slow = loop.submit("false", checkpoint=CheckpointSpec(folder="ckpt"))
        other = loop.submit("true")
        ended = loop.end_of(other)
        stopped = loop.wait(lambda one: isinstance(one, JobStopped) and one.job_id == slow)
        assert asked.is_set()
        assert not gate.is_set()
        gate.set()
    assert isinstance(ended, JobEnded)
    assert ended.status == "completed"
    assert isinstance(stopped, JobStopped)
    assert stopped.failure is not UNSET
    assert stopped.failure.saved_ms is UNSET


DAMAGE = [
    b"",
    b"{",
    b"[]",
    b"{}",
    b"[" * 100_000,
    json.dumps({"how": "exited", "at_ms": 10**30}).encode(),
    json.dumps({"how": "no such end"}).encode(),
]


@pytest.mark.parametrize("content", DAMAGE, ids=range(len(DAMAGE)))
@pytest.mark.parametrize("name", ["end.json", "record", "stop.json"])
def test_damaged_files_of_an_attempt_are_read_without_an_error(
    tmp_path: Path, name: str, content: bytes
):
    """Without users for teams, a job can write to its attempt folder."""
    folder = ExecutorDir(str(tmp_path)).attempt("job-1", 1)
    Path(folder.path).mkdir(parents=True)
    Path(folder.path, name).write_bytes(content)
    check_readable(folder.path, tmp_path)


@pytest.mark.parametrize("forge", [sparse, os.mkfifo, endless_link, Path.mkdir])
@pytest.mark.parametrize("name", ["end.json", "record", "stop.json"])
def test_special_files_in_an_attempt_are_not_waited_for(tmp_path: Path, name: str, forge: Forge):
    folder = ExecutorDir(str(tmp_path)).attempt("job-1", 1)
    Path(folder.path).mkdir(parents=True)
    forge(Path(folder.path, name))
    check_readable(folder.path, tmp_path)


def check_readable(path: str, home: Path) -> None:
    """An attempt can be listed, and has no end or one that is lost."""
    folder = ExecutorDir(str(home)).attempt("job-1", 1)
    assert folder.path == path
    end = folder.end()
    if end is not None:
        assert isinstance(end_observation(folder, end), AttemptLost)
    folder.stop()
    folder.record()
    assert state_of(folder).phase in ("orphaned", "lost")


def test_notes_that_no_supervisor_wrote_are_passed_over(tmp_path: Path):
    executor = LocalExecutor(str(tmp_path))
    forged = [
        b"[]",
        b"{}",
        b'{"saw": "ended"}',
        b'{"saw": "ended", "at_ms": 1, "job": "job-1", "attempt": 1, "end": {"how": "exited"}}',
        b'{"saw": "ended", "at_ms": 1, "job": "job-1", "attempt": 1, "end": []}',
        b'{"saw": "node-lost", "at_ms": 1, "node": ["n1"]}',
        b"\xff\xfe",
    ]
    pipe = os.open(tmp_path / "notes", os.O_WRONLY | os.O_NONBLOCK)
    os.write(pipe, b"".join(line + b"\n" for line in forged))
    last = b'{"saw": "refused", "at_ms": 1, "job": "job-2", "attempt": 1, "reason": %s}\n'
    os.write(pipe, last % b'{"code": "last", "sentence": "that is all"}')
    seen: list[str] = []

    def is_over() -> bool:
        seen.extend(str(getattr(one, "job_id", "")) for one in executor.observations())
        return JobId("job-2") in seen

    until(is_over)
    assert seen == ["job-2"]
    executor.stop_spawner()
    executor.close()


def test_fake_manifests_of_a_gibibyte_cost_neither_memory_nor_answers(plane: Plane, watch: Watch):
    forged = (
        "for n in 1 2 3 4 5 6 7 8 9 10 11 12; do "
        "d=ckpt/step-000000000$((n % 10))-save-0000$((n + 10)); mkdir -p $d; "
        "truncate -s 1G $d/manifest.json; done; exit 1"
    )
    ask = {"command": ["sh", "-c", forged], "checkpoint": {"dir": "ckpt"}}
    with plane.wire() as red, plane.wire(team="blue") as blue:
        made = red.post(f"{API}/jobs", ask)
        assert made.status == 201, made
        job_id = made.json()["id"]
        watch.count(sent_bytes=1_000, jobs=1)
        while True:
            answer = blue.post(f"{API}/jobs", {"command": ["true"]})
            watch.count(sent_bytes=100, jobs=1)
            assert answer.status == 201, answer
            if red.get(f"{API}/jobs/{job_id}").json()["attempts"][-1]["number"] > 1:
                break
        assert red.delete(f"{API}/jobs/{job_id}").status == 202
