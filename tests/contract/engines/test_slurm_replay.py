"""The `slurm` policy in the simulator against a Slurm that really runs, job by job.

A small set of jobs, to see that both run all of it in about the same order. How far waits lie
apart is a figure, and so a matter of `./dev bench slurm`, which does the same with 300 jobs on
a machine that has nothing else to do: where other work delays Slurm's passes, waits grow by a
fifth and say nothing of the policy.
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
from patience import HANG_S
from tenfold.files.slurm.conf import read_slurm_conf

pytestmark = pytest.mark.engine


def test_jobs_start_in_about_the_order_of_a_real_slurm(tmp_path: Path):
    jobs = timed_jobs(60, over_s=5.0, seconds_max=8.0, seed=34)
    with running_slurm(tmp_path, NODES, CONF, PARTITIONS) as slurm:
        outcomes = run_jobs(slurm, jobs, timeout_s=HANG_S)
        began_ms = controller_began_ms(slurm)
        policy = read_slurm_conf(slurm.folder / "slurm.conf")
    found = compare(outcomes, NODES, policy, began_ms)
    print(
        f"\nmean wait: Slurm {found.wait_real_s:.1f} s, simulated {found.wait_simulated_s:.1f} s;"
        f" Kendall's tau of the start order {found.tau:.3f}"
    )
    assert len(outcomes) == len(found.pairs) == 60
    assert found.tau >= 0.7
