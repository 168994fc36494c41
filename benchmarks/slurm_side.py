"""The simulator beside a really running Slurm: the same jobs, the same `slurm.conf`.

Slurm runs 300 sleeping jobs on four nodes with eight fake GPUs each: arrays, gangs of one and
of two nodes, two partitions and several nice values, submitted faster than they can run. The
simulator then gets what Slurm recorded of each job but its start. All jobs have the shortest
limit that Slurm knows, a minute: with limits of one to three minutes for jobs of seconds the
plan is chaotic, and in the simulator alone a shift of the passes by a fraction of a second
moves the mean wait by up to a fifth.
"""

import tempfile
from pathlib import Path

import pytest

from benchmarks.verdict import Verdict
from tenfold.files.slurm.conf import read_slurm_conf
from tests.engines.slurm import running_slurm
from tests.engines.slurm_jobs import (
    CONF,
    NODES,
    PARTITIONS,
    controller_began_ms,
    run_jobs,
    timed_jobs,
)
from tests.engines.slurm_replay import Comparison, Pair, compare

JOBS = 300
OVER_S = 150.0
SEED = 7
TIMEOUT_S = 1_800.0


def run(thresholds: dict[str, float]) -> list[Verdict]:
    jobs = timed_jobs(JOBS, over_s=OVER_S, seed=SEED)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="tenfold-") as name,
            running_slurm(Path(name), NODES, CONF, PARTITIONS) as slurm,
        ):
            version = slurm.ask("sinfo", "--version").strip()
            outcomes = run_jobs(slurm, jobs, timeout_s=TIMEOUT_S)
            began_ms = controller_began_ms(slurm)
            policy = read_slurm_conf(slurm.folder / "slurm.conf")
    except pytest.skip.Exception as skipped:
        print(f"not run: {skipped}")
        return []
    found = compare(outcomes, NODES, policy, began_ms)
    print(f"{version}, {len(outcomes)} jobs in {len(jobs)} submissions, seed {SEED}")
    _print(found)
    return [
        Verdict("mean wait, error of the simulator", found.wait_error, thresholds["wait_error"]),
        Verdict("start order, Kendall's tau", found.tau, at_least=thresholds["tau"]),
    ]


def _print(found: Comparison) -> None:
    print(f"{'jobs':24} {'count':>5} {'Slurm wait s':>13} {'simulated s':>12}")
    kinds: dict[str, list[Pair]] = {}
    for pair in found.pairs:
        asked = pair.outcome.asked
        kinds.setdefault(f"{asked.nodes} x {asked.gpus_per_node} gpus", []).append(pair)
        kinds.setdefault(f"partition {asked.partition}", []).append(pair)
        kinds.setdefault(f"nice {asked.nice}", []).append(pair)
        if asked.tasks > 1:
            kinds.setdefault("in arrays", []).append(pair)
    for kind, pairs in [*sorted(kinds.items()), ("all", found.pairs)]:
        real = sum(pair.real_s for pair in pairs) / len(pairs)
        simulated = sum(pair.simulated_s for pair in pairs) / len(pairs)
        print(f"{kind:24} {len(pairs):5} {real:13.1f} {simulated:12.1f}")
    apart = sorted(abs(pair.real_s - pair.simulated_s) for pair in found.pairs)
    print(
        f"waits differ by {apart[len(apart) // 2]:.1f} s in the median, {apart[-1]:.1f} s at most"
    )
    print(f"mean wait: Slurm {found.wait_real_s:.1f} s, simulated {found.wait_simulated_s:.1f} s")
    print(f"start order: Kendall's tau {found.tau:.3f}")
