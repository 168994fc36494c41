"""A node index that also knows the domains of its nodes and the power of their racks.

Tallies are created on demand and kept up to date from then on; a change updates only those whose
GPU counts it crosses. Fleets whose gangs never need a domain pay nothing.

Where a rack cannot power all its GPUs at once, its nodes show no more free GPUs than the rack
can still power, so every search by free GPUs respects the limit.
"""

from collections.abc import Iterator

from tenfold.fleet.free_node_index import FreeNodeIndex, Slots
from tenfold.fleet.topology.domains import Groups, Tally, Words
from tenfold.model.fleet.constraints import Level
from tenfold.model.fleet.node import Node
from tenfold.model.ids import NodeId

_HIDDEN = -1
"""Stands for the free GPUs of a closed node: members without GPUs may not use it either."""


class Rack:
    """What a rack may still draw, where its power limit matters."""

    def __init__(self, watts: int) -> None:
        self.left = watts
        """Watts below the limit; negative if more was allocated than allowed."""
        self._spare = watts
        """Watts below the limit if all GPUs were busy."""
        self._nodes: list[tuple[TopologyNodeIndex, int]] = []

    def join(self, node_index: "TopologyNodeIndex", number: int, node: Node) -> None:
        """Add a node: its idle power, and the power of its allocated GPUs."""
        self._nodes.append((node_index, number))
        self.left -= node.watts_idle
        self._spare -= node.watts_idle + node.gpus * node.watts_per_gpu
        node_index.racks[number] = self
        node_index.shown[number] = node_index.free[number]
        self.draw((node.gpus - node_index.free[number]) * node.watts_per_gpu)

    def power_rivals(self) -> list[NodeId]:
        """Return its nodes, if not all of them can be busy at once."""
        return (
            [node_index.names[number] for node_index, number in self._nodes]
            if self._spare < 0
            else []
        )

    def draw(self, watts: int) -> None:
        """Draw more or fewer watts, and update the free GPUs that its nodes show."""
        self.left -= watts
        for node_index, number in self._nodes:
            node_index.show_fed(number, self.left)


class TopologyNodeIndex(FreeNodeIndex):
    """Nodes of one kind, by free GPUs and by domain."""

    def __init__(self, size: int, tags: tuple[str, ...] = ()) -> None:
        super().__init__(size, tags)
        self.nodes: list[Node] = []
        self.racks: dict[int, Rack] = {}
        """Racks whose power limit matters, by node."""
        self.shown: dict[int, int] = {}
        """Free GPUs that the rack can power, for nodes in such racks."""
        self._groups: dict[Level, Groups] = {}
        self.tallies: dict[tuple[Level, int], Tally] = {}
        self._watching: list[list[Tally]] = [[] for _ in range(size + 1)]

    @property
    def accelerator(self) -> str:
        """The accelerator type of its nodes."""
        return self.nodes[0].accelerator

    def add(self, node: Node, *, gpus_free: int, cpus: int, memory: int, is_open: bool) -> int:
        """Add a node and return its number in the index."""
        self.nodes.append(node)
        self._groups.clear()
        self.tallies.clear()
        self._watching = [[] for _ in range(self.size + 1)]
        return super().add(node, gpus_free=gpus_free, cpus=cpus, memory=memory, is_open=is_open)

    def groups(self, level: Level) -> Groups:
        """Return the domains of a level."""
        groups = self._groups.get(level)
        if groups is None:
            groups = self._groups[level] = Groups(self.nodes, level)
        return groups

    def tally(self, level: Level, gpus: int) -> Tally:
        """Return how many open nodes of each domain have at least `gpus` free."""
        tally = self.tallies.get((level, gpus))
        if tally is None:
            tally = self.tallies[level, gpus] = Tally(self.groups(level), self.each(gpus))
            self._watching[gpus].append(tally)
        return tally

    def each_in(self, words: Words, gpus: int) -> Iterator[int]:
        """Yield open nodes among these with at least `gpus` free, tightest first, then in order."""
        for free in range(gpus, self.size + 1):
            if not self.summary[free]:
                continue
            exact = self.exact[free]
            for block, mask in words:
                word = exact[block] & mask
                while word:
                    bit = word & -word
                    word ^= bit
                    yield (block << 6) + bit.bit_length() - 1

    def set_open(self, number: int, is_open: bool) -> None:
        """Open a node to new jobs, or hide it; what it holds stays counted."""
        if self.is_open[number] != is_open:
            self.is_open[number] = is_open
            free = self.shown.get(number, self.free[number])
            if is_open:
                self._show(number, free)
                self._tell(number, _HIDDEN, free)
            else:
                self._hide(number, free)
                self._tell(number, free, _HIDDEN)

    def move(self, number: int, free: int) -> None:
        """Set the number of free GPUs of a node."""
        before = self.free[number]
        if self.racks and (rack := self.racks.get(number)):
            self.free[number] = free
            rack.draw((before - free) * self.nodes[number].watts_per_gpu)
            return
        super().move(number, free)
        if self.tallies and self.is_open[number]:
            self._tell(number, before, free)

    def claim(self, gpus: int) -> Slots | None:
        """Claim the tightest node, and update racks and tallies."""
        number = self.tightest(gpus)
        if number < 0:
            return None
        self.move(number, self.free[number] - gpus)
        return self.slots(number, gpus)

    def show_fed(self, number: int, watts_left: int) -> None:
        """Show the free GPUs of a node that its rack can power."""
        free = self.free[number]
        watts = self.nodes[number].watts_per_gpu
        if watts:
            free = min(free, max(0, watts_left // watts))
        before = self.shown[number]
        if free != before:
            self.shown[number] = free
            if self.is_open[number]:
                self._hide(number, before)
                self._show(number, free)
                self._tell(number, before, free)

    def _tell(self, number: int, before: int, free: int) -> None:
        """Update the tallies whose GPU count lies between the old and the new number."""
        watching = self._watching
        if free < before:
            for gpus in range(free + 1, before + 1):
                for tally in watching[gpus]:
                    tally.shift(number, -1)
        else:
            for gpus in range(before + 1, free + 1):
                for tally in watching[gpus]:
                    tally.shift(number, 1)
