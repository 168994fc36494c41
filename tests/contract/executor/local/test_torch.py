"""Torch finds its gang by what the local executor sets: two virtual nodes, gloo, no options."""

import importlib.util
import os
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
    executor = rig.connect()
    work = RunSpec(name="sum", command=(*launcher, str(tmp_path / "sum.py")))
    members = tuple(Member(node=NodeId(node), gpus=gpus) for node in ("a", "b"))
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
