"""The Slurm export is accepted by a real Slurm, and starts torchrun once on each node."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from engines.slurm import SlurmNode, running_slurm
from patience import HANG_S
from tenfold.files.launch.formats import render_format
from tenfold.model.facts.shape import ModelShape
from tenfold.model.job.launch import LaunchJob
from tenfold.model.plan import TrainPlan

pytestmark = pytest.mark.engine

PLAN = TrainPlan(
    model="tiny",
    shape=ModelShape(layers=2, hidden=32, heads=4, kv_heads=2, head_dim=8, ffn=64, vocab=97),
    seq=16,
    micro_batch=2,
    global_batch=16,
    accelerator="H100-80G-SXM",
    gpus=4,
    gpus_per_node=2,
    dp=4,
)
NODES = [
    SlurmNode(name=f"n{number}", cpus=2, memory_mib=1000, gpu_type="h100", gpus=2)
    for number in (1, 2)
]


def test_slurm_accepts_the_script_and_starts_torchrun_once_on_each_node(tmp_path: Path):
    job = LaunchJob(name="llama", steps=100, save_steps=10, time_limit_s=5400)
    folder = tmp_path / "job"
    folder.mkdir()
    for name, text in render_format(PLAN, "slurm", job).items():
        (folder / name).write_text(text)
    # Stands in for torchrun: this test is of the script, not of torch.
    torchrun = tmp_path / "torchrun"
    torchrun.write_text('#!/bin/sh\necho "$SLURM_NODEID $SLURM_NNODES $SLURM_GPUS_ON_NODE $*"\n')
    torchrun.chmod(torchrun.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "slurm").mkdir()
    with running_slurm(tmp_path / "slurm", NODES) as slurm:
        environment = {**slurm.environment, "PATH": f"{tmp_path}:{os.environ['PATH']}"}

        def sbatch(option: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                ["sbatch", option, "job.sbatch"],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=HANG_S,
                check=False,
            )

        tested = sbatch("--test-only")
        assert tested.returncode == 0, tested.stderr
        assert "to start at" in tested.stderr
        assert "n[1-2]" in tested.stderr
        ran = sbatch("--wait")
        assert ran.returncode == 0, ran.stderr
    lines = sorted(next(folder.glob("llama-*.out")).read_text().split("\n"))
    starts = [line.split()[:3] for line in lines if line]
    assert starts == [["0", "2", "2"], ["1", "2", "2"]]
    assert all("--nnodes=2 --nproc-per-node=2" in line for line in lines if line)
