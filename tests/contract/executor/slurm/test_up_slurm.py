"""A real control plane on a real Slurm: jobs, lost nodes, and jobs of others."""

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.executor.same_job import check_same_job, log_of, shown, tenfold, until_over
from contract.executor.slurm.rig import four_nodes, power_off
from engines.slurm import RunningSlurm
from patience import until
from unit.up_process import Up

TRAIN = Path(__file__).parents[4] / "examples" / "train-and-survive" / "train.py"
TRAIN_FILE = (
    """\
name = "train"
nodes = 2
gpus_per_node = 1
grace = "2s"
env = { GLOO_SOCKET_IFNAME = "lo", OMP_NUM_THREADS = "1" }
checkpoint = { dir = "saves" }
command = ["sh", "-c", """
    + "'''"
    + """
exec PYTHON SCRIPT --steps 200 --pause-s 0.05 --every-s 0.3 --checkpoints "$TENFOLD_CHECKPOINT_DIR"
"""
    + "''']\n"
)


pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSlurm]:
    with four_nodes(tmp_path_factory.mktemp("slurm")) as running:
        before = os.environ.get("SLURM_CONF")
        os.environ["SLURM_CONF"] = running.environment["SLURM_CONF"]
        yield running
        if before is None:
            del os.environ["SLURM_CONF"]
        else:
            os.environ["SLURM_CONF"] = before


@pytest.fixture
def up(slurm: RunningSlurm, tmp_path: Path) -> Iterator[Up]:
    made = Up(tmp_path / "home")
    made.start("--executor", "slurm", "--team-users", "off")
    yield made
    made.interrupt()


def test_the_job_file_of_every_executor_runs_on_slurm(up: Up, tmp_path: Path):
    check_same_job(up, tmp_path)


def test_a_control_plane_that_is_killed_finds_its_jobs_in_slurm(up: Up, slurm: RunningSlurm):
    tenfold(up, "job", "submit", "--name", "long", "-N", "2", "-G", "4", "--", "sleep", "1000")
    until(lambda: shown(up, "long-1")["state"] == "running", pause_s=0.1)
    up.kill()
    up.start("--executor", "slurm", "--team-users", "off")
    found = shown(up, "long-1")
    assert (found["state"], len(found["attempts"])) == ("running", 1)
    assert tenfold(up, "job", "cancel", "long-1").returncode == 0
    assert until_over(up, "long-1")["state"] == "cancelled"
    until(lambda: not slurm.ask("squeue", "--noheader"), pause_s=0.2)


def test_nodes_of_one_partition_are_taken(slurm: RunningSlurm, tmp_path: Path):
    slurm.ask("scontrol", "create", "PartitionName=few", "Nodes=a,b", "Hidden=YES")
    made = Up(tmp_path / "home")
    made.start("--executor", "slurm", "--team-users", "off", "--slurm-partition", "few")
    try:
        assert "nodes: 2 up" in tenfold(made, "status").stdout
    finally:
        made.interrupt()
        slurm.ask("scontrol", "delete", "PartitionName=few")


def test_root_does_not_run_the_jobs_of_teams_unasked(slurm: RunningSlurm, tmp_path: Path):
    with pytest.raises(AssertionError, match="jobs would run as root"):
        Up(tmp_path / "home").start("--executor", "slurm")


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is missing")
def test_a_gang_that_lost_a_node_goes_on_from_its_checkpoint_on_another(
    up: Up, slurm: RunningSlurm, tmp_path: Path
):
    """Slurm finds out by itself that the node is gone, after its own timeout."""
    until(lambda: "idle" in slurm.ask("sinfo", "--noheader", "--format=%T"), pause_s=0.2)
    file = tmp_path / "train.toml"
    file.write_text(TRAIN_FILE.replace("PYTHON", sys.executable).replace("SCRIPT", str(TRAIN)))
    answer = tenfold(up, "job", "submit", str(file))
    assert answer.returncode == 0, answer.stderr
    until(lambda: log_of(up, "train-1").count("saved step") >= 2, pause_s=0.2)
    nodes = shown(up, "train-1")["attempts"][-1]["nodes"]
    power_off(slurm, nodes[1])
    found = until_over(up, "train-1")
    slurm.daemons.start(nodes[1])
    assert found["state"] == "succeeded", (found, log_of(up, "train-1"))
    first, second = found["attempts"]
    assert first["reason"] == "node-lost"
    assert nodes[1] not in second["nodes"]
    assert "begins at step 0\n" not in log_of(up, "train-1")
