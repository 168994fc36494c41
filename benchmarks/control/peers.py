"""The same thousand jobs on Slurm, HyperQueue and Ray, each with as many at once.

Each is run the way its own manual runs many small jobs: Slurm an array, HyperQueue one job of
many tasks on its own local cluster, Ray tasks that run the command. None of them has Tenfold's
durable journal: Slurm saves its state every few seconds, the other two keep it in memory. None
limits CPU, memory or processes of a job here, as Tenfold does not limit CPU and memory either.

Each runs in a process of its own, which starts it once and then runs all jobs for every line that
it reads. CPU time is that of everything this process starts: servers, workers, clients and the jobs
themselves.

    python -m benchmarks.control.peers slurm|hyperqueue|ray JOBS SLOTS
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, sleep
from typing import Any, NamedTuple

import pytest

from benchmarks.control.cpu import CpuMeter, metered
from tenfold.live.local.processes import become_subreaper
from tests.engines.ray_cluster import ADDRESS, running_ray
from tests.engines.slurm import SlurmNode, running_slurm

PEERS = ("hyperqueue", "ray", "slurm")
TIMEOUT_S = 600.0
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


class Measured(NamedTuple):
    """One run of all jobs."""

    jobs_s: float
    cpu_ms: float
    """CPU time a job, over all processes."""


class Peer:
    """A system in a process of its own, that runs all jobs whenever it is asked to."""

    def __init__(self, process: "subprocess.Popen[str]", jobs: int, meter: CpuMeter) -> None:
        self._process = process
        self._meter = meter
        self._jobs = jobs
        told = self._read()
        self.name: str = told.get("name", "")
        self.not_run: str = told.get("not_run", "")
        """Why it cannot be run here; empty if it can."""

    def run(self) -> Measured:
        assert self._process.stdin is not None, "it has a pipe"
        before_ms = self._meter.ms()
        self._process.stdin.write("run\n")
        self._process.stdin.flush()
        told = self._read()
        if "not_run" in told:
            raise RuntimeError(f"{self.name}: {told['not_run']}")
        cpu_ms = (self._meter.ms() - before_ms) / self._jobs
        return Measured(self._jobs / told["seconds"], cpu_ms)

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None, "it has a pipe"
        for line in self._process.stdout:
            # Engines write to standard output, too.
            if line.startswith("{"):
                found: dict[str, Any] = json.loads(line)
                return found
        return {"not_run": f"it ended with status {self._process.wait()}"}


@contextmanager
def running(name: str, jobs: int, slots: int) -> Generator[Peer, None, None]:
    """Start a peer, and end it and all of its processes."""
    words = [sys.executable, "-m", "benchmarks.control.peers", name, str(jobs), str(slots)]
    pipe = subprocess.PIPE
    quiet = subprocess.DEVNULL
    with (
        subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=quiet, text=True) as process,
        metered(process.pid) as meter,
    ):
        try:
            yield Peer(process, jobs, meter)
        finally:
            # Ends it.
            assert process.stdin is not None, "it has a pipe"
            process.stdin.close()
            process.wait()


Run = Callable[[], None]
"""Runs all jobs once, and returns when the last has ended."""


def pause_s(passed_s: float, done: int, jobs: int) -> float:
    """Return when to look again: once half of what is left should be done.

    Looking costs CPU time, and so every system is looked at as seldom.
    """
    left_s = passed_s / max(done, 1) * (jobs - done)
    return min(max(left_s / 2, 0.02), 1.0)


@contextmanager
def slurm(jobs: int, slots: int) -> Generator[tuple[str, Run], None, None]:
    """A real Slurm of one node."""
    node = SlurmNode(name="n1", cpus=slots, memory_mib=64_000)
    with (
        tempfile.TemporaryDirectory(prefix="tenfold-") as name,
        running_slurm(Path(name), [node], SLURM_CONF) as cluster,
    ):

        def run() -> None:
            began_s = perf_counter()
            cluster.ask(
                *("sbatch", "--parsable", f"--array=0-{jobs - 1}", "--ntasks=1", "--mem=1"),
                *("--output=/dev/null", "--error=/dev/null", "--wrap=true"),
            )
            while left := cluster.ask("squeue", "--noheader", "--array", "--format=%i").split():
                passed_s = perf_counter() - began_s
                assert passed_s < TIMEOUT_S, "it never ends"
                sleep(pause_s(passed_s, jobs - len(left), jobs))

        yield cluster.ask("sinfo", "--version").strip(), run


HYPERQUEUE = """
import sys, time
from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig
jobs, slots, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]

