"""Room of jobs that are being stopped, counted as free during one walk.

Whoever claims some of it has to wait until the stops are facts; until then it is kept for
those it was made for, and nobody is stopped for it a second time.
"""

from collections.abc import Iterable
from typing import Protocol

from tenfold.fleet.capacity import Capacity, Slots
from tenfold.model.ids import NodeId
from tenfold.model.job import Job, Shape, per_member


class Leaving(Protocol):
    """Somebody who holds room and is to give it up."""

    @property
    def job(self) -> Job:
        """Whose room it is."""
        ...

    @property
    def slots(self) -> Slots:
        """The room."""
        ...


class Coming:
    """Room of jobs that are being stopped, counted as free during one walk."""

    def __init__(self, capacity: Capacity, stopping: Iterable[Leaving]) -> None:
        self._capacity = capacity
        self._lent: list[Leaving] = []
        self._owed: dict[NodeId, tuple[int, int, int]] = {}
        """GPUs, CPU thousandths and MiB that a node is still to get back."""
        for leaving in stopping:
            self.lend(leaving)

    def lend(self, leaving: Leaving) -> None:
        """Count the room of one more leaving as free."""
        self._lent.append(leaving)
        shape = leaving.job.shape
        self._capacity.give(leaving.slots, shape)
        cpus, memory = per_member(shape, len(leaving.slots))
        for slot in leaving.slots:
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
        """Return whether a node has less left than it is owed: somebody leans on what comes."""
        bank, number = self._capacity.place[node_id]
        gpus, cpus, memory = self._owed[node_id]
        return (
            gpus > bank.free[number]
            or (bank.counts_cpus and cpus > bank.cpus[number])
            or (bank.counts_memory and memory > bank.memory[number])
        )

    def take_back(self) -> None:
        """Stop counting what is not free yet."""
        for leaving in self._lent:
            self._capacity.take(leaving.slots, leaving.job.shape)
