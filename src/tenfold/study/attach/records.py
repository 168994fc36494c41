"""A job of Slurm as a job of the fleet: its request, what it holds, and how it ended."""

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tenfold.compose.fleet import canonical_accelerator
from tenfold.files.slurm.queue import tasks_of
from tenfold.fleet.fleet import FleetView
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet.constraints import PlacementConstraints
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.failures import AttemptFailure, FailureKind
from tenfold.model.job.job import Job, JobStatus, Shape, Slot, StopCause, per_member, shape_of
from tenfold.model.job.recorded import RecordedJob
from tenfold.model.job.terms import Terms
from tenfold.model.reason import Reason
from tenfold.model.units import SECOND, Millis
from tenfold.study.attach.gates import array_of

OVER = (
    "completed",
    "failed",
    "cancelled",
    "timeout",
    "node_fail",
    "out_of_memory",
    "boot_fail",
    "deadline",
    "preempted",
    "requeued",
    "revoked",
    "launch_failed",
    "reconfig_fail",
)
STATUSES: Mapping[str, JobStatus] = {
    "completed": "completed",
    "cancelled": "cancelled",
    "revoked": "cancelled",
    "preempted": "cancelled",
    "timeout": "timeout",
    "deadline": "timeout",
}
KINDS: Mapping[str, FailureKind] = {
    "node_fail": "lost",
    "out_of_memory": "out-of-memory",
    "boot_fail": "start-failed",
    "launch_failed": "start-failed",
    "reconfig_fail": "start-failed",
}
STOPS: Mapping[str, StopCause] = {
    "preempted": "preempted",
    "node_fail": "node-lost",
    "boot_fail": "start-failed",
    "launch_failed": "start-failed",
    "failed": "crashed",
    "out_of_memory": "crashed",
    "timeout": "crashed",
}
PLAIN = ("completed", "failed", "cancelled", "timeout")
"""States that the status of a job says in full."""


class ClusterTerms(Struct, frozen=True, kw_only=True):
    """What turns requests of a cluster into shapes."""

    catalogue: Catalogue
    accelerators: Mapping[str, str] = {}
    """Names of the types of its GPUs, by spelling."""
    counts_memory: bool = False
    """Whether Slurm allocates memory."""
    has_priority: bool = False
    """Whether jobs go by their number alone (`priority/basic`)."""


def is_over(record: RecordedJob) -> bool:
    """Return whether a run has ended."""
    return record.state in OVER and record.ended_s is not None


def members_of(record: RecordedJob) -> list[RecordedJob]:
    """Return a record for each member of an array that accounting has in one row."""
    base, mark, tasks = record.id.partition("_[")
    if not mark:
        return [record]
    numbers, _ = tasks_of(tasks.rstrip("]"))
    return [replace(record, id=f"{base}_{number}") for number in numbers]


def job_from(record: RecordedJob, seq: int, terms: ClusterTerms) -> Job:
    """Return the job that a record is about, as requested."""
    array = array_of(record.id)
    is_member = array != record.id
    return Job(
        id=JobId(record.id),
        shape=request_of(record, terms),
        submitted_ms=millis(record.submitted_s),
        seq=seq,
        team=TeamId(record.account),
        user=record.user,
        qos=record.partition,
        priority=record.priority if terms.has_priority else -record.nice,
        limit_ms=None if record.limit_s is None else millis(record.limit_s),
        terms=Terms(array=array) if is_member else None,
    )


def request_of(record: RecordedJob, terms: ClusterTerms) -> Shape:
    """Return the resources that a job requests."""
    gpus = record.gpus_asked or record.gpus or record.gpus_per_node_asked * record.nodes
    types = record.gpu_types if len(terms.accelerators) > 1 else ()
    accelerators = tuple(
        canonical_accelerator(name, terms.accelerators, terms.catalogue) for name in types
    )
    memory = record.memory_asked_gib or record.memory_gib
    return shape_of(
        gpus if gpus <= 1 else float(math.ceil(gpus)),
        gpus_per_node=_even(gpus, record.nodes),
        accelerators=accelerators,
        cpus=record.cpus,
        memory_gib=memory if terms.counts_memory else 0.0,
        where=_where(record.features),
    )


