"""How a member is run in an image, and what is said where it is not."""

import os
from pathlib import Path
from typing import cast

import pytest

from tenfold.live.executor import Launch, Member
from tenfold.live.local.attempt.folder import ExecutorDir
from tenfold.live.local.attempt.places import JobFolders
from tenfold.live.local.member import images
from tenfold.live.local.member.containers import runtime_failure
from tenfold.live.local.member.images import (
    ContainerCommand,
    container_command,
    container_name,
    find_runtime,
    lacks_device_spec,
    runtime_variables,
)
from tenfold.live.local.spawner.launches import launch_line, why_refused
from tenfold.live.local.spawner.wire import LaunchLine, UserLine
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.run_spec import RunSpec
from tenfold.report.reasons.render import render

TEAMS_USER: UserLine = {"uid": 5, "gid": 6, "groups": [44], "name": "team"}
MARK = {"TENFOLD_HEARTBEAT": "/a/0.beat"}


def order(**of_work: object) -> Launch:
    values: dict[str, object] = {"name": "job", "command": ("train", "--fast"), **of_work}
    spec = RunSpec(**values)  # type: ignore[arg-type]
    members = (Member(node=NodeId("a"), gpus=(1, 3)),)
    return Launch(
        job_id=JobId("job-1"), attempt=1, team=TeamId("team"), run_spec=spec, members=members
    )


def line(runtime: str = "/bin/podman", **of_work: object) -> LaunchLine:
    launch = order(**{"image": "alpine", **of_work})
    made = launch_line(launch, {"PATH": "/bin"}, runtime, 1_000)
    made["runtime_env"] = {"HOME": "/h/me", "CONTAINERS_CONF": "/c"}
    return made


def ran(tmp_path: Path, launch: LaunchLine, environment: dict[str, str]) -> ContainerCommand:
    places = JobFolders(ExecutorDir(str(tmp_path)), launch)
    values = {**environment, **MARK}
    return container_command(launch, 0, values, str(tmp_path), places, f"{tmp_path}/0.beat")


def test_the_first_runtime_on_the_path_is_taken(tmp_path: Path):
    for name in ("apptainer", "podman"):
        (tmp_path / name).write_text("")
        assert find_runtime(f"/nowhere::{tmp_path}") == ""
        (tmp_path / name).chmod(0o755)
        assert find_runtime(f"/nowhere::{tmp_path}") == f"{tmp_path}/{name}"
        (tmp_path / name).chmod(0o644)


def test_podman_gets_the_variables_of_a_job_in_a_closed_file_alone(tmp_path: Path):
    launch = line(env=(("SECRET", "s3"), ("CONTAINERS_CONF", "/evil"), ("LD_PRELOAD", "/x.so")))
    inside = ran(tmp_path, launch, {**dict(launch["env"]), "PATH": "/x", "HOME": "/t"})
    file = tmp_path / "0.env"
    assert f"--env-file={file}" in inside.words
    assert file.stat().st_mode & 0o777 == 0o600
    said = file.read_text().splitlines()
    assert said == ["SECRET=s3", "CONTAINERS_CONF=/evil", "LD_PRELOAD=/x.so", *_marked()]
    assert inside.words[-3:] == ["alpine", "train", "--fast"]
    assert not any("s3" in word or "evil" in word for word in inside.words)
    assert inside.environment == {
        "HOME": "/h/me",
        "CONTAINERS_CONF": "/c",
        "PATH": "/bin",
        **MARK,
    }


def _marked() -> list[str]:
    return [f"{name}={value}" for name, value in MARK.items()]


def test_a_path_that_a_job_names_is_the_path_inside(tmp_path: Path):
    launch = line(env=(("PATH", "/opt/bin"),))
    ran(tmp_path, launch, {"PATH": "/opt/bin", "HOME": "/t"})
    assert "PATH=/opt/bin\n" in (tmp_path / "0.env").read_text()
    assert "HOME" not in (tmp_path / "0.env").read_text()


def test_nothing_is_fetched_and_the_container_has_a_name_of_its_attempt(tmp_path: Path):
    inside = ran(tmp_path, line(), {})
    assert "--pull=never" in inside.words
    assert f"--name={container_name(str(tmp_path), 0)}" in inside.words
    assert container_name(str(tmp_path), 0) != container_name(str(tmp_path), 1)


def test_folders_with_commas_are_quoted(tmp_path: Path):
    odd = tmp_path / 'a, "b"'
    odd.mkdir()
    inside = ran(odd, line(), {})
    twice = str(odd).replace('"', '""')
    team = f"{twice}/teams/team"
    assert f'--mount=type=bind,"source={team}","target={team}"' in inside.words


def test_podman_becomes_the_user_of_the_team_inside_and_no_other(tmp_path: Path):
    launch = line()
    launch["user"] = TEAMS_USER
    inside = ran(tmp_path, launch, {})
    assert inside.user is None
    for word in ("--user=5:6", "--group-add=44", "--cap-drop=all"):
        assert word in inside.words
    assert "--security-opt=no-new-privileges" in inside.words


def test_podman_resolves_no_path_that_a_team_can_change(tmp_path: Path):
    launch = line(folder="/data/work")
    launch["user"] = TEAMS_USER
    inside = ran(tmp_path, launch, {})
    team, points = f"{tmp_path}/teams/team", f"{tmp_path}/mounts"
    assert f"--mount=type=bind,source={points}/0,target={team}" in inside.words
    assert f"--mount=type=bind,source={points}/1,target=/data/work" in inside.words
    assert inside.mounts is not None
    assert inside.mounts.pairs == [(team, f"{points}/0"), ("/data/work", f"{points}/1")]
    assert (tmp_path / "mounts").stat().st_mode & 0o777 == 0o700
    assert ran(tmp_path, line(folder="/data/work"), {}).mounts is None


