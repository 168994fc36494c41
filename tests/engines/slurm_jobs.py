"""Timed jobs for a real Slurm: a seeded set of them, their submission, and what became of them.

Jobs sleep, so that all that is measured is scheduling. Times come from the controller's own
log, which has milliseconds where the commands have whole seconds.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from random import Random
from threading import Event
from time import monotonic

from msgspec import Struct

from .slurm import RunningSlurm, SlurmNode

NODES = [
    SlurmNode(name=f"n{number}", cpus=64, memory_mib=256_000, gpu_type="h100", gpus=8)
    for number in range(1, 5)
]

CONF = (
    "PriorityType=priority/multifactor",
    "PriorityWeightJobSize=200",
    "PriorityWeightPartition=400",
    "SchedulerType=sched/backfill",
    "SchedulerParameters=bf_interval=2,bf_resolution=1,bf_window=60,batch_sched_delay=1,"
    "sched_interval=2,sched_min_interval=0,default_queue_depth=1000,bf_max_job_test=500,"
    "partition_job_depth=0",
    "SelectTypeParameters=CR_CPU",
    "MinJobAge=3600",
    "MaxArraySize=1001",
    "SlurmctldDebug=verbose",
    "LogTimeFormat=iso8601_ms",
)
"""Short periods, so that minutes hold many scheduling passes.

Age has no weight: without an accounting database Slurm ignores it.
"""

PARTITIONS = (
    "PartitionName=normal Nodes=n[1-4] Default=YES State=UP MaxTime=60 DefaultTime=5 "
    "PriorityJobFactor=10",
    "PartitionName=urgent Nodes=n[1-4] State=UP MaxTime=60 DefaultTime=5 PriorityJobFactor=40",
)

POLL_S = 0.5
_STAMP = r"\[(?P<at>[0-9T:.\-]+)\] "
_JOB = r"JobId=(?P<id>\d+(?:_\d+)?)(?:\(\d+\))?(?= |$)"
_STARTED = re.compile(
    rf"{_STAMP}.*(?:sched: Allocate|Started) {_JOB}(?:.*NodeList=| in \S+ on )(?P<nodes>\S+)"
)
_ENDED = re.compile(rf"{_STAMP}_job_complete: {_JOB} done")
_SUBMITTED = re.compile(rf"{_STAMP}_slurm_rpc_submit_batch_job: {_JOB} ")


class TimedJob(Struct, frozen=True, kw_only=True):
    """One submission: `tasks` over 1 is an array of jobs alike."""

    at_s: float
    seconds: float
    gpus_per_node: int
    nodes: int = 1
    tasks: int = 1
    limit_minutes: int = 1
    """Slurm counts limits in minutes, so all of these short jobs have the shortest."""
    nice: int = 0
    partition: str = "normal"


class Outcome(Struct, frozen=True, kw_only=True):
    """What Slurm did with one job, in epoch milliseconds."""

    id: str
    asked: TimedJob
    order: int
    """Place in the order of submission; tasks of an array follow each other."""
    submitted_ms: int
    started_ms: int
    ended_ms: int
    nodes: str


def timed_jobs(
    count: int, *, over_s: float, seed: int, seconds_max: float = 20.0
) -> list[TimedJob]:
    """Return submissions that make `count` jobs in `over_s` seconds, the same for a seed."""
    chance = Random(seed)
    jobs: list[TimedJob] = []
    left = count
    while left:
        nodes, gpus = chance.choice(
            [(1, 1), (1, 1), (1, 1), (1, 2), (1, 2), (1, 4), (1, 4), (1, 8), (2, 4), (2, 8)]
        )
        is_array = nodes == 1 and gpus <= 2 and chance.random() < 0.2
        tasks = min(left, chance.randint(2, 8)) if is_array else 1
        left -= tasks
        seconds = round(chance.uniform(1.0, seconds_max), 1)
        jobs.append(
            TimedJob(
                at_s=chance.uniform(0.0, over_s),
                seconds=seconds,
                gpus_per_node=gpus,
                nodes=nodes,
                tasks=tasks,
                nice=chance.choice([0, 0, 0, 50, 150]),
                partition="urgent" if chance.random() < 0.15 else "normal",
            )
        )
    return sorted(jobs, key=lambda job: job.at_s)


def submit(slurm: RunningSlurm, jobs: Iterable[TimedJob]) -> dict[str, TimedJob]:
    """Submit each job when its time has come; return them by the number Slurm gave."""
    begin, pause = monotonic(), Event()
    numbers: dict[str, TimedJob] = {}
    for job in jobs:
        pause.wait(max(0.0, begin + job.at_s - monotonic()))
        words = ["sbatch", "--parsable", "--output=/dev/null", "--ntasks-per-node=1"]
        words += [f"--partition={job.partition}", f"--nice={job.nice}"]
        words += [f"--nodes={job.nodes}", f"--gpus-per-node=h100:{job.gpus_per_node}"]
        words += [f"--time={job.limit_minutes}"]
        if job.tasks > 1:
            words.append(f"--array=0-{job.tasks - 1}")
        number = slurm.ask(*words, f"--wrap=exec sleep {job.seconds}").strip()
        numbers[number] = job
    return numbers


def wait_for_all(slurm: RunningSlurm, *, timeout_s: float) -> None:
    """Return once nothing waits or runs any more."""
    deadline, pause = monotonic() + timeout_s, Event()
    while left := slurm.ask("squeue", "--noheader", "--format=%i %T"):
        assert monotonic() < deadline, f"jobs are left after {timeout_s} s:\n{left}"
        pause.wait(POLL_S)


def outcomes(slurm: RunningSlurm, numbers: dict[str, TimedJob]) -> list[Outcome]:
    """Return what the controller's log says about every job, in order of submission."""
    log = (slurm.folder / "controller.log").read_text().splitlines()
    submitted = {found["id"]: _millis(found["at"]) for found in _all(_SUBMITTED, log)}
    started = {found["id"]: (_millis(found["at"]), found["nodes"]) for found in _all(_STARTED, log)}
    ended = {found["id"]: _millis(found["at"]) for found in _all(_ENDED, log)}
    results: list[Outcome] = []
    for number, job in numbers.items():
        ids = [number] if job.tasks == 1 else [f"{number}_{task}" for task in range(job.tasks)]
        for job_id in ids:
            results.append(
                Outcome(
                    id=job_id,
                    asked=job,
                    order=len(results),
                    submitted_ms=submitted[number],
                    started_ms=started[job_id][0],
                    ended_ms=ended[job_id],
                    nodes=started[job_id][1],
                )
            )
    return results


def controller_began_ms(slurm: RunningSlurm) -> int:
    """Return when the controller began, from which it counts its periods."""
    first = (slurm.folder / "controller.log").read_text().partition("]")[0]
    return _millis(first.strip("["))


def run_jobs(slurm: RunningSlurm, jobs: Sequence[TimedJob], *, timeout_s: float) -> list[Outcome]:
    """Submit jobs at their times, wait for all of them, and return what became of each."""
    numbers = submit(slurm, jobs)
    wait_for_all(slurm, timeout_s=timeout_s)
    return outcomes(slurm, numbers)


def _all(pattern: re.Pattern[str], lines: Iterable[str]) -> list[re.Match[str]]:
    return [found for line in lines if (found := pattern.search(line))]


def _millis(stamp: str) -> int:
    return round(datetime.fromisoformat(stamp).timestamp() * 1_000)
