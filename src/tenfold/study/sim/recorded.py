"""What a trace recorded of its own jobs, next to what a simulation of them gives."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from tenfold.model.ids import JobId
from tenfold.model.job.job import WHOLE, Job
from tenfold.model.units import SECOND, Millis
from tenfold.sim.measure.window import nearest, work_of


class RecordedFigures(Struct, frozen=True, kw_only=True):
    """The figures of the jobs whose start is known, by the names of simulated ones."""

    jobs: int
    avg_wait_s: float
    avg_jct_s: float
    p50_jct_s: float
    p99_jct_s: float
    makespan_s: float
    gpu_utilization: float


def recorded_figures(
    jobs: Sequence[Job], starts_ms: Mapping[JobId, Millis], gpus: int
) -> RecordedFigures | None:
    """Return what a trace recorded; None if it does not say when jobs started."""
    known = [job for job in jobs if job.id in starts_ms]
    if not known:
        return None
    waits = [starts_ms[job.id] - job.submitted_ms for job in known]
    jcts = sorted(wait + (job.duration_ms or 0) for wait, job in zip(waits, known, strict=True))
    first = min(job.submitted_ms for job in known)
    last = max(starts_ms[job.id] + (job.duration_ms or 0) for job in known)
    span = max(1, last - first)
    return RecordedFigures(
        jobs=len(known),
        avg_wait_s=sum(waits) / len(known) / SECOND,
        avg_jct_s=sum(jcts) / len(known) / SECOND,
        p50_jct_s=nearest(jcts, 0.5) / SECOND,
        p99_jct_s=nearest(jcts, 0.99) / SECOND,
        makespan_s=(last - first) / SECOND,
        gpu_utilization=sum(map(work_of, known)) / (max(1, gpus) * WHOLE * span),
    )
