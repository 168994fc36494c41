"""The Slurm executor obeys the contract on a real Slurm, and keeps its own promises about it."""

import os
import pwd
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import time_ns

import pytest
from msgspec.structs import replace

from contract.executor.contract import ExecutorContract
from contract.executor.real_processes import (
    FOREVER,
    JOB,
    LONG_MS,
    NOW_MS,
    Ear,
    kinds_of,
    launch,
    wait_for,
    wait_for_a,
    wait_until_over,
)
from contract.executor.service import ServiceContract
from contract.executor.slurm.rig import SlurmRig, four_nodes
from engines.slurm import RunningSlurm
from patience import until
from tenfold.live.executor import (
    AttemptEnded,
    AttemptLost,
    AttemptStarted,
    Member,
    NodeClosed,
    NodeOpened,
    NodeUnreachable,
    OrderRefused,
)
from tenfold.live.local.spawner.launches import launch_line
from tenfold.live.local.spawner.wire import UserLine
from tenfold.model.errors import Refused
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.run_spec import CheckpointSpec
from tenfold.report.reasons.render import render

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def slurm() -> Iterator[RunningSlurm]:
    # Where other users can read its configuration, too.
    folder = Path(tempfile.mkdtemp(prefix="tenfold-slurm-"))
    folder.chmod(0o711)
    with four_nodes(folder) as running:
        yield running
    shutil.rmtree(folder)


@pytest.fixture
def rig(slurm: RunningSlurm, tmp_path: Path) -> Iterator[SlurmRig]:
    rig = SlurmRig(tmp_path / "state", slurm)
    yield rig
    rig.close()


@pytest.fixture
def ear(tmp_path: Path) -> Iterator[Ear]:
    ear = Ear(tmp_path / "ear")
    yield ear
    ear.close()


class TestSlurmExecutor(ExecutorContract, ServiceContract):
    """Every test of the contract."""


def test_a_start_that_was_not_noted_is_found_by_its_comment(rig: SlurmRig, ear: Ear):
    """As when the controller dies after `sbatch`, before it writes down the job id."""
    first = rig.connect()
    first.start(launch(f"echo $$ > {ear.path}; {FOREVER}"))
    ear.words(1)
    wait_for_a(first, AttemptStarted)
    first.close()
    Path(first.home.attempt(JOB, 1).path, "handle").unlink()
    before = rig.jobs()
    second = rig.connect()
    assert [state.phase for state in second.attempts()] == ["running"]
    second.start(launch("true", job_id=JobId("after")))
    assert wait_until_over(second)[-1].job_id == "after"
    assert len(rig.jobs()) == len(before) + 1
    assert ear.nothing_more()


def test_a_start_that_was_not_carried_out_is_carried_out_by_the_next_controller(
    rig: SlurmRig, ear: Ear
):
    """As when the controller dies after it made the folder, before `sbatch`."""
    first = rig.connect()
    folder = first.home.attempt(JOB, 1)
    ordered = launch(f"echo $$ > {ear.path}; exit 3")
    lock = folder.make(launch_line(ordered, {"PATH": os.environ["PATH"]}, "", 1_000))
    assert lock is not None
    os.close(lock)
    first.close()
    second = rig.connect()
    assert [state.phase for state in second.attempts()] == ["starting"]
    assert wait_until_over(second)[-1].exit_code == 3
    assert len(ear.words(1)) == 1
    assert ear.nothing_more()


def test_an_attempt_that_slurm_has_twice_runs_once(rig: SlurmRig, ear: Ear):
    executor = rig.connect()
    executor.start(launch(f"echo $$ > {ear.path}; {FOREVER}"))
    ear.words(1)
    wait_for_a(executor, AttemptStarted)
    handle = Path(executor.home.attempt(JOB, 1).path, "handle").read_text()
    script = rig.slurm.ask("scontrol", "write", "batch_script", handle, "-")
    comment = rig.slurm.ask("squeue", "--noheader", f"--jobs={handle}", "--format=%k").strip()
    again = rig.slurm.ask(
        "sbatch", "--parsable", "--wait", f"--comment={comment}", "--output=/dev/null",
        "--wrap", script.partition("\n")[2],
    )  # fmt: skip
    assert again.strip().isdecimal()
    assert ear.nothing_more()
    assert [state.phase for state in executor.attempts()] == ["running"]