def slots_of(record: RecordedJob) -> tuple[Slot, ...]:
    """Return what a run holds of each node; an uneven split is taken from the first nodes on."""
    names = record.node_names
    gpus = round(record.gpus) if record.gpus >= 1 else math.ceil(record.gpus)
    each: Sequence[int] = record.node_gpus
    if len(each) != len(names) or sum(each) != gpus:
        share, rest = divmod(gpus, len(names)) if names else (0, 0)
        each = [share + (place < rest) for place in range(len(names))]
    return tuple(Slot(NodeId(name), many) for name, many in zip(names, each, strict=True))


def allocated(job: Job, record: RecordedJob, slots: Sequence[Slot], terms: ClusterTerms) -> Job:
    """Return a job with what it was given, where that is not what it asked for."""
    gpus = sum(slot.gpus for slot in slots)
    members = max(1, len(slots))
    cpus_milli = round(record.cpus * 1_000) // members * members
    memory_mib = round(record.memory_gib * 1_024) // members * members
    shape = job.shape
    if not terms.counts_memory:
        memory_mib = shape.memory_mib
    if (shape.gpus, shape.cpus_milli, shape.memory_mib) == (gpus, cpus_milli, memory_mib) or (
        shape.milli and not shape.gpus
    ):
        return job
    return with_amounts(job, slots, cpus_milli, memory_mib)


def with_amounts(job: Job, slots: Sequence[Slot], cpus_milli: int, memory_mib: int) -> Job:
    """Return a job that asks for these slots and amounts."""
    shape = shape_of(
        float(sum(slot.gpus for slot in slots)),
        gpus_per_node=_even(sum(slot.gpus for slot in slots), len(slots)),
        accelerators=job.shape.accelerators,
        cpus=cpus_milli / 1_000,
        memory_gib=memory_mib / 1_024,
        where=job.shape.where,
    )
    return replace(job, shape=shape)


def has_gpus(fleet: FleetView, slots: Sequence[Slot]) -> bool:
    """Return whether the GPUs of these slots are free."""
    wanted: dict[NodeId, int] = {}
    for slot in slots:
        wanted[slot.node] = wanted.get(slot.node, 0) + slot.gpus
    return all(fleet.gpus_free.get(node, 0) >= gpus for node, gpus in wanted.items())


def that_fits(fleet: FleetView, job: Job, slots: Sequence[Slot]) -> tuple[Job, tuple[Slot, ...]]:
    """Return a job and its slots, reduced to what their nodes have left."""
    held: list[Slot] = []
    for slot in slots:
        if slot.node in fleet.nodes:
            free = fleet.gpus_free[slot.node]
            held.append(Slot(slot.node, max(0, min(slot.gpus, free))))
    cpus, memory = per_member(job.shape, max(1, len(held)))
    for slot in held:
        node = fleet.nodes[slot.node]
        if node.cpus_milli:
            cpus = min(cpus, max(0, fleet.cpus_milli_free[slot.node]))
        if node.memory_mib:
            memory = min(memory, max(0, fleet.memory_mib_free[slot.node]))
    fits = (cpus, memory) == per_member(job.shape, max(1, len(held)))
    if fits and tuple(held) == tuple(slots):
        return job, tuple(held)
    return with_amounts(job, held, cpus * len(held), memory * len(held)), tuple(held)


def failure_of(record: RecordedJob) -> AttemptFailure | None:
    """Return what Slurm says of an end beyond its status."""
    if record.state in PLAIN:
        return None
    return AttemptFailure(
        attempt=record.restarts + 1,
        kind=KINDS.get(record.state, "exited"),
        last_alive_ms=millis(record.ended_s or record.submitted_s),
        reason=Reason("ended-in-slurm", {"state": record.state.replace("_", " ")}),
    )


def millis(seconds: float) -> Millis:
    """Return a moment or duration in milliseconds."""
    return Millis(round(seconds * SECOND))


def _even(gpus: float, nodes: int) -> int | None:
    if nodes > 1 and gpus >= nodes and gpus % nodes == 0:
        return int(gpus // nodes)
    return None


def _where(features: str) -> PlacementConstraints | None:
    """Return the tags that plain features ask for; alternatives and counts are not modelled."""
    names = features.split("&") if features else []
    if not names or any(not name.replace("-", "").replace("_", "").isalnum() for name in names):
        return None
    return PlacementConstraints(needs=tuple(names))
