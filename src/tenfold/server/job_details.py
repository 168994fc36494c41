"""What a job runs, requests and has used, for the view of a single job."""

from collections.abc import Callable, Sequence

from msgspec import UNSET

from tenfold.journal.rows import JobRow, RunTime
from tenfold.model.api.jobs import Requested
from tenfold.model.events import JobSubmitted
from tenfold.model.job.job import WHOLE
from tenfold.model.job.terms import Terms
from tenfold.model.units import HOUR, SECOND

CPU_MILLI = 1_000
MIB_PER_GIB = 1_024
Workdir = Callable[[JobSubmitted], str]
"""Returns the working directory of a job on its node; empty if it is not known."""
_PLAIN = Terms()


def requested(submission: JobSubmitted | None, workdir: Workdir) -> Requested:
    """Return the command, resources and limits of a job; none if its event was exported."""
    if submission is None:
        return Requested()
    job, run, shape = submission.job, submission.run_spec, submission.job.shape
    terms = job.terms or _PLAIN
    return Requested(
        command=() if run is None else run.command,
        workdir=workdir(submission),
        image="" if run is None else run.image,
        env=() if run is None else tuple(name for name, _ in run.env),
        origin=None if run is None else run.origin,
        gpus_per_node=shape.gpus_per_node or 0,
        accelerators=shape.accelerators,
        cpus=shape.cpus_milli / CPU_MILLI,
        memory_gib=shape.memory_mib / MIB_PER_GIB,
        time_limit_s=None if job.limit_ms is None else job.limit_ms / SECOND,
        grace_s=None if run is None else run.grace_ms / SECOND,
        priority=job.priority,
        preemptible=terms.preemptible,
        kind=terms.kind,
        after=terms.after,
        after_any=terms.after_any,
        rerun_of=UNSET if run is None else run.rerun_of or UNSET,
        array_most=terms.array_most or UNSET,
    )


def gpu_hours(row: JobRow, gpus_per_node: int, times: Sequence[RunTime]) -> float:
    """Return the GPU-hours of all attempts; an elastic job holds more GPUs on more nodes."""
    gpu_ms = sum(
        (gpus_per_node * time.nodes if gpus_per_node else row.gpus_milli / WHOLE) * time.run_ms
        for time in times
    )
    return round(gpu_ms / HOUR, 3)
