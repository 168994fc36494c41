"""Capacity of jobs that are being stopped, counted as free for one scheduling pass.

A job placed on it cannot start before the stops have happened. It is pipelined: its slots stay
claimed for the rest of the pass, so nothing else is stopped for it.
"""

from typing import Protocol

from tenfold.fleet.capacity import Capacity, Slots
from tenfold.fleet.scratch import Scratch
from tenfold.model.ids import NodeId
from tenfold.model.job.job import Job, Shape, per_member


class ExpectedEnds(Protocol):
    """A job that is being stopped and still holds slots."""

    @property
    def job(self) -> Job:
        """The job."""
        ...

    @property
    def slots(self) -> Slots:
        """The slots it still holds."""
        ...


class ReleasingCapacity:
    """What jobs being stopped still hold, and which starts need it."""

    def __init__(self, scratch: Scratch[Capacity]) -> None:
        self._scratch = scratch
        """Rolled back at the end of the pass."""
        self._releasing: dict[NodeId, tuple[int, int, int]] = {}
        """GPUs, CPU thousandths and MiB still to be released on each node."""

    def release(self, expected_ends: ExpectedEnds) -> None:
        """Count what another job holds as free."""
        shape = expected_ends.job.shape
        self._scratch.release(expected_ends.slots, shape)
        cpus, memory = per_member(shape, len(expected_ends.slots))
        for slot in expected_ends.slots:
            releasing = self._releasing.get(slot.node, (0, 0, 0))
            self._releasing[slot.node] = (
                releasing[0] + (slot.gpus or int(slot.milli > 0)),
                releasing[1] + cpus,
                releasing[2] + memory,
            )

    def needed_by(self, slots: Slots, shape: Shape) -> bool:
        """Return whether these slots, just claimed, need capacity that is still being released."""
        releasing = self._releasing
        # A share may be on a device that is still in use, which counts do not show.
        if not releasing or not any(
            slot.node in releasing and (slot.milli or self._short(slot.node)) for slot in slots
        ):
            return False
        cpus, memory = per_member(shape, len(slots))
        for slot in slots:
            if due := releasing.get(slot.node):
                releasing[slot.node] = (
                    max(0, due[0] - slot.gpus),
                    max(0, due[1] - cpus),
                    max(0, due[2] - memory),
                )
        return True

    def _short(self, node_id: NodeId) -> bool:
        """Return whether a node has less free than it will get back: a start needs the rest."""
        node_index, number = self._scratch.capacity.place[node_id]
        gpus, cpus, memory = self._releasing[node_id]
        return (
            gpus > node_index.free[number]
            or (node_index.counts_cpus and cpus > node_index.cpus[number])
            or (node_index.counts_memory and memory > node_index.memory[number])
        )