class NotYet(Exception):
    pass

def look(seen):
    if not all(one["completed"] for one in seen.values()):
        raise NotYet(sum(one["finished"] for one in seen.values()))

def run(client):
    job = Job(max_fails=None, default_workdir=folder)
    for _ in range(jobs):
        job.program(["true"], stdout=None, stderr=None)
    began, submitted = time.perf_counter(), client.submit(job)
    while True:
        # Its own wait looks once a second, too seldom to measure with. This is `pause_s`.
        try:
            return client.connection.wait_for_jobs((submitted.id,), look)
        except NotYet as error:
            done = max(error.args[0], 1)
            left = (time.perf_counter() - began) / done * (jobs - done)
            time.sleep(min(max(left / 2, 0.02), 1.0))

with LocalCluster(folder) as cluster:
    cluster.start_worker(WorkerConfig(cores=slots))
    client = cluster.client()
    for line in sys.stdin:
        assert not run(client)
        print("done", flush=True)
"""
"""In a process with little memory: HyperQueue starts its tasks from it, and may copy its pages."""


@contextmanager
def hyperqueue(jobs: int, slots: int) -> Generator[tuple[str, Run], None, None]:
    """HyperQueue's own local cluster."""
    if importlib.util.find_spec("hyperqueue") is None:
        pytest.skip("no hyperqueue here: `./dev bench control` installs it")
    with tempfile.TemporaryDirectory(prefix="tenfold-") as folder:
        words = [sys.executable, "-c", HYPERQUEUE, str(jobs), str(slots), folder]
        with _driver(words, dict(os.environ)) as run:
            yield "HyperQueue", run


RAY = """
import subprocess, sys
import ray
jobs, slots, address = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
ray.init(address, log_to_driver=False)

@ray.remote(num_cpus=ray.cluster_resources()["CPU"] / slots)
def one():
    return subprocess.run(["true"]).returncode

for line in sys.stdin:
    assert not any(ray.get([one.remote() for _ in range(jobs)]))
    print("done", flush=True)
"""


@contextmanager
def ray(jobs: int, slots: int) -> Generator[tuple[str, Run], None, None]:
    """Tasks of a real Ray that run the command."""
    with running_ray() as cluster:
        words = [*cluster.within, sys.executable, "-c", RAY, str(jobs), str(slots), ADDRESS]
        with _driver(words, cluster.environment) as run:
            yield "Ray tasks", run


@contextmanager
def _driver(words: list[str], environment: dict[str, str]) -> Generator[Run, None, None]:
    """Start a script that runs all jobs for every line that it reads, and says when it has."""
    pipe = subprocess.PIPE
    with subprocess.Popen(words, env=environment, stdin=pipe, stdout=pipe, text=True) as driver:

        def run() -> None:
            assert driver.stdin is not None, "it has pipes"
            assert driver.stdout is not None, "it has pipes"
            driver.stdin.write("run\n")
            driver.stdin.flush()
            for line in driver.stdout:
                if line == "done\n":
                    return
            raise RuntimeError("its driver has ended")

        yield run


def main(words: list[str]) -> int:
    name, jobs, slots = words
    # Slurm's steps leave their parent; here they stay below this process, and count.
    become_subreaper()
    try:
        with {"slurm": slurm, "hyperqueue": hyperqueue, "ray": ray}[name](
            int(jobs), int(slots)
        ) as (told, run):
            _tell({"name": told})
            for _ in sys.stdin:
                began_s = perf_counter()
                run()
                _tell({"seconds": perf_counter() - began_s})
    except pytest.skip.Exception as skipped:
        _tell({"not_run": str(skipped)})
    except (Exception, pytest.fail.Exception) as error:
        _tell({"not_run": f"{type(error).__name__}: {error}"[-400:]})
    return 0


def _tell(what: dict[str, Any]) -> None:
    print(f"\n{json.dumps(what)}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
