"""The folder that a job runs in: the submitter's, if the job's user may enter it there."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from tenfold.live.local.attempt.folder import ExecutorDir
from tenfold.live.local.attempt.places import JobFolders
from tenfold.live.local.member.team_users import TeamUsers, UidRange
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import shape_of
from tenfold.model.job.origin import Origin
from tenfold.model.job.run_spec import CheckpointSpec, RunSpec
from tenfold.model.job.submission import Submission
from tenfold.model.job.terms import Terms
from tenfold.server.problems import Problem
from tenfold.server.runtime.state_dir import check_folders
from tenfold.server.submissions import SubmissionRequest
from tenfold.server.workdirs import needs_workdirs, with_workdirs

RED = TeamId("red")
HERE = "this-boot"


def request(folder: str = "", submitted_in: str = "", machine: str = HERE) -> SubmissionRequest:
    origin = Origin(folder=submitted_in, machine=machine) if submitted_in else None
    spec = RunSpec(name="x", command=("true",), folder=folder, origin=origin)
    return SubmissionRequest((Submission(team=RED, shape=shape_of(1), run_spec=spec),), False)


def test_a_job_runs_where_it_was_submitted_on_the_same_machine(tmp_path: Path):
    asked = request(submitted_in=str(tmp_path))
    assert needs_workdirs(asked)
    made = with_workdirs(asked, HERE, check_folders(None))
    (one,) = made.submissions
    assert (one.run_spec.submit_folder, one.run_spec.folder) == (str(tmp_path), "")
    assert made.workdir_notes == {}


def test_a_folder_of_another_machine_or_one_that_is_gone_is_not_used_and_a_note_says_so(
    tmp_path: Path,
):
    there = with_workdirs(request(submitted_in="/x", machine="other"), HERE, check_folders(None))
    gone = with_workdirs(request(submitted_in=f"{tmp_path}/gone"), HERE, check_folders(None))
    assert "from another machine" in there.workdir_notes[0]
    assert "is not a folder on this machine" in gone.workdir_notes[0]
    assert [one.submissions[0].run_spec.submit_folder for one in (there, gone)] == ["", ""]


def test_a_stated_folder_wins(tmp_path: Path):
    asked = request(folder=str(tmp_path), submitted_in="/usr")
    made = with_workdirs(asked, HERE, check_folders(None))
    assert made.submissions[0].run_spec == asked.submissions[0].run_spec
    assert made.workdir_notes == {}


def test_a_stated_folder_that_is_missing_here_is_refused_unless_it_may_be_made_later(
    tmp_path: Path,
):
    asked = request(folder=f"{tmp_path}/later", submitted_in=str(tmp_path))
    with pytest.raises(Problem) as refused:
        with_workdirs(asked, HERE, check_folders(None))
    assert refused.value.faults[0].code == "workdir-missing"
    elsewhere = request(folder=f"{tmp_path}/later", submitted_in=str(tmp_path), machine="other")
    (one,) = elsewhere.submissions
    later = replace(asked.submissions[0], terms=Terms(after=(JobId("maker-1"),)))
    for made in (elsewhere, SubmissionRequest((later,), False)):
        with_workdirs(made, HERE, check_folders(None))
    assert one.run_spec.folder == f"{tmp_path}/later"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as the user of a team")
@pytest.mark.parametrize("has_user", [True, False], ids=["known team", "new team"])
def test_a_folder_that_the_user_of_the_team_cannot_enter_is_refused_or_not_used(
    tmp_path: Path, has_user: bool
):
    home = ExecutorDir(str(tmp_path / "run"))
    home.prepare()
    users = TeamUsers(home, UidRange())
    uid = users.user_for(RED)["uid"] if has_user else 2_100_000_000
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    check = check_folders(users)
    made = with_workdirs(request(submitted_in=str(closed)), HERE, check)
    said = f"jobs of team `red` (uid {uid}) cannot enter `{closed}`: permission denied"
    assert made.workdir_notes[0].startswith(f"the job runs in its own directory: {said}")
    assert "`tenfold up --team-users off`" in made.workdir_notes[0]
    with pytest.raises(Problem) as refused:
        with_workdirs(request(folder=str(closed)), HERE, check)
    assert refused.value.faults[0].code == "workdir-closed"
    assert said in refused.value.faults[0].message
    found = check(RED, "/usr")
    assert found is not None
    assert found.kind == "read-only"
    read_only = with_workdirs(request(submitted_in="/usr"), HERE, check)
    assert read_only.submissions[0].run_spec.submit_folder == "/usr"
    assert "cannot write to `/usr`; submit from a directory" in read_only.workdir_notes[0]


def test_checkpoints_stay_in_the_folder_of_the_job(tmp_path: Path):
    saves = CheckpointSpec(folder="saves")
    spec = RunSpec(name="x", command=("true",), checkpoint=saves, submit_folder="/project")
    line = {"job": "x-1", "team": "red", "folder": spec.folder, "saves_folder": saves.folder}
    folders = JobFolders(ExecutorDir(str(tmp_path)), {**line, "submit_folder": "/project"})  # type: ignore[typeddict-item]
    assert folders.workdir == "/project"
    assert folders.checkpoints == f"{tmp_path}/teams/red/x-1/saves"
