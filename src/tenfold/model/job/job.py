"""A job: what runs to an end, and what it asks of the nodes it runs on.

The request is kept apart as a `Shape` because thousands of jobs share a few of them: the
scheduler thinks in shapes and only then in jobs.
"""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from tenfold.model.fleet.constraints import PlacementConstraints
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.terms import Terms
from tenfold.model.units import Millis

WHOLE = 1_000
"""Thousandths of a GPU in one GPU: shares are integers."""

JobState = Literal["pending", "starting", "running", "stopping", "succeeded", "failed", "cancelled"]
"""A job that was preempted or lost is pending again, with its attempts behind it."""
ENDED: tuple[JobState, ...] = ("succeeded", "failed", "cancelled")
JOB_STATES: tuple[JobState, ...] = ("pending", "starting", "running", "stopping", *ENDED)
JobStatus = Literal["completed", "failed", "cancelled", "timeout"]
StopCause = Literal["preempted", "node-lost", "start-failed", "moved", "idle", "crashed"]


class Shape(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, gc=False):
    """What a gang asks for, all of it or nothing.

    `gpus` counts the whole gang. Without `gpus_per_node` a gang up to the size of a node
    takes one node and a larger one whole nodes. `milli` is a share of a single GPU and
    then `gpus` is 0. CPUs and memory are for the whole gang, spread evenly over its nodes.
    """

    key: str
    gpus: int = 0
    gpus_per_node: int | None = None
    milli: int = 0
    accelerators: tuple[str, ...] = ()
    """Any of these types will do; empty means any type at all."""
    cpus_milli: int = 0
    memory_mib: int = 0
    where: PlacementConstraints | None = None
    """Which nodes will do, and how near each other; None means any, anywhere."""


class Job(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, gc=False):
    """One job as it was submitted."""

    id: JobId
    shape: Shape
    submitted_ms: Millis
    seq: int = 0
    """Number given at admission: jobs of one moment keep the order in which they came."""
    team: TeamId = TeamId("")
    user: str = ""
    qos: str = ""
    priority: int = 0
    limit_ms: Millis | None = None
    """Longest run the submitter allows; what backfill plans with."""
    deadline_ms: Millis | None = None
    duration_ms: Millis | None = None
    """How long it runs undisturbed. Known only in a replay, and only to policies that say so."""
    profile: str = ""
    """Name of what it runs, for worlds that know its scaling curve and its traffic."""
    terms: Terms | None = None


class Slot(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """What one node gives to a job: whole GPUs, or a share of one device."""

    node: NodeId
    gpus: int = 0
    milli: int = 0
    device: int = -1
    """The device a share lies on; -1 where whole GPUs are given."""


class Order(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A start that was ordered and whose outcome is not known yet."""

    job: Job
    slots: tuple[Slot, ...]
    ordered_ms: Millis


class Run(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A job that runs. `stopping` is set once its stop has been ordered."""

    job: Job
    slots: tuple[Slot, ...]
    started_ms: Millis
    stopping: bool = False
    becoming: tuple[Slot, ...] | None = None
    """The slots that it will hold once a resize that was ordered is done."""
    since_ms: Millis = Millis(0)
    """When its start was ordered: from then on it has held its room."""
    reclaimed: bool | UnsetType = UNSET
    """Set where it was told to stop because it idles: then it is over, and not to wait again."""


class Promise(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """Nodes that are kept for a waiting gang, and when it is to start there."""

    slots: tuple[Slot, ...]
    start_ms: Millis
    since_ms: Millis
    """Since when the nodes are kept."""


class Past(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """What an unfinished job has behind it: earlier runs that were stopped."""

    runs: int = 0
    ran_ms: Millis = Millis(0)
    """Time it held its GPUs, useful or not."""
    progress_ms: Millis = Millis(0)
    """Work that was saved: a new run starts from here."""
    stopped_ms: Millis = Millis(0)
    cause: StopCause = "preempted"


class Ended(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A job that is over, as policies that learn from history remember it."""

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
    """Return the shape for amounts as people write them; a share is rounded to 1/1000 GPU."""
    milli = round(gpus * WHOLE)
    whole, share = divmod(milli, WHOLE)
    assert not (whole and share), f"{gpus} gpus: a share is of one gpu, several gpus are whole"
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
    """Return (CPU thousandths, MiB) that each node of a gang gives, rounded up."""
    return -(-shape.cpus_milli // members), -(-shape.memory_mib // members)
