"""A supervisor whose job ended by itself is given the next one, and nothing shows in that."""

import os
import select
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.executor.local.test_executor import LocalRig
from contract.executor.real_processes import FOREVER, JOB, launch, wait_for_a, wait_until_over
from tenfold.live.executor import AttemptEnded, AttemptLost, AttemptStarted
from tenfold.live.local.executor import LocalExecutor
from tenfold.model.ids import JobId
from tenfold.model.units import Millis

JOBS = 12
ROUND = "umask; pwd; ulimit -n; grep -E '^Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd"
AT_ONCE = Millis(0)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[LocalRig]:
    rig = LocalRig(tmp_path / "state")
    yield rig
    rig.close()


def supervisor(executor: LocalExecutor, job_id: JobId) -> int:
    return executor.home.attempt(job_id, 1).record()["supervisor"]


def run_one(executor: LocalExecutor, name: str, command: str = "true") -> int:
    """Run a job to its end, and return who watched it."""
    job_id = JobId(name)
    executor.start(launch(command, job_id=job_id))
    wait_until_over(executor)
    executor.settle([(job_id, 1)])
    return supervisor(executor, job_id)


def test_one_after_another_takes_fewer_supervisors_than_jobs(rig: LocalRig):
    executor = rig.connect()
    watchers = [run_one(executor, f"job-{number}") for number in range(JOBS)]
    assert len(set(watchers)) < JOBS


def test_a_later_job_finds_what_the_first_found(rig: LocalRig):
    executor = rig.connect()
    for number in range(JOBS):
        run_one(executor, f"job-{number}", ROUND)
    said = [
        executor.logs(JobId(f"job-{number}"), 1, 0)
        .tail.decode()
        .replace(f"/job-{number}\n", "/job\n")
        for number in range(JOBS)
    ]
    assert said == said[:1] * JOBS
    folders = [path for path in (rig.home / "teams").rglob("*") if path.is_dir()]
    assert len(folders) > JOBS
    assert [oct(path.stat().st_mode & 0o777) for path in folders] == ["0o700"] * len(folders)


def test_every_start_is_told_before_its_end(rig: LocalRig):
    executor = rig.connect()
    for number in range(JOBS):
        executor.start(launch("true", job_id=JobId(f"job-{number}")))
        kinds = [type(one) for one in wait_until_over(executor)]
        assert kinds == [AttemptStarted, AttemptEnded]


def test_a_supervisor_that_was_told_to_stop_is_not_used_again(rig: LocalRig):
    executor = rig.connect()
    executor.start(launch(FOREVER, job_id=JobId("long")))
    wait_for_a(executor, AttemptStarted)
    executor.stop(JobId("long"), 1, AT_ONCE)
    wait_until_over(executor)
    assert run_one(executor, "next") != supervisor(executor, JobId("long"))


def test_a_job_that_failed_leaves_no_supervisor_for_the_next(rig: LocalRig):
    executor = rig.connect()
    first = run_one(executor, "fails", "exit 3")
    assert run_one(executor, "next") != first


def test_a_supervisor_that_rests_leaves_with_the_spawner(rig: LocalRig):
    executor = rig.connect()
    pid = run_one(executor, "only")
    try:
        rests = os.pidfd_open(pid)
    except ProcessLookupError:
        # It has rested long enough.
        return
    try:
        rig.kill_service()
        assert select.select([rests], [], [], 30)[0]
    finally:
        os.close(rests)


def test_what_ran_before_the_spawner_was_killed_is_still_watched(rig: LocalRig):
    """The second attempt of a supervisor outlives the spawner as the first one would."""
    executor = rig.connect()
    run_one(executor, "first")
    executor.start(launch(FOREVER, job_id=JobId("second")))
    wait_for_a(executor, AttemptStarted)
    rig.kill_service()
    executor.stop(JobId("second"), 1, AT_ONCE)
    end = wait_until_over(executor)[-1]
    assert isinstance(end, AttemptEnded)
    assert end.how == "stopped"


def test_an_end_that_nobody_takes_is_on_disk_when_its_supervisor_has_gone(rig: LocalRig):
    executor = rig.connect()
    executor.start(launch("true"))
    wait_until_over(executor)
    watcher = os.pidfd_open(supervisor(executor, JOB))
    select.select([watcher], [], [])
    os.close(watcher)
    [state] = executor.attempts()
    assert (state.phase, state.end and state.end.exit_code) == ("ended", 0)


def test_a_job_that_asks_for_no_limits_is_found_by_the_group_of_its_supervisor(rig: LocalRig):
    executor = rig.connect()
    first, second = (JobId(name) for name in ("first", "second"))
    run_one(executor, first)
    executor.start(launch("exec env -i sleep 1000", job_id=second))
    wait_for_a(executor, AttemptStarted)
    record = executor.home.attempt(second, 1).record()
    assert "started" in record
    [member] = record["started"]["pids"]
    gone = os.pidfd_open(member)
    rig.kill_service()
    rig.kill_watcher(second, 1)
    [lost] = wait_until_over(executor)
    assert isinstance(lost, AttemptLost)
    assert select.select([gone], [], [], 0)[0], "its member is gone before it counts as lost"
    os.close(gone)
