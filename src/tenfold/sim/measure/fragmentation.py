"""Fragmentation: free GPUs that the next job could not use where they are.

As FGD defines it (Weng et al., ATC 2023): the next job is drawn from the shapes of the trace,
each as likely as it is common. A free GPU is stranded for a shape where its node cannot hold
one member of the gang: too few GPUs left, too few CPUs or too little memory, another type.
What is left of a shared device is stranded for jobs that need more of it. The measure is the
stranded share of all that was free, over even moments of the run; nodes that are down have
nothing free.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from tenfold.model.fleet.node import Node
from tenfold.model.ids import NodeId
from tenfold.model.job.job import WHOLE, Job, Shape, Slot, per_member
from tenfold.sim.measure.meters import Meters
from tenfold.sim.measure.timeline import bounds_ms, spans

SAMPLES = 200
SHAPES_MAX = 24


class _NodeFree(Struct, frozen=True, gc=False):
    """What a node has left, and what it is."""

    accelerator: str
    size: int
    gpus: int
    left_milli: tuple[int, ...]
    """What is left of its shared devices."""
    cpus_milli: int
    """-1 where CPUs are not counted."""
    memory_mib: int

    @property
    def free_milli(self) -> int:
        return self.gpus * WHOLE + sum(self.left_milli)


class _Usage:
    """What is held on the nodes as a run goes on."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = {node.id: node for node in nodes}
        self.gpus = dict.fromkeys(self.nodes, 0)
        self.cpus = dict.fromkeys(self.nodes, 0)
        self.memory = dict.fromkeys(self.nodes, 0)
        self.shares: dict[NodeId, Counter[int]] = {}
        self.down: dict[NodeId, bool] = {}

    def change(self, slots: Sequence[Slot], shape: Shape, sign: int) -> None:
        cpus, memory = per_member(shape, len(slots))
        for slot in slots:
            self.gpus[slot.node] += sign * slot.gpus
            self.cpus[slot.node] += sign * cpus
            self.memory[slot.node] += sign * memory
            if slot.milli:
                shares = self.shares.setdefault(slot.node, Counter())
                shares[slot.device] += sign * slot.milli

    def free_counts(self) -> Counter[_NodeFree]:
        """Return how many nodes have the same left, for those that have something."""
        return Counter(
            self._free_on(node)
            for node in self.nodes.values()
            if self.gpus[node.id] < node.gpus and not self.down.get(node.id)
        )

    def _free_on(self, node: Node) -> _NodeFree:
        shares = self.shares.get(node.id)
        shared_milli = [milli for milli in shares.values() if milli] if shares else []
        return _NodeFree(
            node.accelerator,
            node.gpus,
            node.gpus - self.gpus[node.id] - len(shared_milli),
            tuple(sorted(WHOLE - milli for milli in shared_milli)),
            node.cpus_milli - self.cpus[node.id] if node.cpus_milli else -1,
            node.memory_mib - self.memory[node.id] if node.memory_mib else -1,
        )


def fragmentation(nodes: Sequence[Node], jobs: Sequence[Job], meters: Meters) -> float | None:
    """Return the stranded share of what was free, or None where nothing ran on GPUs."""
    bounds = bounds_ms(jobs, meters)
    likely_shapes = _common_shapes(jobs)
    if bounds is None or not likely_shapes:
        return None
    first, last = bounds
    usage = _Usage(nodes)
    changes = _changes(meters)
    pending = next(changes, None)
    free = stranded = 0.0
    for number in range(SAMPLES):
        sample_ms = first + (last - first) * (number + 0.5) / SAMPLES
        while pending is not None and pending[0] <= sample_ms:
            _change(usage, pending)
            pending = next(changes, None)
        for free_node, count in usage.free_counts().items():
            free += free_node.free_milli * count
            stranded += count * sum(
                share * (free_node.free_milli - _usable_milli(free_node, shape))
                for shape, share in likely_shapes
            )
    return stranded / free if free else 0.0


_Change = tuple[int, int, NodeId | Job, tuple[Slot, ...]]
"""When, in which order at one moment, a node or a job, and the job's slots."""
_END, _RETURNED, _LOST, _START = range(4)


def _changes(meters: Meters) -> Iterator[_Change]:
    changes: list[_Change] = []
    for job, slots, start, end in spans(meters):
        changes += ((start, _START, job, slots), (end, _END, job, slots))
    changes += [(at, _LOST, node, ()) for at, node in meters.lost]
    changes += [(at, _RETURNED, node, ()) for at, node in meters.returned]
    return iter(sorted(changes, key=lambda change: change[:2]))


def _change(usage: _Usage, change: _Change) -> None:
    _, kind, subject, slots = change
    if isinstance(subject, Job):
        usage.change(slots, subject.shape, 1 if kind == _START else -1)
    else:
        usage.down[subject] = kind == _LOST


def _common_shapes(jobs: Sequence[Job]) -> list[tuple[Shape, float]]:
    """Return the most common shapes that request GPUs, and how likely each is."""
    shapes = {job.shape.key: job.shape for job in jobs if job.shape.gpus or job.shape.milli}
    counts = Counter(job.shape.key for job in jobs if job.shape.key in shapes)
    chosen = counts.most_common(SHAPES_MAX)
    whole = sum(count for _, count in chosen)
    return [(shapes[key], count / whole) for key, count in chosen]


def _usable_milli(free_node: _NodeFree, shape: Shape) -> int:
    """Return how much of what is free a member of the gang could use."""
    if shape.accelerators and free_node.accelerator not in shape.accelerators:
        return 0
    member_gpus = min(shape.gpus_per_node or shape.gpus, shape.gpus)
    if not shape.gpus_per_node and member_gpus > free_node.size:
        member_gpus = free_node.size
    cpus, memory = per_member(shape, -(-shape.gpus // member_gpus) if member_gpus else 1)
    if 0 <= free_node.cpus_milli < cpus or 0 <= free_node.memory_mib < memory:
        return 0
    if shape.milli:
        return free_node.gpus * WHOLE + sum(
            left for left in free_node.left_milli if left >= shape.milli
        )
    return free_node.gpus * WHOLE if member_gpus and free_node.gpus >= member_gpus else 0
