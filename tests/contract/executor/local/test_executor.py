"""The local executor obeys the contract, and keeps its own promises about this machine."""

import os
import resource
import select
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.executor.contract import ExecutorContract
from contract.executor.processes import LocalProcessContract
from contract.executor.real_processes import (
    DEADLINE_S,
    FOREVER,
    JOB,
    NOW_MS,
    Ear,
    Process,
    launch,
    wait_for,
    wait_for_a,
    wait_until_over,
)
from contract.executor.service import ServiceContract
from tenfold.live.executor import (
    AttemptLost,
    AttemptStarted,
    ExecutorWarning,
    Launch,
    Member,
    NodeReachable,
    NodeUnreachable,
    OrderRefused,
)
from tenfold.live.local.executor import LocalExecutor
from tenfold.model.errors import Refused
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.run_spec import CheckpointSpec, RunSpec
from tenfold.model.units import Millis
from tenfold.report.reasons.render import render

LOG_BYTES_MOST = 1024 * 1024

LIBRARY_SIGNALS = 1 << 31 | 1 << 32
"""Signals 32 and 33 belong to the C library, whose `posix_spawn` has a command ignore them."""


class LocalRig:
    """A state folder, whoever is connected to it, and what may be killed."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._clients: list[LocalExecutor] = []

    def connect(self) -> LocalExecutor:
        environment = {**os.environ, "TENFOLD_TOKEN": "a secret", "TZ": "UTC"}
        client = LocalExecutor(
            str(self.home), environment=environment, log_bytes_most=LOG_BYTES_MOST
        )
        self._clients.append(client)
        return client

    def kill_service(self) -> None:
        spawner = Process(self._clients[-1].link.spawner)
        spawner.kill()
        assert spawner.is_gone()

    def supervisor(self, job_id: JobId, attempt: int) -> Process:
        record = self._clients[-1].home.attempt(job_id, attempt).record()
        return Process(record["supervisor"])

    def kill_watcher(self, job_id: JobId, attempt: int) -> None:
        supervisor = self.supervisor(job_id, attempt)
        supervisor.kill()
        assert supervisor.is_gone()

    def lose_node(self, node: NodeId) -> None:
        self._clients[-1].lose_node(node)

    def restore_node(self, node: NodeId) -> None:
        self._clients[-1].restore_node(node)

    def close(self) -> None:
        """Leave nothing behind: end every attempt, then the spawner."""
        for client in self._clients:
            client.close()
        last = LocalExecutor(str(self.home))
        phases = {state.job_id: state for state in last.attempts() if state.end is None}
        for state in phases.values():
            last.stop(state.job_id, state.attempt, NOW_MS)
        wait_for(last, lambda _: all(state.end for state in last.attempts()))
        spawner = Process(last.link.spawner)
        last.stop_spawner()
        assert spawner.is_gone()
        last.close()


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[LocalRig]:
    # Longer than the path of a socket may be.
    rig = LocalRig(tmp_path / ("state" * 25))
    yield rig
    rig.close()


@pytest.fixture
def ear(tmp_path: Path) -> Iterator[Ear]:
    ear = Ear(tmp_path / "ear")
    yield ear
    ear.close()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[LocalRig]:
    """A state folder on a file system of one megabyte."""
    home = tmp_path / "small"
    home.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(home)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root may mount a small file system")
    rig = LocalRig(home)
    try:
        yield rig
        for full in home.rglob("full"):
            full.unlink()
        rig.close()
    finally:
        subprocess.run(["umount", "-l", str(home)], check=False)


class TestLocalExecutor(ExecutorContract, ServiceContract, LocalProcessContract):
    """Every test of the contract."""


def test_only_what_is_listed_is_passed_on_to_a_job(rig: LocalRig):
    executor = rig.connect()
    executor.start(launch("env", env=(("MINE", "1"), ("RANK", "9"))))
    wait_until_over(executor)
    lines = executor.logs(JOB, 1, 0).tail.decode().splitlines()
    values = dict(line.split("=", 1) for line in lines)
    assert "TENFOLD_TOKEN" not in values
    assert values["TZ"] == "UTC"
    assert values["MINE"] == "1"
    assert values["RANK"] == "0"
    assert values["HOME"] == str(rig.home / "teams" / "team")


def test_state_and_team_folders_are_closed_to_others(rig: LocalRig):
    executor = rig.connect()
    executor.start(launch("pwd; umask", checkpoint=CheckpointSpec(folder="saved")))
    wait_until_over(executor)
    team = rig.home / "teams" / "team"
    assert executor.logs(JOB, 1, 0).tail.decode().split() == [f"{team}/job%2F1", "0022"]
    assert (team / "job%2F1" / "saved").is_dir()
    for folder in (rig.home, team, rig.home / "attempts" / "job%2F1" / "1"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for file in ("spawner.sock", "notes", "spawner.log", "attempts/job%2F1/1/end.json"):
        assert stat.S_IMODE((rig.home / file).stat().st_mode) == 0o600


def test_a_job_that_writes_without_end_neither_blocks_nor_fills_the_disk(rig: LocalRig):
    executor = rig.connect()
    executor.start(launch("head -c 50000000 /dev/zero; echo; echo last"))
    end = wait_until_over(executor)[-1]
    log = executor.logs(JOB, 1, 0)
    assert end.exit_code == 0
    assert log.tail.endswith(b"\nlast\n")
    assert log.bytes_kept <= LOG_BYTES_MOST
    assert end.log_bytes_dropped + log.bytes_kept == 50_000_000 + len("\nlast\n")


def test_an_image_without_a_runtime_is_refused_with_the_reason(rig: LocalRig, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    executor = rig.connect()
    executor.start(launch("true", image="docker.io/library/alpine"))
    [refused] = wait_for_a(executor, OrderRefused)
    assert refused.reason.code == "no-container-runtime"


def test_a_folder_outside_the_teams_is_refused(rig: LocalRig):
    executor = rig.connect()
    executor.start(launch("true", folder="../other"))
    [refused] = wait_for_a(executor, OrderRefused)
    assert refused.reason.code == "folder-outside-team"


def test_a_supervisor_that_is_told_to_end_leaves_a_lost_attempt(rig: LocalRig, ear: Ear):
    """As when the machine goes down: nobody cancelled the job."""
    executor = rig.connect()
    executor.start(launch(f"echo $$ > {ear.path}; {FOREVER}"))
    ear.words(1)
    wait_for_a(executor, AttemptStarted)
    os.kill(rig.supervisor(JOB, 1).pid, signal.SIGTERM)
    [lost] = wait_until_over(executor)
    assert isinstance(lost, AttemptLost)


def test_a_job_can_be_stopped_on_a_full_disk(small: LocalRig, ear: Ear):
    executor = small.connect()
    script = f"trap 'rm full; exit 0' TERM; cat /dev/zero > full; echo $$ > {ear.path}; {FOREVER}"
    executor.start(launch(script))
    ear.words(1)
    executor.stop(JOB, 1, NOW_MS)
    assert wait_until_over(executor)[-1].how == "stopped"


def test_a_record_that_went_with_the_power_leaves_a_lost_attempt(rig: LocalRig, ear: Ear):
    executor = rig.connect()
    executor.start(launch(f"echo $$ > {ear.path}; {FOREVER}"))
    ear.words(1)
    rig.kill_watcher(JOB, 1)
    wait_until_over(executor)
    folder = Path(executor.home.attempt(JOB, 1).path)
    (folder / "end.json").unlink()
    (folder / "record").write_bytes(b"")
    rig.kill_service()
    again = rig.connect()
    assert isinstance(wait_until_over(again)[-1], AttemptLost)
    assert [(state.phase, state.members) for state in again.attempts()] == [("lost", ())]


def test_a_client_that_comes_back_is_told_which_nodes_are_lost(rig: LocalRig):
    first = rig.connect()
    first.lose_node(NodeId("a"))
    wait_for_a(first, NodeUnreachable)
    second = rig.connect()
    assert [type(one) for one in second.observations()] == [NodeUnreachable]
    first.restore_node(NodeId("a"))
    assert [type(one) for one in wait_for_a(second, NodeReachable)] == [NodeReachable]


def test_two_clients_share_one_spawner(rig: LocalRig):
    first, second = rig.connect(), rig.connect()
    assert first.link.spawner == second.link.spawner
    first.start(launch("true"))
    assert wait_until_over(second)[-1] == wait_until_over(first)[-1]


def test_members_do_not_hold_the_lock(rig: LocalRig, ear: Ear):
    """Nor any other descriptor of the supervisor or the spawner."""
    executor = rig.connect()
    executor.start(launch(f"ls -l /proc/$$/fd > {ear.path}; echo end > {ear.path}"))
    wait_until_over(executor)
    words = ear.words(1)
    while words[-1] != "end":
        words += ear.words(1)
    files = [word.split(" -> ")[1] for word in words if " -> " in word]
    assert not any("record" in file or "spawner" in file for file in files)


def test_a_supervisor_holds_nothing_of_the_spawner(rig: LocalRig, ear: Ear):
    executor = rig.connect()
    executor.start(launch(f"echo $$ > {ear.path}; {FOREVER}"))
    ear.words(1)
    wait_for_a(executor, AttemptStarted)
    supervisor = rig.supervisor(JOB, 1)
    files = [os.readlink(file) for file in Path(f"/proc/{supervisor.pid}/fd").iterdir()]
    assert not any("spawner.lock" in file for file in files)
    # Its own link to the spawner, and none of the clients' connections.
    assert sum("socket" in file for file in files) == 1


@pytest.fixture
def in_the_background() -> Iterator[None]:
    """Ignore what a shell ignores for a command that it starts in the background, or by nohup."""
    ignored = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
    before = [signal.signal(number, signal.SIG_IGN) for number in ignored]
    yield
    for number, handler in zip(ignored, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.usefixtures("in_the_background")
def test_a_job_finds_signals_as_the_system_makes_them(rig: LocalRig):
    executor = rig.connect()
    executor.start(launch("grep -E '^Sig(Blk|Ign):' /proc/self/status; ulimit -n; cat"))
    assert wait_until_over(executor)[-1].exit_code == 0
    *masks, files = executor.logs(JOB, 1, 0).tail.decode().splitlines()
    assert [int(mask.split()[1], 16) & ~LIBRARY_SIGNALS for mask in masks] == [0, 0]
    assert int(files) == resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def test_a_folder_that_is_not_there_fails_the_start_with_the_reason(rig: LocalRig):
    executor = rig.connect()
    executor.start(launch("true", folder="/no/such/folder"))
    end = wait_until_over(executor)[-1]
    assert end.how == "start-failed"
    assert "/no/such/folder" in render(end.reason)


def test_memory_is_limited_where_the_machine_can(rig: LocalRig):
    executor = rig.connect()
    if executor.limits == "prlimit":
        pytest.skip("no cgroup can be made here")
    member = Member(node=NodeId("a"), cpus_milli=500, memory_mib=32)
    greedy = RunSpec(name="greedy", command=(sys.executable, "-c", "b'x' * (300 << 20)"))
    executor.start(
        Launch(job_id=JOB, attempt=1, team=TeamId("t"), run_spec=greedy, members=(member,))
    )
    end = wait_until_over(executor)[-1]
    assert (end.how, end.signal) == ("out-of-memory", 9)
    assert "32 MiB" in render(end.reason)


def test_an_end_is_written_once_there_is_room_again(small: LocalRig):
    executor = small.connect()
    executor.start(launch("cat /dev/zero > full; exit 3"))
    [trouble] = [
        one for one in wait_for_a(executor, ExecutorWarning) if isinstance(one, ExecutorWarning)
    ]
    assert trouble.reason.code == "end-not-written"
    assert "No space left" in render(trouble.reason)
    assert [state.phase for state in executor.attempts()] in (["running"], ["starting"])
    (small.home / "teams" / "team" / "job%2F1" / "full").unlink()
    end = wait_until_over(executor)[-1]
    assert (end.how, end.exit_code) == ("exited", 3)


def test_a_start_on_a_full_disk_is_refused_and_may_be_tried_again(small: LocalRig):
    executor = small.connect()
    filled = subprocess.run(
        ["dd", "if=/dev/zero", f"of={small.home}/full"], capture_output=True, check=False
    )
    assert filled.returncode != 0
    executor.start(launch("true"))
    [refused] = wait_for_a(executor, OrderRefused)
    assert refused.reason.code == "cannot-write"
    assert refused.is_transient
    (small.home / "full").unlink()
    executor.start(launch("true"))
    assert wait_until_over(executor)[-1].exit_code == 0


def test_a_spawner_that_was_asked_to_leave_is_followed_by_another(rig: LocalRig):
    executor = rig.connect()
    spawner = Process(executor.link.spawner)
    executor.stop_spawner()
    assert spawner.is_gone()
    executor.start(launch("true"))
    assert wait_until_over(executor)[-1].exit_code == 0
    assert executor.link.spawner != spawner.pid


def test_the_descriptor_stays_the_same_when_the_spawner_does_not(rig: LocalRig):
    executor = rig.connect()
    before = executor.fileno()
    rig.kill_service()
    assert select.select([executor], [], [], DEADLINE_S)[0]
    executor.observations()
    assert executor.fileno() == before
    assert executor.link.connections == 2


def test_a_job_gets_its_devices_and_its_gang(rig: LocalRig):
    executor = rig.connect()
    members = (
        Member(node=NodeId("a"), gpus=(0, 1)),
        Member(node=NodeId("b"), gpus=(2, 5)),
    )
    spec = RunSpec(
        name="w",
        command=("env",),
        checkpoint=CheckpointSpec(folder="/elsewhere", every_ms=Millis(90_000)),
    )
    executor.start(Launch(job_id=JOB, attempt=4, team=TeamId("t"), run_spec=spec, members=members))
    wait_until_over(executor)
    both = [
        dict(line.split("=", 1) for line in executor.logs(JOB, 4, rank).tail.decode().splitlines())
        for rank in range(2)
    ]
    assert [values["CUDA_VISIBLE_DEVICES"] for values in both] == ["0,1", "2,5"]
    assert [values["PET_NODE_RANK"] for values in both] == ["0", "1"]
    assert both[0]["MASTER_PORT"] == both[1]["PET_MASTER_PORT"]
    assert both[1]["TENFOLD_NODES"] == "a,b"
    assert both[1]["TENFOLD_ATTEMPT"] == "4"
    assert both[1]["TENFOLD_CHECKPOINT_DIR"] == "/elsewhere"
    assert both[1]["TENFOLD_CHECKPOINT_EVERY_S"] == "90"
    assert "RANK" not in both[0]


def test_orders_of_a_control_plane_that_no_longer_leads_are_refused(rig: LocalRig):
    stale, leads = rig.connect(), rig.connect()
    stale.fence(4)
    stale.start(launch(FOREVER, job_id=JobId("before")))
    wait_for_a(stale, AttemptStarted)
    leads.fence(5)
    stale.start(launch("true", job_id=JobId("late")))
    with pytest.raises(Refused) as refused:
        wait_for(stale, lambda _: False)
    assert refused.value.code == "orders-refused"
    stale.stop(JobId("before"), 1, NOW_MS)
    with pytest.raises(Refused):
        wait_for(stale, lambda _: False)
    (state,) = leads.attempts()
    assert (state.job_id, state.phase) == ("before", "running")
    assert "order of epoch 4 refused, 5 leads" in (rig.home / "spawner.log").read_text()


def test_no_later_spawner_forgets_which_epoch_leads(rig: LocalRig):
    leads = rig.connect()
    leads.fence(7)
    rig.kill_service()
    stale = rig.connect()
    with pytest.raises(Refused) as refused:
        stale.fence(6)
    assert refused.value.code == "orders-refused"
    assert "epoch 7" in refused.value.message
    # Tools have no epoch of their own: they act for the control plane that leads.
    rig.connect().start(launch("true", job_id=JobId("tool")))
    wait_for_a(leads, AttemptStarted)
