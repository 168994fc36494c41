"""Each team's jobs run as a user of their own: the whole contract, and what it keeps apart."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.executor.contract import ExecutorContract
from contract.executor.local.test_executor import LOG_BYTES_MOST, LocalRig
from contract.executor.processes import LocalProcessContract
from contract.executor.real_processes import FOREVER, Ear, Process, launch, wait_for, wait_for_a
from contract.executor.service import ServiceContract
from tenfold.live.executor import AttemptEnded, AttemptStarted, Launch, Observation, OrderRefused
from tenfold.live.local.attempt.folder import ExecutorDir
from tenfold.live.local.executor import LocalExecutor
from tenfold.live.local.member.team_users import TeamUsers, UidRange, why_no_team_users
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.run_spec import CheckpointSpec, RunSpec
from tenfold.report.reasons.render import render

UID_RANGE = UidRange()
WHY = why_no_team_users(tempfile.gettempdir(), UID_RANGE)
pytestmark = pytest.mark.skipif(bool(WHY), reason=f"teams have no users of their own here: {WHY}")


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder that every user can come to and write to."""
    before = os.umask(0)
    path = Path(tempfile.mkdtemp(prefix="tenfold-users-"))
    path.chmod(0o777)
    yield path
    os.umask(before)
    shutil.rmtree(path)


class UsersRig(LocalRig):
    """A state folder with users for teams."""

    def users(self, span: UidRange = UID_RANGE) -> TeamUsers:
        home = ExecutorDir(str(self.home))
        home.prepare()
        users = TeamUsers(home, span)
        users.migrate_ownership()
        return users

    def connect(self, span: UidRange = UID_RANGE) -> LocalExecutor:
        client = LocalExecutor(
            str(self.home), log_bytes_most=LOG_BYTES_MOST, users=self.users(span)
        )
        self._clients.append(client)
        return client


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[UsersRig]:
    rig = UsersRig(tmp_path / "state")
    yield rig
    rig.close()


@pytest.fixture
def ear(tmp_path: Path) -> Iterator[Ear]:
    ear = Ear(tmp_path / "own-ear")
    yield ear
    ear.close()


class TestTeamUsers(ExecutorContract, ServiceContract, LocalProcessContract):
    """Every test of the contract, as a user that is not root."""


def of_team(team: str, script: str, *, attempt: int = 1, **of_work: object) -> Launch:
    made = launch(script, job_id=JobId(f"{team}-1"), attempt=attempt, **of_work)
    return Launch(
        job_id=made.job_id,
        attempt=attempt,
        team=TeamId(team),
        run_spec=made.run_spec,
        members=made.members,
    )


def said(executor: LocalExecutor, team: str, attempt: int = 1) -> str:
    return executor.logs(JobId(f"{team}-1"), attempt, 0).tail.decode()


def ended(executor: LocalExecutor, attempt: int = 1) -> AttemptEnded:
    def of_it(seen: list[Observation]) -> list[AttemptEnded]:
        return [one for one in seen if isinstance(one, AttemptEnded) and one.attempt == attempt]

    return of_it(wait_for(executor, lambda seen: bool(of_it(seen))))[0]


def test_a_job_cannot_touch_what_another_team_has(rig: UsersRig, ear: Ear, tmp_path: Path):
    executor = rig.connect()
    executor.start(of_team("b", f"echo mine > secret; echo $$ > {ear.path}; {FOREVER}"))
    pid = int(ear.words(1)[0])
    teams = rig.home / "teams"
    tries = [
        f"cat {teams}/b/b-1/secret",
        f"ls {teams}/b",
        f"ls {teams}",
        f"touch {teams}/new",
        f"cat {rig.home}/attempts/b-1/1/0.log",
        f"echo x > {rig.home}/attempts/b-1/1/0.beat",
        f"cat {rig.home}/attempts/a-1/1/record",
        f"cat {rig.home}/team-users.json",
        f"ls {rig.home}",
        f"kill -9 {pid}",
        f"cat /proc/{pid}/environ",
    ]
    # Whatever works says so.
    script = "; ".join(f"({one}) 2> /dev/null && echo '{one}'" for one in tries)
    executor.start(of_team("a", script))
    ended(executor)
    assert said(executor, "a") == ""
    assert Process(pid).is_gone(0) is False
    assert (teams / "b" / "b-1" / "secret").read_text() == "mine\n"


def test_a_job_can_use_what_is_its_own(rig: UsersRig):
    executor = rig.connect()
    script = (
        'echo kept > file; echo saved > "$TENFOLD_CHECKPOINT_DIR/one"; echo on > /dev/stdout;'
        'touch "$TENFOLD_HEARTBEAT" && cat file && id -u && echo $USER $LOGNAME && cd && pwd'
    )
    executor.start(of_team("a", script, checkpoint=CheckpointSpec(folder="saves")))
    assert ended(executor).exit_code == 0
    uid = str(UID_RANGE.first)
    team = rig.home / "teams" / "a"
    assert said(executor, "a").split() == ["on", "kept", uid, "a", "a", str(team)]
    assert (team / "a-1" / "saves" / "one").read_text() == "saved\n"
    assert stat.S_IMODE(team.stat().st_mode) == 0o700
    assert team.stat().st_uid == int(uid)


