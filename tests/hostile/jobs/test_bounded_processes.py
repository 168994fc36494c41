"""A job cannot fill the machine with processes, and leaves no control group behind."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.executor.local.test_executor import LocalRig
from contract.executor.real_processes import JOB, launch, wait_for_a, wait_until_over
from patience import until
from tenfold.live.executor import AttemptStarted, Launch, Member
from tenfold.live.local.executor import LocalExecutor
from tenfold.live.local.member.limits import PIDS_MOST, PREFIX, ResourceLimits, detect_limits
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.run_spec import RunSpec

FORKS = 100
SUPERVISOR = 1
"""A job without limits of CPU or memory shares the group of its supervisor."""
BOMB = f"""
at=0; while [ $at -lt {FORKS} ]; do sleep 1000 & at=$((at+1)); done; echo all of them
"""
OWN = """
for mount in /sys/fs/cgroup/pids /sys/fs/cgroup /sys/fs/cgroup/unified; do
    for path in $(cut -d: -f3 /proc/self/cgroup); do
        cat $mount$path/pids.max 2>/dev/null && exit
    done
done
"""


def roots() -> list[Path]:
    """Return the folders in which a spawner of this machine makes its group."""
    limits = detect_limits(f"{PREFIX}looking")
    folders = [Path(base) for base in dict.fromkeys(bases(limits).values())]
    limits.leave()
    return [folder.parent for folder in folders]


def bases(limits: ResourceLimits) -> dict[str, str]:
    return limits._bases


def requires_pids() -> None:
    limits = detect_limits(f"{PREFIX}looking")
    limits.leave()
    if "pids" not in bases(limits):
        pytest.skip("no control group for processes can be made here")


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[LocalRig]:
    rig = LocalRig(tmp_path / "state")
    yield rig
    rig.close()


def name_of(rig: LocalRig) -> str:
    status = os.stat(rig.home)
    return f"{PREFIX}{status.st_dev:x}-{status.st_ino:x}"


def groups_of(rig: LocalRig) -> list[Path]:
    """Return the groups of ended and of running jobs of a state folder."""
    return [one for root in roots() for one in (root / name_of(rig)).glob("*/")]


def test_a_job_without_any_request_may_have_a_limited_number_of_processes(rig: LocalRig):
    requires_pids()
    executor = rig.connect()
    executor.start(launch(OWN))
    wait_until_over(executor)
    assert executor.logs(JOB, 1, 0).tail.decode().strip() == str(PIDS_MOST + SUPERVISOR)


def test_a_fork_bomb_ends_at_its_limit_and_all_of_it_with_the_job(rig: LocalRig):
    requires_pids()
    rig.connect()
    executor = LocalExecutor(str(rig.home), pids_most=64)
    executor.start(launch(BOMB))
    end = wait_until_over(executor)[-1]
    said = executor.logs(JOB, 1, 0).tail.decode()
    assert "all of them" not in said, said
    assert end.exit_code != 0
    executor.start(launch("echo still here", job_id=JobId("next")))
    wait_until_over(executor)
    assert executor.logs(JobId("next"), 1, 0).tail == b"still here\n"
    # A supervisor waits a moment for another job.
    until(lambda: groups_of(rig) == [])
    executor.close()


def test_the_groups_of_ended_jobs_are_gone(rig: LocalRig):
    executor = rig.connect()
    for number in range(5):
        spec = RunSpec(name="x", command=("sh", "-c", "sleep 1000 & exit 3"))
        member = Member(node=NodeId("a"), cpus_milli=500, memory_mib=64)
        job = JobId(f"job-{number}")
        executor.start(
            Launch(job_id=job, attempt=1, team=TeamId("t"), run_spec=spec, members=(member,))
        )
        wait_until_over(executor)
    assert groups_of(rig) == []


def test_a_start_removes_the_groups_of_attempts_that_ended_and_keeps_those_that_run(rig: LocalRig):
    requires_pids()
    executor = rig.connect()
    executor.start(launch("exec sleep 1000"))
    wait_for_a(executor, AttemptStarted)
    running = groups_of(rig)
    assert running
    ended = [one.parent / "ended.7" for one in running]
    for group in ended:
        (group / "of its own").mkdir(parents=True)
    rig.kill_service()
    rig.connect()
    assert groups_of(rig) == running
    assert not any(group.exists() for group in ended)


def test_a_start_removes_what_a_killed_spawner_of_a_lost_state_folder_left(tmp_path: Path):
    gone = LocalRig(tmp_path / "gone")
    gone.connect()
    base = [root / name_of(gone) for root in roots()]
    if not base:
        pytest.skip("no control group can be made here")
    gone.kill_service()
    shutil.rmtree(gone.home)
    for folder in base:
        (folder / "job.1").mkdir()
    limits = detect_limits(f"{PREFIX}other")
    limits.remove_abandoned(os.stat(base[0]).st_mtime)
    assert all(folder.exists() for folder in base), "a job may be about to join them"
    limits.remove_abandoned(os.stat(base[0]).st_mtime + 61)
    assert not any(folder.exists() for folder in base)
    limits.leave()


def test_a_group_that_another_spawner_removed_is_made_again(rig: LocalRig):
    requires_pids()
    executor = rig.connect()
    for root in roots():
        (root / name_of(rig)).rmdir()
    executor.start(launch(OWN))
    wait_until_over(executor)
    assert executor.logs(JOB, 1, 0).tail.decode().strip() == str(PIDS_MOST + SUPERVISOR)
