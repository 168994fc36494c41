"""The torchrun export really trains: two gloo processes on the CPU, two steps."""

import importlib.util
import json
import math
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from msgspec.structs import replace

from patience import HANG_S
from tenfold.files.launch.torchrun import render
from tenfold.model.facts.shape import ModelShape
from tenfold.model.job.launch import LaunchJob
from tenfold.model.plan import Shard, TrainPlan

REQUIRED = os.environ.get("TENFOLD_REQUIRE_ENGINES") == "1"
MISSING = importlib.util.find_spec("torch") is None

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(MISSING and not REQUIRED, reason="torch is missing: pip install torch"),
]

TINY = TrainPlan(
    model="tiny",
    shape=ModelShape(layers=2, hidden=32, heads=4, kv_heads=2, head_dim=8, ffn=64, vocab=97),
    seq=16,
    micro_batch=2,
    global_batch=8,
    accelerator="cpu",
    gpus=2,
    gpus_per_node=2,
    dp=2,
    precision="fp32",
    recompute="selective",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("torchrun")


def start(plan: TrainPlan, folder: Path) -> subprocess.CompletedProcess[str]:
    """Write the export and run its script as a user would."""
    folder.mkdir()
    for name, text in render(plan, LaunchJob(name="tiny", steps=2)).items():
        (folder / name).write_text(text)
    return run_torchrun(folder)


def run_torchrun(folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        # Loopback and one thread each: the test must not depend on the machine.
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
    }
    return subprocess.run(
        ["bash", "torchrun.sh"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )


@cache
def losses(shard: Shard, folder: Path) -> tuple[float, ...]:
    result = start(replace(TINY, shard=shard), folder / shard)
    assert result.returncode == 0, result.stderr
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["step"] for row in rows] == [0, 1]
    assert all(row["step_s"] > 0 for row in rows)
    return tuple(row["loss"] for row in rows)


@pytest.mark.parametrize("shard", ["none", "zero1", "zero3"])
def test_a_sharding_trains_with_a_finite_loss(shard: Shard, folder: Path):
    found = losses(shard, folder)
    assert all(math.isfinite(loss) for loss in found)
    # Random tokens cannot be foreseen: at first every token is as likely.
    assert found[0] == pytest.approx(math.log(TINY.shape.vocab), rel=0.05)


@pytest.mark.parametrize("shard", ["zero1", "zero3"])
def test_a_sharding_changes_where_states_lie_and_not_what_is_learned(shard: Shard, folder: Path):
    assert losses(shard, folder) == pytest.approx(losses("none", folder), rel=1e-5)


def test_the_program_refuses_a_plan_that_it_would_not_follow(folder: Path):
    place = folder / "refused"
    place.mkdir()
    for name, text in render(TINY, LaunchJob(steps=1)).items():
        (place / name).write_text(text)
    fields = json.loads((place / "train_plan.json").read_text())
    (place / "train_plan.json").write_text(json.dumps({**fields, "tp": 2, "pp": 4}))
    result = subprocess.run(
        [sys.executable, "train_example.py"],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert result.returncode == 2
    assert "the plan has tp 2, pp 4" in result.stderr
    assert "export the plan as `megatron` or `torchtitan`" in result.stderr
