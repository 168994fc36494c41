"""State of a simulated run: its slots, progress and speed.

Work is measured in time on the GPUs that the job requested. An elastic job on half of them
runs at half speed, unless it has a scaling curve.
"""

from collections.abc import Mapping, Sequence
from math import ceil

from msgspec import Struct

from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Job, Slot
from tenfold.model.units import Millis

NEVER = 1 << 62


class RunState(Struct, frozen=True, gc=False):
    """One run until its next change."""

    job: Job
    slots: tuple[Slot, ...]
    number: int
    """Number of its end in the heap; other entries are stale."""
    started_ms: int
    since_ms: int
    """Time from which `work_ms` and `speed` hold; in the future during a restart."""
    work_ms: float
    speed: float


def work_at(run: RunState, now: int) -> float:
    """Return the completed work of a run."""
    return run.work_ms + max(0, now - run.since_ms) * run.speed


def reaches_ms(run: RunState, work_ms: float) -> int:
    """Return when a run reaches an amount of work, if nothing changes."""
    return ceil(run.since_ms + max(0.0, work_ms - run.work_ms) / run.speed)


def idles_after_ms(job: Job) -> Millis | None:
    """Return the work after which a session is idle; None if it is used to its end."""
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
    """Return jobs in order of arrival, and arrival times followed by NEVER."""
    if release_ms:
        times = {job.id: release_ms.get(job.id, job.submitted_ms) for job in jobs}
        jobs = sorted(jobs, key=lambda job: times[job.id])
        return jobs, [*(times[job.id] for job in jobs), NEVER]
    return jobs, [*(job.submitted_ms for job in jobs), NEVER]
