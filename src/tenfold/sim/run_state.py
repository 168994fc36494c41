"""A run in the simulated world: what it holds, how far it has come, and how fast it goes.

Work is measured in the time it takes on the GPUs that the job asked for. An elastic job that
holds half of them goes half as fast, unless a scaling curve says otherwise.
"""

from collections.abc import Mapping, Sequence
from math import ceil

from msgspec import Struct

from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Job, Slot
from tenfold.model.units import Millis

NEVER = 1 << 62


class RunState(Struct, frozen=True, gc=False):
    """One run, as it goes on until something changes it."""

    job: Job
    slots: tuple[Slot, ...]
    number: int
    """That of its end in the heap: others are stale."""
    started_ms: int
    since_ms: int
    """When `work_ms` and `speed` held; the future while a restart is being paid."""
    work_ms: float
    speed: float


def work_at(run: RunState, now: int) -> float:
    """Return how much of its work a run has behind it."""
    return run.work_ms + max(0, now - run.since_ms) * run.speed


def reaches_ms(run: RunState, work_ms: float) -> int:
    """Return when a run has so much work behind it, if nothing changes."""
    return ceil(run.since_ms + max(0.0, work_ms - run.work_ms) / run.speed)


def own_speed(job: Job, slots: Sequence[Slot]) -> float:
    """Return the speed of an elastic job on these slots; any other makes nothing of more."""
    terms, asked = job.terms, job.shape.gpus
    if terms is None or not terms.least_gpus or not asked:
        return 1.0
    return sum(slot.gpus for slot in slots) / asked


def idles_after_ms(job: Job) -> Millis | None:
    """Return the work after which a session idles; None where it is in use to its end."""
    terms, duration = job.terms, job.duration_ms
    if terms is None or terms.kind != "interactive" or terms.busy_ms is None or duration is None:
        return None
    return terms.busy_ms if terms.busy_ms < duration else None


def uses(slots: Sequence[Slot], node_id: NodeId) -> bool:
    """Return whether one of the slots lies on a node."""
    return any(slot.node == node_id for slot in slots)


def arrivals(
    jobs: Sequence[Job], release_ms: Mapping[JobId, Millis] | None
) -> tuple[Sequence[Job], list[int]]:
    """Return jobs in the order in which they come, and when, with an end that never comes."""
    if release_ms:
        times = {job.id: release_ms.get(job.id, job.submitted_ms) for job in jobs}
        jobs = sorted(jobs, key=lambda job: times[job.id])
        return jobs, [*(times[job.id] for job in jobs), NEVER]
    return jobs, [*(job.submitted_ms for job in jobs), NEVER]
