"""The same thousand jobs on Slurm, HyperQueue and Ray, each with as many at once.

Each is run the way its own manual runs many small jobs: Slurm an array, HyperQueue one job of
many tasks on its own local cluster, Ray tasks that run the command. None of them has Tenfold's
durable journal: Slurm saves its state every few seconds, the other two keep it in memory.
Each is run twice, and the better run counts: the first may have to start its workers.
"""

import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, sleep
from typing import NamedTuple

import pytest

from tests.engines.ray_cluster import ADDRESS, running_ray
from tests.engines.slurm import SlurmNode, running_slurm

TIMEOUT_S = 600.0
LOOK_S = 0.1
SLURM_CONF = (
    "SchedulerType=sched/backfill",
    "SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,sched_interval=1,"
    "default_queue_depth=10000,partition_job_depth=0,bf_interval=1,bf_max_job_test=10000,"
    "max_rpc_cnt=0",
    "SelectTypeParameters=CR_CPU",
    "MaxArraySize=100001",
    "MaxJobCount=200000",
    "MinJobAge=300",
    "SlurmctldDebug=error",
    "SlurmdDebug=error",
)
"""What the manual advises for many short jobs; logs say only what is wrong."""


class Peer(NamedTuple):
    name: str
    jobs_s: float
    first_jobs_s: float
    """The first thousand, with workers that may not be there yet."""


def slurm(jobs: int, slots: int) -> Peer | str:
    """Return how fast a real Slurm is, or why it could not be run."""
    node = SlurmNode(name="n1", cpus=slots, memory_mib=64_000)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="tenfold-") as name,
            running_slurm(Path(name), [node], SLURM_CONF) as running,
        ):
            version = running.ask("sinfo", "--version").strip()
            rates: list[float] = []
            for _ in range(2):
                began_s = perf_counter()
                running.ask(
                    *("sbatch", "--parsable", f"--array=0-{jobs - 1}", "--ntasks=1", "--mem=1"),
                    *("--output=/dev/null", "--error=/dev/null", "--wrap=true"),
                )
                while running.ask("squeue", "--noheader", "--array", "--format=%i").strip():
                    if perf_counter() - began_s > TIMEOUT_S:
                        return f"{version} was not done after {TIMEOUT_S:.0f} s"
                    sleep(LOOK_S)
                rates.append(jobs / (perf_counter() - began_s))
    except pytest.skip.Exception as skipped:
        return str(skipped)
    return Peer(version, max(rates), rates[0])


HYPERQUEUE = """
import json, sys, time
from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig
jobs, slots, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
rates = []
with LocalCluster(folder) as cluster:
    cluster.start_worker(WorkerConfig(cores=slots))
    client = cluster.client()
    for _ in range(2):
        began = time.perf_counter()
        job = Job(max_fails=None, default_workdir=folder)
        for _ in range(jobs):
            job.program(["true"], stdout=None, stderr=None)
        client.wait_for_jobs([client.submit(job)])
        rates.append(jobs / (time.perf_counter() - began))
print(json.dumps(rates))
"""


def hyperqueue(jobs: int, slots: int) -> Peer | str:
    """Return how fast HyperQueue's own local cluster is, or why it could not be run."""
    if importlib.util.find_spec("hyperqueue") is None:
        return "no hyperqueue here: `./dev bench control` installs it, or pip install hyperqueue"
    with tempfile.TemporaryDirectory(prefix="tenfold-") as folder:
        words = [sys.executable, "-c", HYPERQUEUE, str(jobs), str(slots), folder]
        return _peer(
            "HyperQueue", subprocess.run(words, capture_output=True, text=True, check=False)
        )


RAY = """
import json, subprocess, sys, time
import ray
jobs, slots, address = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
ray.init(address, log_to_driver=False)

@ray.remote(num_cpus=ray.cluster_resources()["CPU"] / slots)
def one():
    return subprocess.run(["true"]).returncode

rates = []
for _ in range(2):
    began = time.perf_counter()
    assert not any(ray.get([one.remote() for _ in range(jobs)]))
    rates.append(jobs / (time.perf_counter() - began))
print(json.dumps(rates))
"""


def ray(jobs: int, slots: int) -> Peer | str:
    """Return how fast tasks of a real Ray are, or why it could not be run."""
    try:
        with running_ray() as cluster:
            words = [sys.executable, "-c", RAY, str(jobs), str(slots), ADDRESS]
            return _peer("Ray tasks", cluster.run(words, TIMEOUT_S))
    except pytest.skip.Exception as skipped:
        return str(skipped)


def _peer(name: str, done: subprocess.CompletedProcess[str]) -> Peer | str:
    if done.returncode:
        return f"{name} failed: {done.stderr.strip()[-400:]}"
    rates: list[float] = json.loads(done.stdout.splitlines()[-1])
    return Peer(name, max(rates), rates[0])
