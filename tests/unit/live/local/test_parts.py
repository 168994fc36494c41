"""The parts of the local executor that can be asked without starting a job."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tenfold.live.executor import Launch, Member
from tenfold.live.local.attempt import logs
from tenfold.live.local.attempt.environment import attempt_mark, inherited, member_environment
from tenfold.live.local.attempt.folder import ExecutorDir
from tenfold.live.local.attempt.heartbeat import Heartbeats, touch_heartbeat
from tenfold.live.local.attempt.places import JobFolders
from tenfold.live.local.member.limits import SupervisorGroup, detect_limits
from tenfold.live.local.spawner.launches import launch_line, why_refused
from tenfold.live.local.spawner.wire import LaunchLine
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.run_spec import CheckpointSpec, RunSpec

HEAVY = (
    "msgspec",
    "numpy",
    "asyncio",
    "subprocess",
    "threading",
    "logging",
    "traceback",
    "pathlib",
)


def order(*, gpus: tuple[int, ...] = (), members: int = 1, **of_work: object) -> Launch:
    work = RunSpec(**{"name": "w", "command": ("true",), **of_work})  # type: ignore[arg-type]
    return Launch(
        job_id=JobId("job-1"),
        attempt=2,
        team=TeamId("team"),
        run_spec=work,
        members=tuple(Member(node=NodeId(f"n{at}"), gpus=gpus) for at in range(members)),
    )


def line(launch: Launch) -> LaunchLine:
    return launch_line(launch, {"PATH": "/bin"}, "", 1_000)


def variables(launch: Launch, rank: int = 0) -> dict[str, str]:
    return member_environment(
        line(launch), rank, 4_000, home="/t", attempt_folder="/a/1", saves_folder=""
    )


def test_the_spawner_loads_nothing_heavy():
    root = str(Path(__file__).parents[4] / "src")
    program = (
        f"import sys; sys.path.append({root!r}); import tenfold.live.local.spawner.spawner; "
        "print(' '.join(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    assert [name for name in HEAVY if name in loaded] == []


# Environment.


def test_nothing_but_what_is_listed_is_inherited():
    assert inherited({"PATH": "/x", "TZ": "UTC", "AWS_SECRET": "s", "HOME": "/me"}) == {
        "PATH": "/x",
        "TZ": "UTC",
    }
    assert "/usr/bin" in inherited({})["PATH"]


def test_a_gang_of_one_process_per_node_is_numbered_without_a_launcher():
    values = variables(order(members=3, gpus=(4,)), 2)
    assert (values["RANK"], values["WORLD_SIZE"], values["LOCAL_RANK"]) == ("2", "3", "0")
    assert values["CUDA_VISIBLE_DEVICES"] == "4"


def test_a_gang_with_several_devices_per_node_is_left_to_its_launcher():
    values = variables(order(members=2, gpus=(0, 3)), 1)
    assert "RANK" not in values
    assert (values["PET_NNODES"], values["PET_NODE_RANK"]) == ("2", "1")
    assert values["PET_NPROC_PER_NODE"] == "2"


def test_a_job_without_devices_sees_none():
    assert variables(order())["CUDA_VISIBLE_DEVICES"] == ""


def test_a_job_cannot_take_the_identity_of_another():
    values = variables(order(env=(("TENFOLD_JOB", "other"), ("TENFOLD_HEARTBEAT", "/x"))))
    assert values["TENFOLD_JOB"] == "job-1"
    assert f"TENFOLD_HEARTBEAT={values['TENFOLD_HEARTBEAT']}".encode().startswith(
        attempt_mark("/a/1")
    )


# Launches and folders.


@pytest.mark.parametrize(
    ("launch", "code"),
    [
        (order(command=()), "no-command"),
        (order(members=0), "no-members"),
        (order(folder="../x"), "folder-outside-team"),
        (order(folder="a/../../x"), "folder-outside-team"),
        (order(checkpoint=CheckpointSpec(folder="../../x")), "folder-outside-team"),
        (order(env=(("A=B", "c"),)), "unusable-word"),
        (order(command=("a\0b",)), "unusable-word"),
        (order(image="--privileged"), "unusable-image"),
        (order(image="alpine"), "no-container-runtime"),
    ],
)
def test_a_launch_that_cannot_be_is_turned_away(launch: Launch, code: str):
    _, reason = why_refused(launch, "/nowhere")
    assert reason is not None
    assert reason.code == code


@pytest.mark.parametrize("folder", ["", "a/b", "/data/x", "a/..", "...x"])
def test_a_folder_under_the_teams_or_a_whole_path_will_do(folder: str):
    assert why_refused(order(folder=folder), "/nowhere") == ("", None)


def test_attempts_of_a_job_share_a_folder_and_what_they_saved(tmp_path: Path):
    home = ExecutorDir(str(tmp_path))
    folders = JobFolders(home, line(order(checkpoint=CheckpointSpec(folder="ckpt"))))
    assert folders.workdir == f"{tmp_path}/teams/team/job-1"
    assert folders.checkpoints == f"{tmp_path}/teams/team/job-1/ckpt"
    folders.prepare()
    assert os.path.isdir(folders.checkpoints)
    assert folders.mounts() == [folders.team]
    elsewhere = JobFolders(
        home, line(order(folder="/data", checkpoint=CheckpointSpec(folder="ckpt")))
    )
    assert elsewhere.mounts() == [elsewhere.team, "/data"]


# Limits, on a tree that only looks like the kernel's.


def controls(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("cgroup.procs", *names):
        (folder / name).write_text("")


def test_cgroup_v1_is_taken_where_v2_has_no_controllers(tmp_path: Path):
    own = tmp_path / "own"
    own.write_text("4:memory:/mine\n1:cpu:/\n0::/\n")
    controls(tmp_path / "memory" / "mine")
    controls(tmp_path / "cpu")
    controls(tmp_path / "unified", "cgroup.controllers", "cgroup.subtree_control")
    limits = detect_limits("tenfold-x", root=str(tmp_path), own=str(own))
    assert limits.kind == "cgroup-v1"
    memory = tmp_path / "memory" / "mine" / "tenfold-x" / "job.1"
    controls(memory, "memory.limit_in_bytes", "memory.oom_control")
    group = limits.make("job.1", cpus_milli=0, memory_mib=64)
    assert group.folders == [str(memory)]
    assert (memory / "memory.limit_in_bytes").read_text() == str(64 * 1024 * 1024)
    assert not group.ran_out_of_memory()
    (memory / "memory.oom_control").write_text("under_oom 0\noom_kill 2\n")
    assert group.ran_out_of_memory()
    (memory / "cgroup.procs").write_text("12\n13\n")
    assert limits.group("job.1").pids() == [12, 13]


def test_cgroup_v2_is_taken_where_it_has_controllers(tmp_path: Path):
    own = tmp_path / "own"
    own.write_text("0::/user\n")
    controls(tmp_path, "cgroup.controllers")
    controls(tmp_path / "user", "cgroup.subtree_control")
    (tmp_path / "user" / "cgroup.controllers").write_text("cpu memory pids\n")
    base = tmp_path / "user" / "tenfold-x"
    controls(base, "cgroup.subtree_control")
    (base / "cgroup.controllers").write_text("cpu memory\n")
    controls(base / "probe")
    limits = detect_limits("tenfold-x", root=str(tmp_path), own=str(own))
    assert limits.kind == "cgroup-v2"
    controls(base / "job.1", "cpu.max", "memory.max")
    limits.make("job.1", cpus_milli=1_500, memory_mib=10)
    assert (base / "job.1" / "cpu.max").read_text() == "150000 100000"
    assert (base / "job.1" / "memory.max").read_text() == str(10 * 1024 * 1024)


def test_a_supervisor_joins_a_group_of_its_own_once_and_changes_its_limit(tmp_path: Path):
    own = tmp_path / "own"
    own.write_text("4:pids:/mine\n")
    controls(tmp_path / "pids" / "mine")
    limits = detect_limits("tenfold-x", root=str(tmp_path), own=str(own))
    folder = tmp_path / "pids" / "mine" / "tenfold-x" / "1.supervisor"
    controls(folder, "pids.max")
    group = SupervisorGroup(limits)
    group.limit(5)
    assert (group.join("1.supervisor", 10), group.name) == (True, "1.supervisor")
    assert (folder / "pids.max").read_text() == "11", "the supervisor is one of them"
    assert (folder / "cgroup.procs").read_text() == "0"
    assert not group.join("2.supervisor", 0)
    assert (group.name, (folder / "pids.max").read_text()) == ("1.supervisor", "max")


def test_a_supervisor_stays_where_it_is_without_a_controller_for_processes(tmp_path: Path):
    limits = detect_limits("tenfold-x", root=str(tmp_path), own=str(tmp_path / "none"))
    group = SupervisorGroup(limits)
    assert (group.join("1.supervisor", 10), group.name) == (False, "")


def test_without_control_groups_there_is_prlimit(tmp_path: Path):
    limits = detect_limits("tenfold-x", root=str(tmp_path), own=str(tmp_path / "none"))
    assert limits.kind == "prlimit"
    group = limits.make("job.1", cpus_milli=500, memory_mib=64)
    assert (group.kind, group.folders) == ("prlimit", [])
    assert limits.make("job.2", cpus_milli=0, memory_mib=0).folders == []


# Logs.


def test_a_log_keeps_the_newest_and_counts_what_it_drops(tmp_path: Path):
    log = logs.LogWriter(str(tmp_path), 0, bytes_most=40)
    for number in range(100):
        log.write(f"line {number:03d}\n".encode())
    log.close()
    paths = logs.segments(str(tmp_path), 0)
    kept = b"".join(Path(path).read_bytes() for path in paths)
    assert len(kept) <= 40
    assert log.bytes_dropped + len(kept) == 900
    assert kept.endswith(b"line 098\nline 099\n")
    assert logs.tail(paths, 12) == kept[-12:]
    assert logs.tail(paths, 10_000) == kept


def test_a_log_that_cannot_be_written_is_dropped_and_the_pipe_read_all_the_same(tmp_path: Path):
    log = logs.LogWriter(str(tmp_path / "no-such-folder"), 0)
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.write(writer, b"x" * 1_000)
    assert log.copy_from(reader)
    assert log.bytes_dropped == 1_000
    os.close(writer)
    assert not log.copy_from(reader)
    os.close(reader)


# Heartbeats.


def test_a_member_is_silent_when_its_file_stops_changing(tmp_path: Path):
    beats = Heartbeats(str(tmp_path), 2, 1_000, 0)
    for rank in range(2):
        os.utime(touch_heartbeat(str(tmp_path), rank), ns=(1, 1))
    assert beats.hung_member(0, [0, 1]) is None
    assert beats.next_check_ms(100) == [150]
    os.utime(touch_heartbeat(str(tmp_path), 0), ns=(2, 2))
    assert beats.hung_member(900, [0, 1]) is None
    assert beats.hung_member(1_200, [0, 1]) == 1
    assert beats.hung_member(1_500, [0]) is None


def test_the_date_of_a_heartbeat_may_lie_anywhere(tmp_path: Path):
    """A clock that was set back makes files of the future."""
    beats = Heartbeats(str(tmp_path), 1, 1_000, 0)
    for turn in range(10):
        os.utime(touch_heartbeat(str(tmp_path), 0), ns=(10**18 - turn, 10**18 - turn))
        assert beats.hung_member(900 * turn, [0]) is None


def test_nothing_is_watched_that_was_not_asked_for(tmp_path: Path):
    beats = Heartbeats(str(tmp_path), 1, None, 0)
    assert beats.hung_member(10**9, [0]) is None
    assert beats.next_check_ms(10**9) == []