def test_gpus_that_are_here_are_shown_and_counted_anew_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(images, "_present", lambda gpus: list(cast("list[int]", gpus)))
    inside = ran(tmp_path, line(), {"CUDA_VISIBLE_DEVICES": "1,3"})
    assert [word for word in inside.words if word.startswith("--device")] == [
        "--device=nvidia.com/gpu=1",
        "--device=nvidia.com/gpu=3",
    ]
    assert "CUDA_VISIBLE_DEVICES=0,1\n" in (tmp_path / "0.env").read_text()
    assert lacks_device_spec((1, 3), (str(tmp_path),))
    (tmp_path / "nvidia.yaml").write_text("kind: nvidia.com/gpu\n")
    assert not lacks_device_spec((1, 3), ("/nowhere", str(tmp_path)))


def test_gpus_of_a_virtual_node_are_numbered_and_not_shown(tmp_path: Path):
    if os.path.exists("/dev/nvidia1"):
        pytest.skip("these GPUs are here")
    inside = ran(tmp_path, line(), {"CUDA_VISIBLE_DEVICES": "1,3"})
    assert not any(word.startswith("--device") for word in inside.words)
    assert "CUDA_VISIBLE_DEVICES=1,3\n" in (tmp_path / "0.env").read_text()
    assert not lacks_device_spec((1, 3), ())


def test_apptainer_runs_as_the_team_with_the_jobs_own_variables(tmp_path: Path):
    launch = line("/b/apptainer", image="a.sif")
    launch["user"] = TEAMS_USER
    inside = ran(tmp_path, launch, {"A": "b"})
    team = f"{tmp_path}/teams/team"
    assert inside.words == [
        *("/b/apptainer", "exec", "--no-home", f"--pwd={team}/job-1"),
        *(f"--bind={team}", f"--bind={tmp_path}/0.beat", "--nv", "a.sif", "train", "--fast"),
    ]
    assert inside.environment == {"A": "b", **MARK}
    assert inside.user == TEAMS_USER


def test_a_runtime_gets_of_the_controllers_environment_what_it_reads():
    given = {"HOME": "/h", "XDG_RUNTIME_DIR": "/r", "TENFOLD_TOKEN": "x", "PATH": "/bin"}
    assert runtime_variables(given) == {"HOME": "/h", "XDG_RUNTIME_DIR": "/r"}


@pytest.mark.parametrize(
    ("name", "of_work", "code"),
    [
        ("podman", {"env": (("KEY", "a\nb"),)}, "unusable-word"),
        ("apptainer", {"image": "docker://alpine"}, "image-elsewhere"),
        ("podman", {"image": "--privileged"}, "unusable-image"),
        ("podman", {"image": "docker://alpine"}, "unusable-image"),
        ("podman", {"image": "dir:secrets"}, "unusable-image"),
        ("podman", {"image": "oci-archive:/x.tar"}, "unusable-image"),
        ("podman", {"image": "two words"}, "unusable-image"),
    ],
)
def test_what_a_runtime_cannot_do_is_refused(
    tmp_path: Path, name: str, of_work: dict[str, object], code: str
):
    (tmp_path / name).touch(0o755)
    _, reason = why_refused(order(**{"image": "alpine", **of_work}), str(tmp_path))
    assert reason is not None
    assert reason.code == code


@pytest.mark.parametrize(
    "image",
    [
        "alpine",
        "localhost/mine:1.2-rc",
        "registry.example:5000/team/sub/train:v2",
        f"nvcr.io/nvidia/pytorch@sha256:{'0a' * 32}",
        "d052e236e955",
    ],
)
def test_names_of_images_that_are_here_are_taken(tmp_path: Path, image: str):
    (tmp_path / "podman").touch(0o755)
    assert why_refused(order(image=image), str(tmp_path)) == (f"{tmp_path}/podman", None)


def test_gpus_that_nobody_described_are_a_reason_to_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "podman").touch(0o755)
    monkeypatch.setattr(images, "_present", lambda gpus: list(cast("list[int]", gpus)))
    monkeypatch.setattr(images, "_describes_gpus", lambda _folder: False)
    _, reason = why_refused(order(image="alpine"), str(tmp_path))
    assert reason is not None
    assert reason.code == "gpus-not-described"
    assert "nvidia-ctk" in render(reason)


@pytest.mark.parametrize(
    ("runtime", "said", "code", "why"),
    [
        (
            "podman",
            "Error: alpine: image not known",
            125,
            "Tenfold does not pull images: run `podman pull`",
        ),
        ("podman", "Error: crun: no: OCI permission denied", 126, "crun: no: OCI permission"),
        ("podman", "ERROR (catatonit:2): failed to exec pid1: No such file", 1, "`train`"),
        ("apptainer", "FATAL:   could not open image a.sif", 255, "could not open image a.sif"),
        ("podman", "Error: of the job's own", 1, ""),
        ("podman", "it says nothing", 127, ""),
        ("podman", "", 125, ""),
    ],
)
def test_why_an_image_did_not_run_is_what_its_runtime_said_last(
    tmp_path: Path, runtime: str, said: str, code: int, why: str
):
    (tmp_path / "0.log").write_text(f"before\n{said}\n\n")
    reason = runtime_failure(line(f"/bin/{runtime}"), str(tmp_path), 0, code)
    if not why:
        assert reason is None
    else:
        assert reason is not None
        assert reason["code"] == "image-not-run"
        assert why in reason["sentence"]


def test_the_end_of_a_plain_job_is_not_read_for_words_of_a_runtime(tmp_path: Path):
    (tmp_path / "0.log").write_text("Error: alpine: image not known\n")
    assert runtime_failure(line(image=""), str(tmp_path), 0, 125) is None
