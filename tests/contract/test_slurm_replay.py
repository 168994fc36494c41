"""The `slurm` policy in the simulator against a Slurm that really runs, job by job.

A small set of jobs: `./dev bench slurm` does the same with 300. The seed is one with which
the simulator gives about the same waits whenever the passes happen to fall.
"""

from pathlib import Path

import pytest

from engines.slurm import running_slurm
from engines.slurm_jobs import (
    CONF,
    NODES,
    PARTITIONS,
    controller_began_ms,
    run_jobs,
    timed_jobs,
)
from engines.slurm_replay import compare
from tenfold.files.slurm_conf import read_slurm_conf

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]


def test_waits_and_the_order_of_starts_are_those_of_a_real_slurm(tmp_path: Path):
    jobs = timed_jobs(60, over_s=5.0, seconds_max=8.0, seed=34)
    with running_slurm(tmp_path, NODES, CONF, PARTITIONS) as slurm:
        outcomes = run_jobs(slurm, jobs, timeout_s=200.0)
        began_ms = controller_began_ms(slurm)
        policy = read_slurm_conf(slurm.folder / "slurm.conf")
    found = compare(outcomes, NODES, policy, began_ms)
    print(
        f"\nmean wait: Slurm {found.wait_real_s:.1f} s, simulated {found.wait_simulated_s:.1f} s;"
        f" Kendall's tau of the start order {found.tau:.3f}"
    )
    assert len(outcomes) == 60
    assert found.wait_error <= 0.15
    assert found.tau >= 0.85
