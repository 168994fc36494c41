"""A folder that is swapped for a link while a job starts never shows another team's files.

`TENFOLD_SWAP_TRIES` sets the number of starts; the suite makes few, because each is a container.
"""

import json
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

import pytest

from contract.executor.local.test_executor import LocalRig
from contract.executor.real_processes import launch, wait_for
from engines.podman import IMAGE, Podman, podman_with_image
from patience import HANG_S
from tenfold.checkpoint import save
from tenfold.live.executor import AttemptEnded, AttemptLost, OrderRefused
from tenfold.live.local.attempt.environment import inherited
from tenfold.live.local.attempt.folder import TEAM_USERS, ExecutorDir
from tenfold.live.local.executor import LocalExecutor
from tenfold.live.local.member.images import runtime_variables
from tenfold.live.local.member.team_users import FIRST, TeamUsers, UidRange
from tenfold.live.local.member.user import reading_as
from tenfold.live.local.spawner.launches import launch_line
from tenfold.live.local.spawner.wire import UserLine
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import Job, shape_of
from tenfold.model.job.run_spec import CheckpointSpec, RunSpec
from tenfold.model.units import Millis
from tenfold.server.runtime.state_dir import saved_in
from tests.rigs.hostile.swaps import OWN, RESOLVES_LIKE_PODMAN, SECRET, Place, swapping

RED, BLUE = FIRST + 7, FIRST + 8
USER: UserLine = {"uid": RED, "gid": RED, "groups": [], "name": "red"}
RED_JOB = Job(id=JobId("x"), shape=shape_of(1), submitted_ms=Millis(0), seq=1, team=TeamId("team"))
TRIES = int(os.environ.get("TENFOLD_SWAP_TRIES", "0"))
PODMAN = shutil.which("podman") or ""
pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")


@pytest.fixture
def place() -> Iterator[Place]:
    with TemporaryDirectory() as folder:
        yield Place(Path(folder), RED, BLUE)


@pytest.fixture
def rig(place: Place) -> Iterator[LocalRig]:
    rig = LocalRig(place.folder / "state")
    rig.home.mkdir()
    # With this file, users of teams can pass through the state folder.
    (rig.home / TEAM_USERS).write_text(json.dumps({"teams": {"team": RED}, "put_right": True}))
    yield rig
    rig.close()


@pytest.fixture(scope="module")
def podman() -> Iterator[Podman]:
    with (
        TemporaryDirectory(prefix="pod-") as folder,
        podman_with_image(Path(folder) / "own") as podman,
    ):
        yield podman


def said_by(
    executor: LocalExecutor, number: int, script: str, runtime: str = "", **of_work: object
) -> str:
    """Run a job of red's to its end, and return its log and why it did not start, if so."""
    job = JobId(f"job-{number}")
    line = launch_line(
        launch(script, job_id=job, **of_work), inherited(os.environ), runtime, 1_000_000
    )
    line["runtime_env"] = runtime_variables(os.environ)
    line["user"] = USER
    executor.link.send({"order": 0, "do": "start", "launch": line})
    over = (AttemptEnded, AttemptLost, OrderRefused)
    seen = wait_for(executor, lambda seen: any(isinstance(one, over) for one in seen))
    text = executor.logs(job, 1, 0).tail.decode()
    executor.settle([(job, 1)])
    end = seen[-1]
    return f"{text}{getattr(end, 'reason', '')}"


def race(executor: LocalExecutor, place: Place, runtime: str, tries: int) -> tuple[int, int]:
    """Return how many of the starts leaked, and how many ran in the folder of red's."""
    (place.work / "secret").write_text(OWN)
    leaked = own = 0
    with swapping(place.work, place.link, RED):
        for number in range(tries):
            said = said_by(
                executor, number, "cat secret", runtime, image=IMAGE, folder=str(place.work)
            )
            leaked += SECRET in said
            own += OWN in said
    return leaked, own


def test_a_runtime_that_resolves_paths_as_root_never_gets_another_teams_folder(
    place: Place, rig: LocalRig
):
    runtime = place.folder / "podman"
    runtime.write_text(RESOLVES_LIKE_PODMAN)
    runtime.chmod(0o755)
    tries = TRIES or 100
    leaked, own = race(rig.connect(), place, str(runtime), tries)
    print(f"{leaked} of {tries} starts leaked, {own} ran in the folder of its own team")
    assert leaked == 0
    assert own > 0, "no start won the race, so nothing was tested"


