"""Assign device numbers to attempts.

The fleet only counts GPUs, since all GPUs of a node are equal to the scheduler. A process needs
device numbers. Fractions refer to virtual devices; each is mapped to one real device while it is
held.
"""

from collections.abc import Mapping, Sequence

from tenfold.model.ids import NodeId
from tenfold.model.job.job import Slot


class DeviceAllocator:
    """The free device numbers of every node, lowest first."""

    def __init__(self, gpus: Mapping[NodeId, int]) -> None:
        self._free = {node: list(range(count)) for node, count in gpus.items()}
        self._shared: dict[tuple[NodeId, int], tuple[int, int]] = {}
        """For a shared device: its number, and how many attempts hold a fraction."""

    def join(self, node: NodeId, gpus: int) -> None:
        """Add a new node."""
        self._free.setdefault(node, list(range(gpus)))

    def leave(self, node: NodeId) -> None:
        """Remove a node that no attempt holds devices of."""
        self._free.pop(node, None)

    def allocate(self, slot: Slot) -> tuple[int, ...]:
        """Allocate the device numbers for a slot."""
        free = self._free[slot.node]
        if slot.milli:
            key = (slot.node, slot.device)
            number, holders = self._shared.get(key) or (free.pop(0), 0)
            self._shared[key] = (number, holders + 1)
            return (number,)
        assert len(free) >= slot.gpus, f"node `{slot.node}` has {len(free)} devices left"
        allocated = tuple(free[: slot.gpus])
        del free[: slot.gpus]
        return allocated

    def mark_held(self, slot: Slot, numbers: Sequence[int]) -> None:
        """Register the devices of an attempt that is already running."""
        free = self._free[slot.node]
        if slot.milli:
            key, number = (slot.node, slot.device), numbers[0]
            held = self._shared.get(key, (number, 0))
            self._shared[key] = (number, held[1] + 1)
        for number in numbers:
            if number in free:
                free.remove(number)

    def release(self, slot: Slot, numbers: Sequence[int]) -> None:
        """Release device numbers."""
        if slot.milli:
            key = (slot.node, slot.device)
            number, holders = self._shared[key]
            if holders > 1:
                self._shared[key] = (number, holders - 1)
                return
            del self._shared[key]
        self._free[slot.node] = sorted({*self._free[slot.node], *numbers})
