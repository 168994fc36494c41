"""Jobs through a control plane to Slurm beside the same jobs straight to Slurm, in turn.

Both run `true` on one CPU of four nodes on this machine, in blocks that alternate, so that both
meet the same load. A block begins with its first submission and ends when none of its jobs is left
in Slurm (straight) or every job has its result in the journal (through Tenfold). CPU is that of the
control plane with its commands, of `sbatch` (straight), and of `slurmctld`.
"""

import os
import resource
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import monotonic

import httpx
import psutil
import pytest
from msgspec import Struct

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from benchmarks.verdict import Verdict
from engines.slurm import RunningSlurm, SlurmNode, running_slurm
from patience import until
from tenfold.client.endpoint import read_address
from unit.up_process import Up

JOBS, BLOCK = 1_000, 50
NODES = [SlurmNode(name=f"n{number}", cpus=64, memory_mib=64_000) for number in range(1, 5)]
CONF = (
    "SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,sched_interval=1,"
    "default_queue_depth=2000,partition_job_depth=2000",
    "SelectTypeParameters=CR_CPU",
)
OVER = ("succeeded", "failed", "cancelled")


class Block(Struct, frozen=True):
    """What one block took."""

    submit_s: float
    all_s: float
    own_cpu_s: float
    slurmctld_cpu_s: float


def run(thresholds: dict[str, float]) -> list[Verdict]:
    try:
        with (
            tempfile.TemporaryDirectory(prefix="tenfold-") as name,
            running_slurm(Path(name), NODES, CONF) as slurm,
        ):
            return _compare(slurm, Path(name) / "home", thresholds)
    except pytest.skip.Exception as skipped:
        print(f"not run: {skipped}")
        return []


def _compare(slurm: RunningSlurm, home: Path, thresholds: dict[str, float]) -> list[Verdict]:
    os.environ["SLURM_CONF"] = slurm.environment["SLURM_CONF"]
    up = Up(home)
    up.start("--executor", "slurm", "--team-users", "off")
    straight: list[Block] = []
    through: list[Block] = []
    try:
        for _ in range(JOBS // BLOCK):
            straight.append(_straight(slurm))
            through.append(_through(up, slurm))
    finally:
        up.interrupt()
        del os.environ["SLURM_CONF"]
    print(f"{JOBS} jobs each way in blocks of {BLOCK}, load {os.getloadavg()[0]:.1f} at the end")
    print(
        f"{'':16} {'submit ms':>10} {'in all ms':>10} {'own CPU ms':>11} {'slurmctld CPU ms':>17}"
    )
    for label, blocks in (("straight", straight), ("through Tenfold", through)):
        print(
            f"{label:16} {_per_job(blocks, 'submit_s'):10.1f} {_per_job(blocks, 'all_s'):10.1f} "
            f"{_per_job(blocks, 'own_cpu_s'):11.1f} {_per_job(blocks, 'slurmctld_cpu_s'):17.2f}"
        )
    more = _per_job(through, "own_cpu_s") - _per_job(straight, "own_cpu_s")
    print(f"overhead per job: {more:.1f} ms of CPU (median of the blocks, per job)")
    commands = (home / "logs" / "server.jsonl").read_text().splitlines()
    print(next(line for line in reversed(commands) if "Slurm commands" in line))
    return [Verdict("CPU per job beyond sbatch, ms", more, thresholds["cpu_ms"])]


def _straight(slurm: RunningSlurm) -> Block:
    ctld, before, began_s = _slurmctld_cpu_s(slurm), _children_cpu_s(), monotonic()
    submit = ("sbatch", "--parsable", "--ntasks=1", "--output=/dev/null", "--wrap=true")
    for _ in range(BLOCK):
        slurm.ask(*submit)
    submitted_s, own_cpu_s = monotonic() - began_s, _children_cpu_s() - before
    until(lambda: not slurm.ask("squeue", "--noheader"), pause_s=0.2)
    return Block(submitted_s, monotonic() - began_s, own_cpu_s, _slurmctld_cpu_s(slurm) - ctld)


def _through(up: Up, slurm: RunningSlurm) -> Block:
    assert up.process is not None, "it was started"
    at = read_address(up.home)
    assert at is not None, "it answers"
    headers = {"Authorization": f"Bearer {at.token}"}
    ctld, before, began_s = _slurmctld_cpu_s(slurm), _tree_cpu_s(up.process.pid), monotonic()
    with httpx.Client(base_url=f"{at.url}/api/v1/", headers=headers, timeout=60) as client:
        ask = {"command": ["true"], "cpus_per_node": 1}
        ids = [client.post("jobs", json=ask).json()["id"] for _ in range(BLOCK)]
        submitted_s, waits = monotonic() - began_s, list(ids)

        def is_over() -> bool:
            while waits and client.get(f"jobs/{waits[-1]}").json()["state"] in OVER:
                waits.pop()
            return not waits

        until(is_over, pause_s=0.2)
    all_s, own_cpu_s = monotonic() - began_s, _tree_cpu_s(up.process.pid) - before
    return Block(submitted_s, all_s, own_cpu_s, _slurmctld_cpu_s(slurm) - ctld)


def _per_job(blocks: list[Block], what: str) -> float:
    return 1_000 * median(getattr(block, what) for block in blocks) / BLOCK


def _tree_cpu_s(pid: int) -> float:
    """Return the CPU time of a process with the children that it waited for."""
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system + times.children_user + times.children_system


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _slurmctld_cpu_s(slurm: RunningSlurm) -> float:
    times = psutil.Process(slurm.daemons.pid("slurmctld")).cpu_times()
    return times.user + times.system
