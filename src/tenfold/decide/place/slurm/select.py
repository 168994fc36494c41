"""Which nodes Slurm selects for a gang: in file order, from the tightest run of neighbours.

Slurm (select/cons_tres without a topology) considers the nodes that can each hold a member,
divides them into runs of neighbours, and takes the shortest run that holds the whole gang, from
its first node on. If none does, it takes the longest run and continues with the others. Neither
the emptiest nor the fullest node is preferred.
"""

from collections.abc import Callable, Iterator

from tenfold.fleet.capacity import Capacity, FreeNodeIndex, GangSplit, Slots
from tenfold.model.ids import NodeId
from tenfold.model.job.job import WHOLE, Shape, Slot, per_member

NodeFilter = Callable[[NodeId], bool]
"""Whether a job may use a node: it is in its partition and not reserved."""


def choose(capacity: Capacity, shape: Shape, usable: NodeFilter) -> Slots | None:
    """Return where the gang would start now; nothing is allocated."""
    for split in capacity.splits(shape):
        slots = (
            _share(split.node_index, shape, usable) if shape.milli else _gang(split, shape, usable)
        )
        if slots is not None:
            return slots
    return None


def could_hold(capacity: Capacity, shape: Shape, usable: NodeFilter) -> bool:
    """Return whether these nodes, all up and empty, would hold the gang."""
    return any(
        sum(usable(name) for name in split.node_index.names) >= split.members + (split.rest > 0)
        for split in capacity.splits(shape)
    )


def _gang(split: GangSplit, shape: Shape, usable: NodeFilter) -> Slots | None:
    node_index, members = split.node_index, split.members + (split.rest > 0)
    if node_index.count_with_free(split.gpus) < split.members:
        return None
    with_free = list(_with_free(node_index, split.gpus, shape, members, usable))
    if len(with_free) < split.members:
        return None
    chosen = _from_runs(with_free, split.members)
    slots = [node_index.slots(number, split.gpus)[0] for number in chosen]
    if split.rest:
        last = next(
            (
                n
                for n in _with_free(node_index, split.rest, shape, members, usable)
                if n not in chosen
            ),
            -1,
        )
        if last < 0:
            return None
        slots.append(node_index.slots(last, split.rest)[0])
    return tuple(slots)


def _from_runs(with_free: list[int], wanted: int) -> list[int]:
    """Return `wanted` nodes of `with_free`, from as few and as tight runs as Slurm would take."""
    runs: list[list[int]] = []
    for number in with_free:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    chosen: list[int] = []
    while len(chosen) < wanted:
        left = wanted - len(chosen)
        enough = [run for run in runs if len(run) >= left]
        best = min(enough, key=len) if enough else max(runs, key=len)
        runs.remove(best)
        chosen += best[:left]
    return chosen


def _with_free(
    node_index: FreeNodeIndex, gpus: int, shape: Shape, members: int, usable: NodeFilter
) -> Iterator[int]:
    cpus, memory = per_member(shape, members)
    for number, free in enumerate(node_index.free):
        if (
            free >= gpus
            and node_index.is_open[number]
            and (not node_index.counts_cpus or node_index.cpus[number] >= cpus)
            and (not node_index.counts_memory or node_index.memory[number] >= memory)
            and usable(node_index.names[number])
        ):
            yield number


def _share(node_index: FreeNodeIndex, shape: Shape, usable: NodeFilter) -> Slots | None:
    """Return the first device with enough left, in the order of nodes and devices."""
    for number in _with_free(node_index, 0, shape, 1, usable):
        given = node_index.given.get(number, {})
        for device in range(node_index.size):
            milli = given.get(device, 0)
            if milli + shape.milli <= WHOLE and (milli or node_index.free[number]):
                return (Slot(node_index.names[number], 0, shape.milli, device),)
    return None
