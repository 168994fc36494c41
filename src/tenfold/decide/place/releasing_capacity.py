"""Capacity that is being released: of jobs that were told to stop, counted as free for one pass.

A job that is placed on some of it cannot start before the stops are facts. It is pipelined: what
it is to get is held for the rest of the pass, so that nothing more is stopped for it.
"""

from typing import Protocol

from tenfold.fleet.capacity import Capacity, Slots
from tenfold.fleet.scratch import Scratch
from tenfold.model.ids import NodeId
from tenfold.model.job.job import Job, Shape, per_member


class ExpectedEnds(Protocol):
    """A job that holds room and is to give it up."""

    @property
    def job(self) -> Job:
        """Whose room it is."""
        ...

    @property
    def slots(self) -> Slots:
        """The room."""
        ...


class ReleasingCapacity:
    """What jobs that are being stopped still hold, and which starts need it."""

    def __init__(self, scratch: Scratch[Capacity]) -> None:
        self._scratch = scratch
        """To be rolled back when the pass is over."""
        self._owed: dict[NodeId, tuple[int, int, int]] = {}
        """GPUs, CPU thousandths and MiB that a node is still to get back."""

    def release(self, expected_ends: ExpectedEnds) -> None:
        """Count what one more job holds as free."""
        shape = expected_ends.job.shape
        self._scratch.release(expected_ends.slots, shape)
        cpus, memory = per_member(shape, len(expected_ends.slots))
        for slot in expected_ends.slots:
            owed = self._owed.get(slot.node, (0, 0, 0))
            self._owed[slot.node] = (
                owed[0] + (slot.gpus or int(slot.milli > 0)),
                owed[1] + cpus,
                owed[2] + memory,
            )

    def needed_by(self, slots: Slots, shape: Shape) -> bool:
        """Return whether these slots, just claimed, need room that is still being given up."""
        owed = self._owed
        # A share may lie on a device that is still to come, which counts do not tell.
        if not owed or not any(
            slot.node in owed and (slot.milli or self._short(slot.node)) for slot in slots
        ):
            return False
        cpus, memory = per_member(shape, len(slots))
        for slot in slots:
            if due := owed.get(slot.node):
                owed[slot.node] = (
                    max(0, due[0] - slot.gpus),
                    max(0, due[1] - cpus),
                    max(0, due[2] - memory),
                )
        return True

    def _short(self, node_id: NodeId) -> bool:
        """Return whether a node has less left than it is owed: a start needs what is to come."""
        node_index, number = self._scratch.capacity.place[node_id]
        gpus, cpus, memory = self._owed[node_id]
        return (
            gpus > node_index.free[number]
            or (node_index.counts_cpus and cpus > node_index.cpus[number])
            or (node_index.counts_memory and memory > node_index.memory[number])
        )
