"""Which devices of a node an attempt gets.

The fleet counts GPUs, since to a decision all of a node are alike. A process needs numbers.
Shares name a device of their own counting; each such name is one real device while it is held.
"""

from collections.abc import Mapping, Sequence

from tenfold.model.ids import NodeId
from tenfold.model.job.job import Slot


class DeviceAllocator:
    """The numbers that are free on every node, lowest first."""

    def __init__(self, gpus: Mapping[NodeId, int]) -> None:
        self._free = {node: list(range(count)) for node, count in gpus.items()}
        self._shared: dict[tuple[NodeId, int], tuple[int, int]] = {}
        """For a device of which shares are given: its number, and how many hold one."""

    def join(self, node: NodeId, gpus: int) -> None:
        """Take a new node into account."""
        self._free.setdefault(node, list(range(gpus)))

    def allocate(self, slot: Slot) -> tuple[int, ...]:
        """Return the numbers for a slot; from now on they are its own."""
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
        """Take note of what an attempt holds that began before."""
        free = self._free[slot.node]
        if slot.milli:
            key, number = (slot.node, slot.device), numbers[0]
            held = self._shared.get(key, (number, 0))
            self._shared[key] = (number, held[1] + 1)
        for number in numbers:
            if number in free:
                free.remove(number)

    def release(self, slot: Slot, numbers: Sequence[int]) -> None:
        """Return numbers that are no longer held."""
        if slot.milli:
            key = (slot.node, slot.device)
            number, holders = self._shared[key]
            if holders > 1:
                self._shared[key] = (number, holders - 1)
                return
            del self._shared[key]
        self._free[slot.node] = sorted({*self._free[slot.node], *numbers})
