"""Members inside an image are members like any other: real containers, stopped and killed."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from contract.executor.local.test_executor import LocalRig
from contract.executor.real_processes import (
    FOREVER,
    JOB,
    LONG_MS,
    NOW_MS,
    Ear,
    launch,
    wait_for_a,
    wait_until_over,
)
from contract.executor.shells import opened, read_all
from engines.podman import IMAGE, Podman, podman_with_image
from patience import until
from tenfold.live.executor import (
    AttemptEnded,
    AttemptLost,
    AttemptStarted,
    Launch,
    Member,
    ShellEnded,
)
from tenfold.live.local.attempt.environment import inherited
from tenfold.live.local.executor import LocalExecutor
from tenfold.live.local.member.images import runtime_variables
from tenfold.live.local.member.team_users import FIRST
from tenfold.live.local.spawner.launches import launch_line
from tenfold.model.ids import NodeId, TeamId
from tenfold.model.job.run_spec import CheckpointSpec, RunSpec
from tenfold.model.units import Millis
from tenfold.report.reasons.render import render

PODMAN = shutil.which("podman") or ""
ID_SCRIPT = """id; echo saved > own; stat -c %u own; grep CapEff /proc/self/status"""


@pytest.fixture(scope="module")
def podman() -> Iterator[Podman]:
    # A short path: podman waits for twenty seconds on a socket whose path has over 108 bytes.
    with (
        TemporaryDirectory(prefix="pod-") as folder,
        podman_with_image(Path(folder) / "own") as podman,
    ):
        yield podman


@pytest.fixture
def rig(tmp_path: Path, podman: Podman, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalRig]:
    for name, value in podman.environment.items():
        monkeypatch.setenv(name, value)
    rig = LocalRig(tmp_path / "state, of" / "two")
    yield rig
    rig.close()
    assert podman.containers() == []


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder outside of the team's that a job names to run in."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def ear(work: Path) -> Iterator[Ear]:
    ear = Ear(work / "ear")
    yield ear
    ear.close()


def test_a_command_runs_in_its_image_with_its_variables_and_folders(rig: LocalRig):
    executor = rig.connect()
    script = (
        'echo "$A|$MASTER_ADDR|$RANK|$CUDA_VISIBLE_DEVICES|$TENFOLD_TOKEN|$PATH"; pwd; ls /bin/sh'
    )
    script += '; echo saved > "$TENFOLD_CHECKPOINT_DIR/one"; touch "$TENFOLD_HEARTBEAT"; exit 3'
    of_work = {
        "image": IMAGE,
        "env": (("A", "b=c #d"),),
        "checkpoint": CheckpointSpec(folder="ckpt"),
    }
    member = Member(node=NodeId("a"), gpus=(5, 6))
    spec = RunSpec(name="a job", command=("sh", "-c", script), **of_work)  # type: ignore[arg-type]
    executor.start(
        Launch(job_id=JOB, attempt=1, team=TeamId("t"), run_spec=spec, members=(member,))
    )
    end = wait_until_over(executor)[-1]
    said, folder, shell = executor.logs(JOB, 1, 0).tail.decode().splitlines()
    assert (end.how, end.exit_code) == ("exited", 3)
    *shown, path = said.split("|")
    assert shown[:2] == ["b=c #d", "127.0.0.1"]
    assert shown[3:] == ["5,6", ""]
    assert path != os.environ["PATH"]
    assert folder == f"{rig.home}/teams/t/job%2F1"
    assert shell == "/bin/sh"
    assert (Path(folder) / "ckpt" / "one").read_text() == "saved\n"


def test_a_variable_that_a_runtime_reads_itself_is_the_jobs_alone(rig: LocalRig):
    executor = rig.connect()
    of_podman = (("CONTAINERS_STORAGE_CONF", "/nowhere"), ("LD_PRELOAD", "/x.so"), ("PATH", "/bin"))
    executor.start(launch("echo $CONTAINERS_STORAGE_CONF $PATH", image=IMAGE, env=of_podman))
    assert wait_until_over(executor)[-1].exit_code == 0
    assert executor.logs(JOB, 1, 0).tail == b"/nowhere /bin\n"


def test_notice_reaches_the_command_and_it_may_save(rig: LocalRig, ear: Ear, work: Path):
    executor = rig.connect()
    script = f'trap "echo noticed; exit 0" TERM; echo up > {ear.path}; {FOREVER}'
    executor.start(launch(script, image=IMAGE, folder=str(work)))
    assert ear.words(1) == ["up"]
    executor.stop(JOB, 1, LONG_MS)
    end = wait_until_over(executor)[-1]
    assert (end.how, end.exit_code) == ("stopped", 0)
    assert executor.logs(JOB, 1, 0).tail == b"noticed\n"


def test_a_command_that_does_not_handle_the_notice_ends_by_it(rig: LocalRig, ear: Ear, work: Path):
    executor = rig.connect()
    script = f"echo up > {ear.path}; exec sleep 1000"
    executor.start(launch(script, image=IMAGE, folder=str(work)))
    ear.words(1)
    executor.stop(JOB, 1, LONG_MS)
    assert wait_until_over(executor)[-1].how == "stopped"


def test_what_ignores_the_notice_is_killed_after_the_grace(rig: LocalRig, ear: Ear, work: Path):
    executor = rig.connect()
    script = f'trap "" TERM; echo up > {ear.path}; {FOREVER}'
    executor.start(launch(script, image=IMAGE, folder=str(work)))
    ear.words(1)
    executor.stop(JOB, 1, Millis(200))
    assert wait_until_over(executor)[-1].how == "stopped"


def test_a_gang_of_images_finds_itself_and_falls_together(rig: LocalRig, work: Path):
    executor = rig.connect()
    script = f'echo "$RANK of $WORLD_SIZE"; [ "$RANK" = 1 ] && exit 7; {FOREVER}'
    executor.start(launch(script, image=IMAGE, nodes=("a", "b"), grace_ms=Millis(2_000)))
    end = wait_until_over(executor)[-1]
    assert (end.how, end.exit_code, end.member) == ("exited", 7, 1)
    assert executor.logs(JOB, 1, 1).tail == b"1 of 2\n"


def test_memory_is_limited_inside_too(rig: LocalRig):
    executor = rig.connect()
    if executor.limits == "prlimit":
        pytest.skip("no cgroup can be made here")
    member = Member(node=NodeId("a"), cpus_milli=500, memory_mib=128)
    command = ("dd", "if=/dev/zero", "of=/dev/null", "bs=400M", "count=1")
    greedy = RunSpec(name="greedy", command=command, image=IMAGE)
    executor.start(
        Launch(job_id=JOB, attempt=1, team=TeamId("t"), run_spec=greedy, members=(member,))
    )
    end = wait_until_over(executor)[-1]
    assert end.how == "out-of-memory", (end, executor.logs(JOB, 1, 0).tail)
    assert "128 MiB" in render(end.reason)


@pytest.mark.parametrize(
    ("image", "command", "why"),
    [
        ("localhost/no-such-image:1", "true", "and Tenfold does not pull images"),
        (
            "nowhere.example/of/somebody",
            "true",
            "is not on this machine, and Tenfold does not pull images",
        ),
        ("Capital/name", "true", "cannot run image"),
        (IMAGE, "no-such-command", "no-such-command"),
    ],
)
def test_what_cannot_be_run_fails_the_start_with_the_reason(
    rig: LocalRig, image: str, command: str, why: str
):
    executor = rig.connect()
    spec = RunSpec(name="x", command=(command,), image=image)
    member = Member(node=NodeId("a"))
    executor.start(
        Launch(job_id=JOB, attempt=1, team=TeamId("t"), run_spec=spec, members=(member,))
    )
    end = wait_until_over(executor)[-1]
    assert end.how == "start-failed", executor.logs(JOB, 1, 0).tail
    assert end.reason.code == "image-not-run"
    assert why in render(end.reason)


def test_a_container_lives_on_without_controller_and_spawner(rig: LocalRig, ear: Ear, work: Path):
    executor = rig.connect()
    script = f"echo up > {ear.path}; read go < {work}/go; echo went; exit 5"
    os.mkfifo(work / "go")
    executor.start(launch(script, image=IMAGE, folder=str(work)))
    ear.words(1)
    wait_for_a(executor, AttemptStarted)
    rig.kill_service()
    executor.close()
    after = rig.connect()
    assert [state.phase for state in after.attempts()] == ["running"]
    (work / "go").write_text("on\n")
    end = wait_until_over(after)[-1]
    assert isinstance(end, AttemptEnded)
    assert (end.how, end.exit_code) == ("exited", 5)
    assert after.logs(JOB, 1, 0).tail == b"went\n"


@pytest.fixture
def open_rig(rig: LocalRig) -> Iterator[LocalRig]:
    """A state folder that users of teams can pass through."""
    assert rig
    with TemporaryDirectory() as place:
        open_rig = LocalRig(Path(place) / "state")
        open_rig.connect()
        for folder in (Path(place), open_rig.home, open_rig.home / "teams"):
            folder.chmod(0o711)
        yield open_rig
        open_rig.close()


def start_as_team(executor: LocalExecutor, order: Launch) -> None:
    line = launch_line(order, inherited(os.environ), PODMAN, 1_000_000)
    line["runtime_env"] = runtime_variables(os.environ)
    line["user"] = {"uid": FIRST + 7, "gid": FIRST + 7, "groups": [44], "name": "team"}
    executor.link.send({"order": 0, "do": "start", "launch": line})


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_the_command_inside_is_the_user_of_its_team(open_rig: LocalRig):
    executor = open_rig.connect()
    for folder in (open_rig.home, open_rig.home / "teams"):
        folder.chmod(0o711)
    number = FIRST + 7
    start_as_team(executor, launch(ID_SCRIPT, image=IMAGE))
    end = wait_until_over(executor)[-1]
    assert (end.how, end.exit_code) == ("exited", 0), (end, executor.logs(JOB, 1, 0).tail)
    whose, owner, rights = executor.logs(JOB, 1, 0).tail.decode().splitlines()
    assert whose.startswith(f"uid={number} gid={number} groups=")
    assert "44" in whose
    assert owner == str(number)
    assert rights.split() == ["CapEff:", "0000000000000000"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_shell_inside_is_the_user_of_its_team_too(open_rig: LocalRig):
    executor = open_rig.connect()
    for folder in (open_rig.home, open_rig.home / "teams"):
        folder.chmod(0o711)
    start_as_team(executor, launch(f"echo up; {FOREVER}", image=IMAGE))
    until(lambda: executor.logs(JOB, 1, 0).tail == b"up\n")
    with opened(executor, "sh", "-c", "id -u; grep CapEff /proc/self/status") as shell:
        out, errors, end = read_all(shell)
    assert (errors, end) == (b"", ShellEnded(exit_code=0))
    assert out.decode().split() == [str(FIRST + 7), "CapEff:", "0000000000000000"]


@pytest.mark.parametrize("spawner_too", [False, True])
def test_a_container_dies_with_its_supervisor(
    rig: LocalRig, ear: Ear, work: Path, podman: Podman, spawner_too: bool
):
    executor = rig.connect()
    script = f'trap "" TERM; echo up > {ear.path}; {FOREVER}'
    executor.start(launch(script, image=IMAGE, folder=str(work), nodes=("a", "b")))
    ear.words(2)
    wait_for_a(executor, AttemptStarted)
    assert len(podman.containers()) == 2
    if spawner_too:
        rig.kill_service()
    rig.kill_watcher(JOB, 1)
    end = wait_until_over(executor)[-1]
    assert isinstance(end, AttemptLost)
    assert podman.containers() == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_the_mounts_of_a_team_end_with_its_container(open_rig: LocalRig, podman: Podman):
    executor = open_rig.connect()
    for folder in (open_rig.home, open_rig.home / "teams"):
        folder.chmod(0o711)
    start_as_team(executor, launch(f"echo up; {FOREVER}", image=IMAGE, nodes=("a", "b")))
    wait_for_a(executor, AttemptStarted)
    assert str(open_rig.home) not in Path("/proc/self/mountinfo").read_text()
    open_rig.kill_watcher(JOB, 1)
    assert isinstance(wait_until_over(executor)[-1], AttemptLost)
    assert podman.containers() == []
    assert list((open_rig.home / "mounts").iterdir()) != []
    assert [one for one in (open_rig.home / "mounts").rglob("*") if not one.is_dir()] == []


def test_a_shell_opens_in_the_container_of_its_member_and_ends_with_it(rig: LocalRig, ear: Ear):
    executor = rig.connect()
    script = f'echo marked > /tmp/inside; echo up > "{ear.path}"; {FOREVER}'
    executor.start(launch(script, image=IMAGE, env=(("A", "b"),), folder=str(ear.path.parent)))
    wait_for_a(executor, AttemptStarted)
    ear.words(1)
    words = ("sh", "-c", 'cat /tmp/inside; echo "$A"; pwd; exit 4')
    with opened(executor, *words) as shell:
        out, _, end = read_all(shell)
    assert out.decode().splitlines() == ["marked", "b", str(ear.path.parent)]
    assert end == ShellEnded(exit_code=4)
    with opened(executor, "sh", "-c", f"echo ready; {FOREVER}") as shell:
        executor.stop(JOB, 1, NOW_MS)
        wait_until_over(executor)
        assert read_all(shell)[2].exit_code is None
