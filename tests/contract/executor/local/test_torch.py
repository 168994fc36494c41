"""Torch finds its gang by what the local executor sets: two virtual nodes, gloo, no options."""

import importlib.util
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.executor.local.test_executor import LocalRig
from contract.executor.real_processes import JOB, wait_for
from tenfold.live.executor import AttemptEnded, AttemptLost, Launch, Member
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.run_spec import RunSpec

REQUIRED = os.environ.get("TENFOLD_REQUIRE_ENGINES") == "1"
MISSING = importlib.util.find_spec("torch") is None

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(MISSING and not REQUIRED, reason="torch is missing: pip install torch"),
]

SUM = """
import os, torch, torch.distributed as gang
gang.init_process_group("gloo")
mine = torch.ones(1) * (gang.get_rank() + 1)
gang.all_reduce(mine)
# Two processes share the log: what is written at once stays together.
os.write(1, f"sum {int(mine)} of {gang.get_world_size()}\\n".encode())
gang.destroy_process_group()
"""


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[LocalRig]:
    rig = LocalRig(tmp_path / "state")
    yield rig
    rig.close()


@pytest.mark.parametrize(
    ("launcher", "gpus", "said"),
    [
        ((sys.executable,), (), "sum 3 of 2"),
        ((sys.executable, "-m", "torch.distributed.run"), (0, 1), "sum 10 of 4"),
    ],
    ids=["one process per node", "torchrun"],
)
def test_a_gang_meets(
    rig: LocalRig, tmp_path: Path, launcher: tuple[str, ...], gpus: tuple[int, ...], said: str
):
    (tmp_path / "sum.py").write_text(SUM)
    work = RunSpec(name="sum", command=(*launcher, str(tmp_path / "sum.py")))
    _assert_both_say(said, rig, work, gpus)


def test_the_usual_batch_script_meets_at_the_first_node_that_scontrol_names(
    rig: LocalRig, tmp_path: Path
):
    """The nodes have names that do not resolve, as virtual nodes do."""
    (tmp_path / "sum.py").write_text(SUM)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = f"""
        MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)
        srun {sys.executable} -m torch.distributed.run --nnodes=2 --nproc_per_node=1 \\
          --rdzv_backend=c10d --rdzv_id=$SLURM_JOB_ID --rdzv_endpoint=$MASTER_ADDR:{port} \\
          {tmp_path / "sum.py"}
    """
    work = RunSpec(name="sum", command=("bash", "-c", script), slurm_variables=True)
    _assert_both_say("sum 3 of 2", rig, work, (0,))


def _assert_both_say(said: str, rig: LocalRig, work: RunSpec, gpus: tuple[int, ...]) -> None:
    executor = rig.connect()
    members = tuple(Member(node=NodeId(node), gpus=gpus) for node in ("virtual-1", "virtual-2"))
    executor.start(
        Launch(job_id=JobId(JOB), attempt=1, team=TeamId("team"), run_spec=work, members=members)
    )
    seen = wait_for(
        executor,
        lambda seen: any(isinstance(one, AttemptEnded | AttemptLost) for one in seen),
        deadline_s=200,
    )
    logs = [executor.logs(JOB, 1, rank).tail.decode() for rank in range(2)]
    assert seen[-1].exit_code == 0, logs
    assert all(said in log for log in logs), logs
