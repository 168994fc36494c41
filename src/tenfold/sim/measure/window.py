"""What a run looks like within a window, without waiting for it to drain.

A finite history hides an overload: once nothing more arrives the backlog drains, and figures over
the whole run count the drain as idle time. Here only the window counts. Jobs that still wait at
its end have waited at least until then; they are not left out, for they are the overload.

The 90th percentile over jobs sees no overload either under a policy that favours short work: the
few long jobs that starve hold most of the GPU time. So waits are also weighted by GPU time, and
reported for each team and size class.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil

from msgspec import Struct

from tenfold.model.ids import JobId
from tenfold.model.job.job import WHOLE, Job, Run, Slot
from tenfold.model.units import DAY, SECOND
from tenfold.sim.measure.meters import Meters, requested_milli
from tenfold.sim.measure.timeline import Span, spans

WARM_MS = 2 * DAY
"""At least so long a fleet that began empty is left to fill up ..."""
WARM_PARTS = 3
"""... where the history lasts so many times as long; a shorter one is judged whole."""
CLASS_JOBS_LEAST = 10
"""Fewer jobs of a team or a size have no 90th percentile worth the name."""
P90 = 0.9


class Window(Struct, frozen=True):
    """The time that is judged."""

    from_ms: int
    until_ms: int

    @property
    def length_ms(self) -> int:
        """How long it lasts; never nothing."""
        return max(1, self.until_ms - self.from_ms)


class JobWait(Struct, frozen=True, gc=False):
    """How long a job that came within the window has waited, up to its end at most."""

    job: Job
    wait_ms: int
    started_ms: int | None
    """Its first start; None where it did not start within the window."""


class WindowFigures(Struct, frozen=True, kw_only=True):
    """The figures of a window."""

    jobs: int
    """Those that came within it."""
    waiting: int
    """Those of them that had not started at its end."""
    load: float
    """GPU time that was requested within it, over what the fleet has."""
    utilisation: float
    wait_s_mean: float
    wait_s_mean_gpu: float
    """Weighed by GPU time."""
    wait_s_p90: float
    wait_s_p90_gpu: float
    wait_s_p90_worst: float
    """That of the team or class of size which waits longest."""
    worst_class: str
    starts_per_s: float
    wait_s_p90_by_type: dict[str, float] = {}
    """The longer P90 wait, over jobs or GPU time, by the accelerator types that jobs ask for."""


def window_of(jobs: Sequence[Job], span_ms: int | None = None) -> Window:
    """Return the window of a history: from its warm-up to its last submission.

    The warm-up is two days or the duration that nine jobs of ten do not exceed, if longer.
    """
    if not jobs:
        return Window(0, 1)
    first = jobs[0].submitted_ms
    span = span_ms or jobs[-1].submitted_ms - first
    durations = sorted(job.duration_ms or 0 for job in jobs)
    warm = max(WARM_MS, nearest(durations, P90))
    return Window(first + (warm if span >= WARM_PARTS * warm else 0), first + span)


def runs_until(meters: Meters, running: Mapping[JobId, Run], until_ms: int) -> Iterator[Span]:
    """Yield every run up to a moment; one that goes on then is cut there."""
    yield from spans(meters)
    slots_since = {job.id: at for job, _, _, at in meters.resizes}
    for run in running.values():
        since = max(run.started_ms, slots_since.get(run.job.id, run.started_ms))
        yield run.job, run.slots, since, max(since, until_ms)


def job_waits(
    jobs: Sequence[Job], runs: Iterable[Span], meters: Meters, window: Window
) -> list[JobWait]:
    """Return how long each job has waited that came within the window.

    One that no policy could start, for it is larger than the fleet, waits to the end. One that
    was refused because another job did not complete is skipped.
    """
    held: dict[JobId, int] = {}
    first: dict[JobId, int] = {}
    for job, _, start, end in runs:
        held[job.id] = held.get(job.id, 0) + end - start
        first[job.id] = min(first.get(job.id, start), start)
    ended_ms = {job.id: end for job, _, _, _, end in meters.ends}
    refused = {
        job.id: True for job in meters.refused_jobs if job.terms is not None and job.terms.after
    }
    return [
        JobWait(
            job,
            max(0, ended_ms.get(job.id, window.until_ms) - job.submitted_ms - held.get(job.id, 0)),
            first.get(job.id),
        )
        for job in jobs
        if window.from_ms <= job.submitted_ms <= window.until_ms and job.id not in refused
    ]


def window_figures(
    waited_jobs: Sequence[JobWait], runs: Iterable[Span], window: Window, gpus: int, node_gpus: int
) -> WindowFigures:
    """Return the figures of a window; `node_gpus` tells jobs of one node from larger ones."""
    capacity_ms = max(1, gpus) * WHOLE * window.length_ms
    waits = [waited.wait_ms for waited in waited_jobs]
    work = [work_of(waited.job) for waited in waited_jobs]
    started = sum(
        waited.started_ms is not None and waited.started_ms <= window.until_ms
        for waited in waited_jobs
    )
    worst, worst_ms = _worst(waited_jobs, node_gpus)
    return WindowFigures(
        jobs=len(waited_jobs),
        waiting=len(waited_jobs) - started,
        load=sum(work) / capacity_ms,
        utilisation=allocated_milli_ms(runs, window) / capacity_ms,
        wait_s_mean=_weighted_mean(waits, [1] * len(waits)) / SECOND,
        wait_s_mean_gpu=_weighted_mean(waits, work) / SECOND,
        wait_s_p90=nearest(sorted(waits), P90) / SECOND,
        wait_s_p90_gpu=_weighted_p90(waits, work) / SECOND,
        wait_s_p90_worst=worst_ms / SECOND,
        worst_class=worst,
        starts_per_s=started / window.length_ms * SECOND,
        wait_s_p90_by_type=_by_type(waited_jobs),
    )


def allocated_milli_ms(runs: Iterable[Span], window: Window) -> int:
    """Return the GPU time that was held within a window, in thousandths of a GPU."""
    return sum(slots_milli(slots) * within(start, end, window) for _, slots, start, end in runs)


def within(start: int, end: int, window: Window) -> int:
    """Return how much of a stretch lies within a window."""
    return max(0, min(end, window.until_ms) - max(start, window.from_ms))


def work_of(job: Job) -> int:
    """Return the GPU time that a job requests, in thousandths of a GPU."""
    return requested_milli(job) * (job.duration_ms or 0)


def slots_milli(slots: Sequence[Slot]) -> int:
    """Return what slots hold, in thousandths of a GPU."""
    return sum(slot.milli or slot.gpus * WHOLE for slot in slots)


def nearest(ordered: Sequence[int], share: float) -> int:
    """Return the nearest-rank percentile of values in order."""
    return ordered[max(0, ceil(share * len(ordered)) - 1)] if ordered else 0


def size_class(job: Job, node_gpus: int) -> str:
    """Return the class of a job by its size: what it competes for."""
    if job.shape.gpus <= 1:
        return "jobs of at most 1 GPU"
    return "jobs within a node" if job.shape.gpus <= node_gpus else "multi-node jobs"


def _worst(waited_jobs: Sequence[JobWait], node_gpus: int) -> tuple[str, int]:
    """Return the team or class of size that waits longest; the first by name of those alike."""
    classes: dict[str, list[int]] = {}
    for waited in waited_jobs:
        classes.setdefault(size_class(waited.job, node_gpus), []).append(waited.wait_ms)
        if waited.job.team:
            classes.setdefault(f"team `{waited.job.team}`", []).append(waited.wait_ms)
    p90 = {
        name: nearest(sorted(waits), P90)
        for name, waits in sorted(classes.items())
        if len(waits) >= CLASS_JOBS_LEAST
    }
    if not p90:
        return "", nearest(sorted(waited.wait_ms for waited in waited_jobs), P90)
    name = max(p90, key=lambda one: p90[one])
    return name, p90[name]


def type_label(job: Job) -> str:
    """Return the accelerator types that a job asks for; empty if it runs on any."""
    return "/".join(sorted(job.shape.accelerators))


def _by_type(waited_jobs: Sequence[JobWait]) -> dict[str, float]:
    types: dict[str, list[JobWait]] = {}
    for waited in waited_jobs:
        if waited.job.shape.accelerators:
            types.setdefault(type_label(waited.job), []).append(waited)
    found: dict[str, float] = {}
    for name, members in sorted(types.items()):
        if len(members) >= CLASS_JOBS_LEAST:
            waits = [waited.wait_ms for waited in members]
            weighted = _weighted_p90(waits, [work_of(waited.job) for waited in members])
            found[name] = max(nearest(sorted(waits), P90), weighted) / SECOND
    return found


def _weighted_mean(values: Sequence[int], weights: Sequence[int]) -> float:
    whole = sum(weights)
    if not whole:
        return 0.0
    return sum(one * weight for one, weight in zip(values, weights, strict=True)) / whole


def _weighted_p90(values: Sequence[int], weights: Sequence[int]) -> int:
    """Return the value that nine tenths of the weight do not exceed."""
    target, cumulative = P90 * sum(weights), 0
    for value, weight in sorted(zip(values, weights, strict=True)):
        cumulative += weight
        if weight and cumulative >= target:
            return value
    return 0