def test_jobs_of_others_are_seen_and_left_alone(rig: SlurmRig, tmp_path: Path):
    submit = ("sbatch", "--parsable", "--nodelist=c", "--output=/dev/null", "--wrap=sleep 1000")
    foreign = rig.slurm.ask(*submit).strip()
    other = SlurmRig(tmp_path / "another", rig.slurm)
    theirs = other.connect()
    theirs.start(launch(FOREVER, nodes=("c",)))
    wait_for_a(theirs, AttemptStarted)
    executor = rig.connect()
    executor.start(launch(FOREVER, nodes=("c",)))
    closed = [one for one in wait_for_a(executor, AttemptStarted) if isinstance(one, NodeClosed)]
    executor.stop(JOB, 1, NOW_MS)
    seen = wait_until_over(executor)
    closed += [one for one in seen if isinstance(one, NodeClosed)]
    assert [one.node for one in closed] == ["c"]
    assert "and 1 more" in render(closed[0].reason)
    state = rig.slurm.ask("squeue", "--noheader", f"--jobs={foreign}", "--format=%T")
    assert state.strip() == "RUNNING"
    assert [one.phase for one in theirs.attempts()] == ["running"]
    theirs.stop(JOB, 1, NOW_MS)
    wait_until_over(theirs)
    theirs.close()
    rig.slurm.ask("scancel", foreign)
    assert [one.node for one in wait_for_a(executor, NodeOpened)] == ["c"]


def test_a_node_that_is_drained_is_closed_until_it_is_resumed(rig: SlurmRig):
    executor = rig.connect()
    executor.start(launch(FOREVER, nodes=("a",)))
    wait_for_a(executor, AttemptStarted)
    rig.slurm.ask("scontrol", "update", "nodename=a", "state=drain", "reason=broken")
    [closed] = wait_for_a(executor, NodeClosed)
    assert isinstance(closed, NodeClosed)
    assert "draining" in render(closed.reason)
    executor.close()
    rig.slurm.ask("scontrol", "update", "nodename=a", "state=resume")
    again = rig.connect()
    assert [state.phase for state in again.attempts()] == ["running"]
    assert [type(one) for one in wait_for_a(again, NodeOpened)] == [NodeOpened]


def test_a_job_that_is_cancelled_in_slurm_counts_as_stopped(rig: SlurmRig):
    executor = rig.connect()
    executor.start(launch(FOREVER))
    wait_for_a(executor, AttemptStarted)
    rig.slurm.ask("scancel", Path(executor.home.attempt(JOB, 1).path, "handle").read_text())
    end = wait_until_over(executor)[-1]
    assert isinstance(end, AttemptEnded)
    assert end.how == "stopped"
    assert end.reason is not None
    assert end.reason.code == "cancelled-in-engine"


def test_a_start_that_waits_in_slurm_can_be_stopped(rig: SlurmRig):
    executor = rig.connect()
    fills = Member(node=NodeId("a"), gpus=tuple(range(8)))
    executor.start(replace(launch(FOREVER), members=(fills,)))
    wait_for_a(executor, AttemptStarted)
    waits = replace(launch("true", job_id=JobId("waits")), members=(fills,))
    executor.start(waits)
    until(lambda: f"{waits.job_id}.1|PD" in rig.jobs())
    executor.stop(waits.job_id, 1, LONG_MS)
    [end] = wait_until_over(executor)
    assert (end.job_id, end.how, end.exit_code) == ("waits", "stopped", None)


def test_an_order_of_a_controller_that_no_longer_leads_is_refused(rig: SlurmRig, ear: Ear):
    first, second = rig.connect(), rig.connect()
    first.fence(1)
    second.fence(2)
    first.start(launch(f"echo $$ > {ear.path}"))
    with pytest.raises(Refused, match="another control plane is the leader"):
        wait_for_a(first, AttemptStarted)
    with pytest.raises(Refused):
        first.fence(1)
    second.start(launch("true"))
    assert wait_until_over(second)[-1].exit_code == 0
    assert ear.nothing_more()


def test_a_member_has_its_devices_and_no_secret(rig: SlurmRig):
    executor = rig.connect()
    members = tuple(Member(node=NodeId(node), gpus=(0, 1)) for node in ("a", "b"))
    executor.start(replace(launch("env"), members=members))
    wait_until_over(executor)
    for rank in range(2):
        log = executor.logs(JOB, 1, rank).tail.decode()
        values = dict(line.split("=", 1) for line in log.splitlines() if "=" in line)
        assert len(values["CUDA_VISIBLE_DEVICES"].split(",")) == 2
        assert values["PET_NPROC_PER_NODE"] == "2"
        assert "TENFOLD_TOKEN" not in values
        assert "RANK" not in values


