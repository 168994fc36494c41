"""A run over time, for charts: GPUs in use, jobs that run and wait, nodes that are down.

Computed afterwards from the records in the meters, so a run without charts pays nothing for it.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from tenfold.model.job.job import WHOLE, Job, Slot
from tenfold.model.units import SECOND
from tenfold.sim.measure.meters import Meters
from tenfold.sim.measure.step_function import StepFunction, Values

BUCKETS = 400
Span = tuple[Job, tuple[Slot, ...], int, int]
"""A job, its slots, and when it got them and gave them back."""


class Timeline(Struct, frozen=True, kw_only=True):
    """Means over even stretches of time, from the first submission to the last end."""

    at_s: tuple[float, ...]
    """The middle of each stretch, counted from the first submission."""
    gpus_allocated: tuple[float, ...]
    jobs_running: tuple[float, ...]
    jobs_waiting: tuple[float, ...]
    nodes_down: tuple[float, ...]


def spans(meters: Meters) -> Iterator[Span]:
    """Yield every run, also those that were cut short; one that was resized in parts."""
    for job, slots, ran, _, end in meters.ends:
        yield job, slots, end - ran, end
    for job, slots, ran, _, at in meters.stops:
        yield job, slots, at - ran, at
    for job, slots, held_ms, at in meters.resizes:
        yield job, slots, at - held_ms, at


def timeline(jobs: Sequence[Job], meters: Meters, buckets: int = BUCKETS) -> Timeline:
    """Return what a run looked like over time."""
    bounds = bounds_ms(jobs, meters)
    if bounds is None:
        nothing: tuple[float, ...] = ()
        return Timeline(
            at_s=nothing,
            gpus_allocated=nothing,
            jobs_running=nothing,
            jobs_waiting=nothing,
            nodes_down=nothing,
        )
    edges = np.linspace(*bounds, num=buckets + 1)
    runs = list(spans(meters))
    starts, ends = [run[2] for run in runs], [run[3] for run in runs]
    gpus = [_gpus(run[1]) for run in runs]
    allocated = StepFunction(starts + ends, gpus + [-one for one in gpus])
    running = StepFunction(starts + ends, [1] * len(runs) + [-1] * len(runs)).means(edges)
    in_queue_or_running = in_system(jobs, meters).means(edges)
    lost, back = [at for at, _ in meters.lost], [at for at, _ in meters.returned]
    down = StepFunction(lost + back, [1] * len(lost) + [-1] * len(back))
    return Timeline(
        at_s=_listed((edges[:-1] + edges[1:]) / 2 / SECOND - bounds[0] / SECOND),
        gpus_allocated=_listed(allocated.means(edges)),
        jobs_running=_listed(running),
        jobs_waiting=_listed(np.maximum(in_queue_or_running - running, 0.0)),
        nodes_down=_listed(down.means(edges)),
    )


def bounds_ms(jobs: Sequence[Job], meters: Meters) -> tuple[int, int] | None:
    """Return the first submission and the last end, or None where nothing lasted."""
    if not jobs or not meters.ends:
        return None
    first, last = jobs[0].submitted_ms, max(end[4] for end in meters.ends)
    return (first, last) if last > first else None


def in_system(jobs: Sequence[Job], meters: Meters) -> StepFunction:
    """Return how many jobs were submitted and not over; those turned away never count."""
    refused = {job.id for job in meters.refused_jobs}
    submitted = [job.submitted_ms for job in jobs if job.id not in refused]
    ended = [end[4] for end in meters.ends]
    return StepFunction(submitted + ended, [1] * len(submitted) + [-1] * len(ended))


def _gpus(slots: Sequence[Slot]) -> float:
    return sum(slot.milli / WHOLE or slot.gpus for slot in slots)


def _listed(values: Values) -> tuple[float, ...]:
    return tuple(values.tolist())
