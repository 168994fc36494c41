"""The GPU time of a history: by job size, and how full the fleet is.

GPU and fabric constraints use what runs on average. The GPUs limit how much runs: once the fleet is
full, further jobs wait and send nothing.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tenfold.model.growth.growth import Axis, grown_by
from tenfold.model.job.job import Job
from tenfold.model.units import SECOND
from tenfold.study.ceiling.design import Design
from tenfold.study.grow.state import State


class JobKind(NamedTuple):
    """Jobs of one size and profile, for the same types of GPUs."""

    gpus: float
    profile: str
    accelerators: tuple[str, ...]


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
            kind = JobKind(gpus, job.profile, job.shape.accelerators)
            found[kind] = found.get(kind, 0.0) + seconds
    return found


def span_s(jobs: Sequence[Job]) -> float:
    """Return the time over which jobs were submitted, or the longest job if that is more."""
    submitted = max(job.submitted_ms for job in jobs) - min(job.submitted_ms for job in jobs)
    return max(submitted, *(job.duration_ms or 0 for job in jobs), SECOND) / SECOND


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