@pytest.mark.engine
def test_podman_never_mounts_another_teams_folder(
    place: Place, rig: LocalRig, podman: Podman, monkeypatch: pytest.MonkeyPatch
):
    for name, value in podman.environment.items():
        monkeypatch.setenv(name, value)
    tries = TRIES or 5
    leaked, own = race(rig.connect(), place, PODMAN, tries)
    print(f"{leaked} of {tries} containers leaked, {own} saw the folder of its own team")
    assert leaked == 0
    assert podman.containers() == []


def test_a_working_directory_is_never_the_supervisors_own(place: Place, rig: LocalRig):
    """A supervisor serves several teams: its own folder may be that of the team before."""
    executor = rig.connect()
    order = launch("true", job_id=JobId("blue"), folder=str(place.target))
    line = launch_line(order, inherited(os.environ), "", 1_000)
    line["user"] = {"uid": BLUE, "gid": BLUE, "groups": [], "name": "blue"}
    executor.link.send({"order": 0, "do": "start", "launch": line})
    wait_for(executor, lambda seen: any(isinstance(one, AttemptEnded) for one in seen))
    for number, folder in enumerate(("/proc/self/cwd", "/proc/thread-self/cwd", "/proc/self/fd/3")):
        said = said_by(executor, number, "cat secret", folder=folder)
        assert SECRET not in said
        assert folder in said


def test_a_link_in_the_teams_own_folder_leads_no_further_than_the_team(place: Place, rig: LocalRig):
    executor = rig.connect()
    saves = CheckpointSpec(folder=str(place.link))
    for number, of_work in enumerate(({"folder": str(place.link)}, {"checkpoint": saves})):
        said = said_by(executor, number, "cat $TENFOLD_CHECKPOINT_DIR/secret secret", **of_work)
        assert SECRET not in said
        assert "Permission denied" in said
    (place.red / "data").symlink_to(place.work)
    (place.work / "own").write_text("here")
    assert "here" in said_by(executor, 2, "cat own", folder=str(place.red / "data"))


def test_the_control_plane_reads_a_checkpoint_with_the_rights_of_its_team(
    place: Place, rig: LocalRig, monkeypatch: pytest.MonkeyPatch
):
    save(place.target, 1, {"weights": 1.0})
    os.chmod(next(place.target.glob("step-*")), 0o755)
    mine = place.made("red/mine", RED, 0o700)
    save(mine, 1, {"weights": 1.0})
    for one in mine.rglob("*"):
        os.chown(one, RED, RED)
    (place.red / "other").symlink_to(mine)
    saved_at = saved_in(rig.home, TeamUsers(ExecutorDir(str(rig.home)), UidRange()))
    assert saved_at(RED_JOB, saving_in(place.link)) is None
    monkeypatch.chdir(place.target)
    for folder in (Path("/proc/self/cwd"), Path("/proc/thread-self/cwd")):
        assert saved_at(RED_JOB, saving_in(folder)) is None
    assert saved_at(RED_JOB, saving_in(mine)) is not None
    assert saved_at(RED_JOB, saving_in(place.red / "other")) is not None
    assert saved_in(rig.home)(RED_JOB, saving_in(place.link)) is not None, "root could read it"


def saving_in(folder: Path) -> RunSpec:
    return RunSpec(name="x", command=("x",), checkpoint=CheckpointSpec(folder=str(folder)))


def test_a_thread_that_reads_as_a_team_changes_no_other_thread(place: Place):
    closed = place.target / "closed"
    closed.write_text("root's")
    closed.chmod(0o600)
    os.chown(closed, 0, 0)
    inside, leave = Event(), Event()

    def read() -> None:
        with reading_as(USER):
            with pytest.raises(PermissionError):
                closed.read_text()
            inside.set()
            assert leave.wait(HANG_S)
        assert closed.read_text() == "root's"

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(read)
        assert inside.wait(HANG_S)
        assert closed.read_text() == "root's"
        leave.set()
        done.result(HANG_S)
