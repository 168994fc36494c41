"""A job, and the resources it requests from the nodes it runs on.

The request is a separate `Shape`, because thousands of jobs share a few shapes: the scheduler
works by shape first and by job second.
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from tenfold.model.fleet.constraints import PlacementConstraints
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.terms import Terms
from tenfold.model.units import Millis

WHOLE = 1_000
"""Milli-GPUs in one GPU: fractions are stored as integers."""

JobState = Literal["pending", "starting", "running", "stopping", "succeeded", "failed", "cancelled"]
"""A job that was preempted or lost is pending again and keeps its earlier attempts."""
ENDED: tuple[JobState, ...] = ("succeeded", "failed", "cancelled")
JOB_STATES: tuple[JobState, ...] = ("pending", "starting", "running", "stopping", *ENDED)
JobStatus = Literal["completed", "failed", "cancelled", "timeout"]
StopCause = Literal["preempted", "node-lost", "start-failed", "moved", "idle", "crashed"]


class Shape(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, gc=False):
    """The resources a gang requests, all or nothing.

    `gpus` counts the whole gang. Without `gpus_per_node`, a gang that fits on one node uses one
    node and a larger gang uses whole nodes. `milli` is a fraction of a single GPU; `gpus` is then
    0. CPUs and memory are for the whole gang, spread evenly over its nodes.
    """

    key: str
    gpus: int = 0
    gpus_per_node: int | None = None
    milli: int = 0
    accelerators: tuple[str, ...] = ()
    """Acceptable accelerator types; empty means any type."""
    cpus_milli: int = 0
    memory_mib: int = 0
    where: PlacementConstraints | None = None
    """Constraints on the nodes and on how close together they are; None means none."""


class Job(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, gc=False):
    """One job as it was submitted."""

    id: JobId
    shape: Shape
    submitted_ms: Millis
    seq: int = 0
    """Number assigned at admission: keeps jobs submitted at the same time in arrival order."""
    team: TeamId = TeamId("")
    user: str = ""
    qos: str = ""
    priority: int = 0
    limit_ms: Millis | None = None
    """Time limit; backfill plans with it."""
    deadline_ms: Millis | None = None
    duration_ms: Millis | None = None
    """Run time without interruptions. Known only in a replay, and only to policies that say so."""
    profile: str = ""
    """Name of its work profile, for worlds that know its scaling curve and traffic."""
    terms: Terms | None = None


class Slot(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """The part of one node that a job holds: whole GPUs, or a fraction of one device."""

    node: NodeId
    gpus: int = 0
    milli: int = 0
    device: int = -1
    """The device of a fraction; -1 for whole GPUs."""


class Order(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """An ordered start whose outcome is not known yet."""

    job: Job
    slots: tuple[Slot, ...]
    ordered_ms: Millis


class Run(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A running job. `stopping` is set once a stop has been ordered."""

    job: Job
    slots: tuple[Slot, ...]
    started_ms: Millis
    stopping: bool = False
    becoming: tuple[Slot, ...] | None = None
    """The slots it will hold after a resize that is in progress."""
    since_ms: Millis = Millis(0)
    """When its start was ordered: it has held its slots since then."""
    reclaimed: bool | UnsetType = UNSET
    """Set where it is being stopped because it is idle: it then ends and is not queued again."""


class BackfillReservation(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """Slots reserved for a pending gang, and when it starts there."""

    slots: tuple[Slot, ...]
    start_ms: Millis
    since_ms: Millis
    """When the reservation was made."""


class PriorRuns(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """Earlier runs of an unfinished job."""

    runs: int = 0
    ran_ms: Millis = Millis(0)
    """Time it held its GPUs, whether or not the work was saved."""
    progress_ms: Millis = Millis(0)
    """Saved progress: the next run resumes from here."""
    stopped_ms: Millis = Millis(0)
    cause: StopCause = "preempted"


class EndedJob(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A finished job, kept for policies that learn from history."""

    job: Job
    ran_ms: int
    ended_ms: Millis
    status: JobStatus


def shape_of(
    gpus: float = 0,
    *,
    gpus_per_node: int | None = None,
    accelerators: tuple[str, ...] = (),
    cpus: float = 0.0,
    memory_gib: float = 0.0,
    where: PlacementConstraints | None = None,
) -> Shape:
    """Return the shape for human units; a fraction is rounded to 1/1000 GPU."""
    milli = round(gpus * WHOLE)
    whole, share = divmod(milli, WHOLE)
    assert not (whole and share), f"{gpus} GPUs: only a single GPU can be fractional"
    cpus_milli, memory_mib = round(cpus * 1_000), round(memory_gib * 1_024)
    words = [f"{gpus:g}"]
    if gpus_per_node:
        words.append(f"/{gpus_per_node}")
    if accelerators:
        words.append("@" + "|".join(accelerators))
    if cpus_milli:
        words.append(f"c{cpus_milli}")
    if memory_mib:
        words.append(f"m{memory_mib}")
    if where is not None:
        words.append(where.key)
    return Shape(
        key=" ".join(words),
        gpus=whole,
        gpus_per_node=gpus_per_node,
        milli=share,
        accelerators=accelerators,
        cpus_milli=cpus_milli,
        memory_mib=memory_mib,
        where=where,
    )


def per_member(shape: Shape, members: int) -> tuple[int, int]:
    """Return (milli-CPUs, MiB) per node of a gang, rounded up."""
    return -(-shape.cpus_milli // members), -(-shape.memory_mib // members)


def own_speed(job: Job, slots: Sequence[Slot]) -> float:
    """Return the speed on these slots: proportional to GPUs for an elastic job, else 1."""
    terms, gpus_requested = job.terms, job.shape.gpus
    if terms is None or not terms.least_gpus or not gpus_requested:
        return 1.0
    return sum(slot.gpus for slot in slots) / gpus_requested
