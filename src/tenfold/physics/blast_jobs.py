"""What the loss of nodes does to the jobs that run on them, computed rather than simulated.

A gang with one member on a lost node stops entirely. It loses the work since its last
checkpoint, on all of its GPUs; what it saved before this run is never lost.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import WHOLE, PriorRuns, Run, Slot
from tenfold.model.units import HOUR, Millis


class PlacedJob(Struct, frozen=True, gc=False):
    """A running job: its nodes, and the work it has not saved."""

    job_id: JobId
    slots: tuple[Slot, ...]
    unsaved_ms: int

    @property
    def gpu_milli(self) -> int:
        """Thousandths of a GPU that it holds."""
        return sum(slot.milli or slot.gpus * WHOLE for slot in self.slots)


class StoppedJobs(Struct, frozen=True, kw_only=True):
    """The jobs that a loss stops."""

    jobs: tuple[JobId, ...] = ()
    """In the order in which they were placed."""
    gpus: float = 0.0
    """GPUs that they held, lost or idle until they run again."""
    gpu_hours_lost: float = 0.0


def stopped_jobs(lost: Collection[NodeId], placed: Iterable[PlacedJob]) -> StoppedJobs:
    """Return what losing these nodes at once does to running jobs."""
    gone = frozenset(lost)
    hit = [one for one in placed if any(slot.node in gone for slot in one.slots)]
    return StoppedJobs(
        jobs=tuple(one.job_id for one in hit),
        gpus=sum(one.gpu_milli for one in hit) / WHOLE,
        gpu_hours_lost=sum(one.gpu_milli * one.unsaved_ms for one in hit) / WHOLE / HOUR,
    )


def placed_at(
    running: Mapping[JobId, Run],
    past: Mapping[JobId, PriorRuns],
    now_ms: Millis,
    *,
    checkpoint_every_ms: Millis,
    restart_cost_ms: Millis,
) -> list[PlacedJob]:
    """Return the running jobs of a fleet with what each would lose at a moment.

    Jobs are taken to run at full speed and to save at every whole interval of their work.
    """
    placed: list[PlacedJob] = []
    for job_id, run in running.items():
        behind = past.get(job_id)
        saved = behind.progress_ms if behind else 0
        since_ms = run.started_ms + (restart_cost_ms if behind else 0)
        work = saved + max(0, now_ms - since_ms)
        kept = saved
        if checkpoint_every_ms:
            kept = max(saved, work // checkpoint_every_ms * checkpoint_every_ms)
        placed.append(PlacedJob(job_id, run.slots, work - kept))
    return placed


def worst_node(nodes: Sequence[NodeId], placed: Sequence[PlacedJob]) -> StoppedJobs:
    """Return what the node costs whose loss costs most, of nodes that are otherwise alike."""
    hits = [stopped_jobs([node], placed) for node in nodes]
    return max(hits, key=lambda hit: (hit.gpu_hours_lost, hit.gpus), default=StoppedJobs())
