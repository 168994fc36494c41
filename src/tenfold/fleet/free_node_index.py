"""Nodes of one kind by number of free GPUs, as two levels of bitsets.

Nodes are divided into blocks of 64. For each count of free GPUs a block keeps one word of nodes
with exactly that many free, and a summary has one bit for each block whose word is not empty.
The tightest node is then two find-first-set operations away, for five nodes or fifty thousand.
"""

from collections.abc import Iterator

from tenfold.model.fleet.node import Node
from tenfold.model.ids import NodeId
from tenfold.model.job.job import Slot

BLOCK = 64

Slots = tuple[Slot, ...]


class FreeNodeIndex:
    """Nodes with the same hardware and tags, which can hold one gang together."""

    def __init__(self, size: int, tags: tuple[str, ...] = ()) -> None:
        self.size = size
        """GPUs of each node."""
        self.tags = tags
        self.names: list[NodeId] = []
        self.free: list[int] = []
        self.is_open: list[bool] = []
        self.exact: list[list[int]] = [[] for _ in range(size + 1)]
        self.summary: list[int] = [0] * (size + 1)
        self.counts: list[int] = [0] * (size + 1)
        """Number of open nodes by free GPUs: a quick rejection, and the reason for it."""
        self.cpus: list[int] = []
        self.memory: list[int] = []
        self.counts_cpus = self.counts_memory = False
        self.given: dict[int, dict[int, int]] = {}
        """Shared devices: thousandths in use by device, by node."""
        self._slots: dict[int, dict[int, Slots]] = {}

    def add(self, node: Node, *, gpus_free: int, cpus: int, memory: int, is_open: bool) -> int:
        """Add a node and return its number in the index."""
        number = len(self.names)
        self.names.append(node.id)
        self.free.append(gpus_free)
        self.is_open.append(is_open)
        self.cpus.append(cpus)
        self.memory.append(memory)
        self.counts_cpus |= node.cpus_milli > 0
        self.counts_memory |= node.memory_mib > 0
        if number % BLOCK == 0:
            for words in self.exact:
                words.append(0)
        if is_open:
            self._show(number, gpus_free)
        return number

    def set_open(self, number: int, is_open: bool) -> None:
        """Open a node to new jobs, or hide it; what it holds stays counted."""
        if self.is_open[number] != is_open:
            self.is_open[number] = is_open
            if is_open:
                self._show(number, self.free[number])
            else:
                self._hide(number, self.free[number])

    def move(self, number: int, free: int) -> None:
        """Set the number of free GPUs of a node."""
        before = self.free[number]
        self.free[number] = free
        if not self.is_open[number]:
            return
        block = number >> 6
        bit = 1 << (number & 63)
        words = self.exact[before]
        left = words[block] ^ bit
        words[block] = left
        if not left:
            self.summary[before] ^= 1 << block
        self.counts[before] -= 1
        words = self.exact[free]
        held = words[block]
        if not held:
            self.summary[free] |= 1 << block
        words[block] = held | bit
        self.counts[free] += 1

    def tightest(self, gpus: int) -> int:
        """Return the node with the fewest free GPUs that still has `gpus`, or -1."""
        summary = self.summary
        for free in range(gpus, self.size + 1):
            blocks = summary[free]
            if blocks:
                block = (blocks & -blocks).bit_length() - 1
                word = self.exact[free][block]
                return (block << 6) + (word & -word).bit_length() - 1
        return -1

    def claim(self, gpus: int) -> Slots | None:
        """Claim the tightest node; most jobs take this path, so everything is inlined.

        It is `tightest`, `move` and `slots` without repeated look-ups.
        """
        summary, exact = self.summary, self.exact
        for free in range(gpus, self.size + 1):
            blocks = summary[free]
            if not blocks:
                continue
            low = blocks & -blocks
            block = low.bit_length() - 1
            words = exact[free]
            word = words[block]
            bit = word & -word
            words[block] = word = word ^ bit
            if not word:
                summary[free] = blocks ^ low
            left = free - gpus
            words = exact[left]
            held = words[block]
            if not held:
                summary[left] |= low
            words[block] = held | bit
            self.counts[free] -= 1
            self.counts[left] += 1
            number = (block << 6) + bit.bit_length() - 1
            self.free[number] = left
            return self.slots(number, gpus)
        return None

    def each(self, gpus: int) -> Iterator[int]:
        """Yield open nodes with at least `gpus` free, tightest first, then in order."""
        for free in range(gpus, self.size + 1):
            blocks = self.summary[free]
            words = self.exact[free]
            while blocks:
                low = blocks & -blocks
                blocks ^= low
                block = low.bit_length() - 1
                word = words[block]
                while word:
                    bit = word & -word
                    word ^= bit
                    yield (block << 6) + bit.bit_length() - 1

    def count_with_free(self, gpus: int) -> int:
        """Return how many open nodes have at least `gpus` free."""
        return sum(self.counts[gpus:])

    def slots(self, number: int, gpus: int) -> Slots:
        """Return the slots of a single-node gang, created once for each node and size."""
        made = self._slots.get(gpus)
        if made is None:
            made = self._slots[gpus] = {}
        slots = made.get(number)
        if slots is None:
            slots = made[number] = (Slot(self.names[number], gpus),)
        return slots

    def _show(self, number: int, free: int) -> None:
        block = number >> 6
        self.exact[free][block] |= 1 << (number & 63)
        self.summary[free] |= 1 << block
        self.counts[free] += 1

    def _hide(self, number: int, free: int) -> None:
        block = number >> 6
        self.exact[free][block] ^= 1 << (number & 63)
        if not self.exact[free][block]:
            self.summary[free] ^= 1 << block
        self.counts[free] -= 1
