"""How long jobs waited, by account, partition and size."""

from collections.abc import Callable, Iterable, Sequence
from math import ceil
from typing import NamedTuple

from msgspec import Struct

from tenfold.model.job.recorded import RecordedJob

HOUR_S = 3_600.0
SIZES = (
    (0.0, "no GPU"),
    (0.9999, "part of a GPU"),
    (1.0, "1 GPU"),
    (4.0, "2-4 GPUs"),
    (8.0, "5-8 GPUs"),
    (32.0, "9-32 GPUs"),
    (1e12, "more than 32 GPUs"),
)


class JobWait(NamedTuple):
    """A job and how long it waited from submission to start, recorded or simulated."""

    job: RecordedJob
    wait_s: float


class WaitRow(Struct, frozen=True, kw_only=True):
    """The waits of a group of jobs."""

    name: str
    jobs: int
    mean_s: float
    p50_s: float
    p90_s: float
    waiting_hours: float
    """Sum over jobs."""
    gpu_hours_waiting: float
    """The same, with each job counted by the GPUs that it asked for."""


class Waits(Struct, frozen=True, kw_only=True):
    """The waits of a history."""

    simulated: bool
    """Whether the record has no start times, so that these are simulated."""
    every: WaitRow
    by_account: tuple[WaitRow, ...]
    by_partition: tuple[WaitRow, ...]
    by_size: tuple[WaitRow, ...]


def waits_of(waited: Sequence[JobWait], *, simulated: bool) -> Waits:
    """Return the waits by group; the group whose jobs waited longest in sum comes first."""
    return Waits(
        simulated=simulated,
        every=_row("all jobs", waited),
        by_account=_rows(waited, lambda job: job.account or "(none)"),
        by_partition=_rows(waited, lambda job: job.partition or "(none)"),
        by_size=_rows(waited, size_of),
    )


def recorded_waits(records: Iterable[RecordedJob], from_s: float) -> list[JobWait]:
    """Return the waits of jobs that came in the period and started."""
    return [
        JobWait(job, max(0.0, job.started_s - job.submitted_s))
        for job in records
        if job.started_s is not None and job.submitted_s >= from_s
    ]


def size_of(job: RecordedJob) -> str:
    """Return the class of a job by the GPUs that it asked for."""
    return next(name for most, name in SIZES if job.gpus <= most)


def nearest(ordered: Sequence[float], share: float) -> float:
    """Return the nearest-rank percentile."""
    return ordered[max(0, ceil(share * len(ordered)) - 1)] if ordered else 0.0


def _rows(waited: Sequence[JobWait], key: Callable[[RecordedJob], str]) -> tuple[WaitRow, ...]:
    groups: dict[str, list[JobWait]] = {}
    for one in waited:
        groups.setdefault(key(one.job), []).append(one)
    rows = [_row(name, members) for name, members in groups.items()]
    return tuple(sorted(rows, key=lambda row: (-row.waiting_hours, row.name)))


def _row(name: str, waited: Sequence[JobWait]) -> WaitRow:
    times = sorted(one.wait_s for one in waited)
    return WaitRow(
        name=name,
        jobs=len(times),
        mean_s=sum(times) / max(1, len(times)),
        p50_s=nearest(times, 0.5),
        p90_s=nearest(times, 0.9),
        waiting_hours=sum(times) / HOUR_S,
        gpu_hours_waiting=sum(one.wait_s * one.job.gpus for one in waited) / HOUR_S,
    )
