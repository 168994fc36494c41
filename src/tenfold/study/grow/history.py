"""The GPU time of a history: by job size, and how full the fleet is.

GPU and fabric constraints use what runs on average. The GPUs limit how much runs: once the fleet is
full, further jobs wait and send nothing.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple

from tenfold.model.fleet.spec import FleetSpec
from tenfold.model.growth.growth import Axis, grown_by
from tenfold.model.job.job import Job
from tenfold.model.units import DAY, SECOND
from tenfold.study.ceiling.design import Design
from tenfold.study.grow.state import State

WEEK = 7 * DAY


class JobKind(NamedTuple):
    """Jobs of one size and profile, for the same types of GPUs."""

    gpus: float
    profile: str
    accelerators: tuple[str, ...]

    def confined_to(self, types: tuple[str, ...]) -> bool:
        """Return whether these jobs can run on nothing but some types; no types: any job."""
        wanted = self.accelerators
        return not types or (bool(wanted) and all(one in types for one in wanted))


class History(NamedTuple):
    """What ran in a history, by kind, and how full the fleet was."""

    running: dict[JobKind, float]
    """GPUs of each kind running, on average."""
    load: float
    """GPUs in use over GPUs available."""


def history_of(state: State) -> History | None:
    """Return what runs on average; None without jobs of known duration."""
    jobs = state.inputs.jobs
    kinds = gpu_time(jobs)
    if not kinds:
        return None
    span = span_s(jobs)
    running = {kind: seconds / span for kind, seconds in kinds.items()}
    return History(running, sum(running.values()) / max(1, state.spec.gpus))


def gpu_time(jobs: Sequence[Job]) -> dict[JobKind, float]:
    """Return the GPU seconds of jobs by kind, without jobs of unknown duration."""
    found: dict[JobKind, float] = {}
    for job in jobs:
        gpus = gpus_of(job)
        seconds = gpus * (job.duration_ms or 0) / SECOND
        if seconds:
            kind = kind_of(job)
            found[kind] = found.get(kind, 0.0) + seconds
    return found


def kind_of(job: Job) -> JobKind:
    """Return the size, profile and types of a job."""
    return JobKind(gpus_of(job), job.profile, job.shape.accelerators)


def span_s(jobs: Sequence[Job]) -> float:
    """Return the time over which jobs were submitted, or the longest job if that is more."""
    submitted = arrival_span_ms([job.submitted_ms for job in jobs])
    return max(submitted, *(job.duration_ms or 0 for job in jobs), SECOND) / SECOND


def arrival_span_ms(submitted: Sequence[int]) -> int:
    """Return the time that arrivals stand for: up to when the next one would have come.

    One job an hour for ten days is 240 jobs in 240 hours, not in 239. The last pause is the usual
    one at that time of the week or day, so that the night or weekend after the last job counts. A
    history of less than two days shows no rhythm, and is taken to end with its last job.
    """
    times = sorted(dict.fromkeys(submitted))
    span = times[-1] - times[0]
    period = next((one for one in (WEEK, DAY) if span >= 2 * one), None)
    if period is None:
        return span
    before = range(times[-1] - period, times[0] - 1, -period)
    pauses = (times[bisect_right(times, at)] - at for at in before)
    return span + round(median(min(pause, period) for pause in pauses))


def types_asked(jobs: Sequence[Job], spec: FleetSpec) -> list[tuple[str, ...]]:
    """Return the types of GPUs that jobs ask for, if the fleet has others as well."""
    there = dict.fromkeys(pool.accelerator for pool in spec.pools if pool.gpus)
    wanted = dict.fromkeys(
        tuple(one for one in there if one is not None and one in job.shape.accelerators)
        for job in jobs
        if job.shape.accelerators
    )
    return sorted(types for types in wanted if types and len(types) < len(there))


def gpus_of(job: Job) -> float:
    """Return the GPUs that a job requests, or its share of one."""
    return job.shape.gpus + job.shape.milli / 1_000


def running_growth(axis: Axis, load: float) -> Callable[[float], float]:
    """Return how much more runs at a factor, limited by a full fleet."""

    def running(factor: float) -> float:
        nodes = grown_by(axis, "nodes", factor)
        more = grown_by(axis, "jobs", factor) / nodes
        return nodes * min(more, max(1.0, 1.0 / max(load, 1e-9)))

    return running


def usual_size(state: State, design: Design) -> float:
    """Return the job size that takes most GPU time in the history, or all GPUs without one."""
    sizes: dict[float, float] = {}
    for kind, seconds in gpu_time(state.inputs.jobs).items():
        sizes[kind.gpus] = sizes.get(kind.gpus, 0.0) + seconds
    return max(sizes, key=lambda size: sizes[size], default=float(design.gpus_today))