def test_a_link_that_a_job_planted_leads_nowhere_it_could_not_go(rig: UsersRig, tmp_path: Path):
    closed = tmp_path / "of-root"
    closed.mkdir(0o700)
    executor = rig.connect()
    executor.start(of_team("a", f"cd && ln -s {closed} work"))
    ended(executor)
    executor.start(of_team("a", "pwd", attempt=2, folder="work/inner"))
    end = ended(executor, 2)
    assert end.how == "start-failed"
    assert end.reason is not None
    assert "Permission denied" in render(end.reason)
    assert list(closed.iterdir()) == []


def test_a_member_dies_with_its_supervisor_after_it_became_another_user(rig: UsersRig, ear: Ear):
    executor = rig.connect()
    executor.start(of_team("a", f"echo $$ > {ear.path}; {FOREVER}"))
    member = Process(int(ear.words(1)[0]))
    wait_for_a(executor, AttemptStarted)
    supervisor = rig.supervisor(JobId("a-1"), 1)
    # Without a spawner there is nobody but the kernel to end it.
    rig.kill_service()
    supervisor.kill()
    assert member.is_gone()


def test_a_folder_that_a_team_cannot_enter_is_named(rig: UsersRig, tmp_path: Path):
    closed = tmp_path / "closed"
    closed.mkdir(0o700)
    executor = rig.connect()
    executor.start(of_team("a", "pwd", folder=str(closed)))
    end = ended(executor)
    assert end.reason is not None
    assert str(closed) in render(end.reason)
    assert closed.stat().st_uid == 0


@pytest.mark.parametrize("way", ["link", "script"])
def test_a_command_that_a_team_cannot_reach_says_what_is_closed(
    rig: UsersRig, tmp_path: Path, way: str
):
    closed = tmp_path / "closed"
    closed.mkdir(0o700)
    shutil.copy("/bin/true", closed / "tool")
    tool = tmp_path / "tool"
    if way == "link":
        tool.symlink_to(closed / "tool")
    else:
        tool.write_text(f"#!{closed}/tool\n")
        tool.chmod(0o755)
    executor = rig.connect()
    made = of_team("a", "")
    work = RunSpec(name="a job", command=(str(tool),))
    executor.start(
        Launch(job_id=made.job_id, attempt=1, team=made.team, run_spec=work, members=made.members)
    )
    end = ended(executor)
    assert end.reason is not None
    assert f"cannot enter `{closed}`" in render(end.reason)


def test_a_command_that_is_closed_on_the_path_is_passed_over(rig: UsersRig, tmp_path: Path):
    for name, mode in (("first", 0o700), ("second", 0o755)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tool").write_text(f"#!/bin/sh\necho {name}\n")
        (tmp_path / name / "tool").chmod(0o755)
        (tmp_path / name).chmod(mode)
    executor = rig.connect()
    made = of_team("a", "")
    path = f"{tmp_path}/first:{tmp_path}/second:/usr/bin:/bin"
    work = RunSpec(name="a job", command=("tool",), env=(("PATH", path),))
    executor.start(
        Launch(job_id=made.job_id, attempt=1, team=made.team, run_spec=work, members=made.members)
    )
    assert ended(executor).exit_code == 0
    assert said(executor, "a") == "second\n"


def test_a_folder_of_before_is_given_to_its_team(rig: UsersRig, tmp_path: Path):
    ExecutorDir(str(rig.home)).prepare()
    first = LocalExecutor(str(rig.home))
    first.start(of_team("a", "mkdir deep; echo old > deep/file; echo two > twice; exit 3"))
    ended(first)
    first.close()
    work = rig.home / "teams" / "a" / "a-1"
    of_root = tmp_path / "of-root"
    of_root.write_text("root's\n")
    of_root.chmod(0o600)
    (work / "link").symlink_to(of_root)
    os.link(of_root, work / "second-name")
    executor = rig.connect()
    executor.start(of_team("a", "cat deep/file; cat link second-name", attempt=2))
    ended(executor, 2)
    assert said(executor, "a", 2).splitlines()[0] == "old"
    assert "root's" not in said(executor, "a", 2)
    assert of_root.stat().st_uid == 0


def test_what_an_attempt_of_before_left_later_is_given_to_the_next(rig: UsersRig):
    users = rig.users()
    first = LocalExecutor(str(rig.home))
    first.start(of_team("a", "echo late > file; chmod 600 file; exit 3"))
    ended(first)
    first.close()
    executor = LocalExecutor(str(rig.home), users=users)
    executor.start(of_team("a", "cat file", attempt=2))
    assert ended(executor, 2).exit_code == 0
    assert said(executor, "a", 2) == "late\n"
    executor.close()


def test_a_job_is_refused_when_no_user_is_left(rig: UsersRig):
    executor = rig.connect(UidRange(UID_RANGE.first, UID_RANGE.first))
    executor.start(of_team("a", "true"))
    ended(executor)
    executor.start(of_team("b", "true"))
    seen = wait_for_a(executor, OrderRefused)
    refused = [one for one in seen if isinstance(one, OrderRefused)]
    assert [(one.reason.code, one.is_transient) for one in refused] == [("no-team-user", False)]