@pytest.mark.skipif(bool(shutil.which("apptainer")), reason="apptainer is here")
def test_an_image_without_a_runtime_is_refused(rig: SlurmRig):
    executor = rig.connect()
    executor.start(launch("true", image="some.sif"))
    [refused] = wait_for_a(executor, OrderRefused)
    assert isinstance(refused, OrderRefused)
    assert refused.reason.code == "no-container-runtime"


def test_a_request_that_slurm_refuses_is_refused_with_its_words(rig: SlurmRig):
    executor = rig.connect()
    too_large = Member(node=NodeId("a"), gpus=tuple(range(64)))
    executor.start(replace(launch("true"), members=(too_large,)))
    [refused] = wait_for_a(executor, OrderRefused)
    assert isinstance(refused, OrderRefused)
    assert refused.reason.code == "engine-refused"
    assert "configuration is not available" in render(refused.reason)


def test_a_job_goes_on_when_slurmctld_is_killed(rig: SlurmRig, ear: Ear, tmp_path: Path):
    """Killed, and not ended: what it had saved by then is what it knows afterwards."""
    os.mkfifo(tmp_path / "go")
    executor = rig.connect()
    executor.start(launch(f"echo $$ > {ear.path}; read -r _ < {tmp_path}/go; exit 4"))
    ear.words(1)
    wait_for_a(executor, AttemptStarted)
    saved, began = rig.slurm.folder / "controller" / "job_state", time_ns()
    until(lambda: saved.exists() and saved.stat().st_mtime_ns > began)
    rig.slurm.daemons.end("slurmctld", signal.SIGKILL)
    rig.slurm.daemons.start("slurmctld", "slurmctld", "-D")
    (tmp_path / "go").write_text("on\n")
    seen = wait_until_over(executor)
    assert [(type(one), one.exit_code) for one in seen] == [(AttemptEnded, 4)]
    assert ear.nothing_more()


def test_nodes_that_flap_and_stall_lose_no_job(rig: SlurmRig, ear: Ear, tmp_path: Path):
    """Daemons of nodes restart and stand still for a while, under a job of two nodes."""
    os.mkfifo(tmp_path / "go")
    executor = rig.connect()
    script = f"echo $$ > {ear.path}; [ $RANK = 1 ] || read -r _ < {tmp_path}/go"
    executor.start(launch(script, nodes=("a", "b")))
    ear.words(2)
    wait_for_a(executor, AttemptStarted)
    for _ in range(3):
        rig.slurm.daemons.end("a", signal.SIGKILL)
        rig.slurm.daemons.start("a")
    rig.slurm.daemons.signal("b", signal.SIGSTOP)
    executor.start(launch("true", job_id=JobId("late"), nodes=("b",)))
    (tmp_path / "go").write_text("on\n")
    rig.slurm.daemons.signal("b", signal.SIGCONT)
    seen = wait_for(executor, lambda seen: kinds_of(seen).count(AttemptEnded) == 2)
    assert sorted((one.job_id, one.exit_code) for one in seen if isinstance(one, AttemptEnded)) == [
        (JOB, 0),
        ("late", 0),
    ]
    assert not [one for one in seen if isinstance(one, NodeUnreachable | AttemptLost)]
    assert ear.nothing_more()


def test_jobs_run_as_the_unix_user_of_their_team(slurm: RunningSlurm):
    """In a folder that this user can reach."""
    home = Path(tempfile.mkdtemp(prefix="tenfold-"))
    home.chmod(0o711)
    found = pwd.getpwnam("nobody")
    user: UserLine = {"uid": found.pw_uid, "gid": found.pw_gid, "groups": [], "name": "nobody"}
    rig = SlurmRig(home / "state", slurm)
    try:
        executor = rig.connect({"team": user})
        saves = CheckpointSpec(folder="saves")
        script = 'id -un; touch "$TENFOLD_CHECKPOINT_DIR/x" "$TENFOLD_HEARTBEAT"'
        executor.start(launch(script, nodes=("a", "b"), checkpoint=saves))
        wait_until_over(executor)
        for rank in range(2):
            assert executor.logs(JOB, 1, rank).tail.decode().startswith("nobody\n")
        [saved] = home.glob("state/teams/team/*/saves/x")
        assert saved.owner() == "nobody"
        executor.start(replace(launch("true", job_id=JobId("other")), team=TeamId("unnamed")))
        [refused] = wait_for_a(executor, OrderRefused)
        assert isinstance(refused, OrderRefused)
        assert refused.reason.code == "no-unix-user"
        rig.close()
    finally:
        shutil.rmtree(home)
