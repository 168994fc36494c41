"""Nodes of one kind divided into domains of one level, and which domains fit.

A `Tally` counts for each domain the nodes with enough free GPUs, and keeps the domains by that
count as bitsets. The tightest domain for a gang is then two find-first-set operations away, like
the tightest node in an index.
"""

from collections.abc import Iterable, Iterator, Sequence

from tenfold.model.fleet.constraints import Level
from tenfold.model.fleet.node import Node

Words = tuple[tuple[int, int], ...]
"""Nodes of an index as (block, word), in the blocks of that index."""


def domain_name(node: Node, level: Level) -> str:
    """Return the name of a node's domain at a level, empty if it has none."""
    if level == "rack":
        return node.rack
    if level == "leaf":
        return node.leaf
    return node.pod if level == "pod" else node.scaleup


class Groups:
    """The domains of one level, numbered in the order of their nodes.

    A node without a name at this level is a domain of its own.
    """

    def __init__(self, nodes: Sequence[Node], level: Level) -> None:
        self.of: list[int] = []
        """Number of the domain of each node."""
        self.names: list[str] = []
        self.sizes: list[int] = []
        numbers: dict[tuple[str, str], int] = {}
        words: list[dict[int, int]] = []
        for number, node in enumerate(nodes):
            name = domain_name(node, level)
            domain = numbers.setdefault((name, "" if name else node.id), len(numbers))
            if domain == len(self.names):
                self.names.append(name or node.id)
                self.sizes.append(0)
                words.append({})
            self.of.append(domain)
            self.sizes[domain] += 1
            block = number >> 6
            words[domain][block] = words[domain].get(block, 0) | 1 << (number & 63)
        self.words: list[Words] = [tuple(each.items()) for each in words]
        self.largest = max(self.sizes, default=0)

    @property
    def divides(self) -> bool:
        """Whether sharing a domain is more than being anywhere, and less than being on one node."""
        return self.largest > 1 and len(self.names) > 1


class Tally:
    """For each domain, the number of nodes that fit one member."""

    __slots__ = ("_of", "buckets", "counts", "filled", "groups")

    def __init__(self, groups: Groups, fitting: Iterable[int]) -> None:
        self.groups = groups
        self._of = groups.of
        self.counts = [0] * len(groups.names)
        for number in fitting:
            self.counts[groups.of[number]] += 1
        self.buckets = [0] * (groups.largest + 1)
        """Domains by their count, one bit each."""
        for domain, count in enumerate(self.counts):
            self.buckets[count] |= 1 << domain
        self.filled = sum(1 << count for count, bits in enumerate(self.buckets) if bits)
        """One bit for each count that some domain has."""

    def shift(self, number: int, by: int) -> None:
        """Add (1) or remove (-1) a node."""
        domain = self._of[number]
        bit = 1 << domain
        buckets = self.buckets
        count = self.counts[domain]
        left = buckets[count] ^ bit
        buckets[count] = left
        if not left:
            self.filled ^= 1 << count
        count += by
        self.counts[domain] = count
        held = buckets[count]
        if not held:
            self.filled |= 1 << count
        buckets[count] = held | bit

    def from_tightest(self, at_least: int) -> Iterator[int]:
        """Yield domains with at least this many nodes that fit, the fewest first, then in order."""
        filled = self.filled >> at_least << at_least
        while filled:
            low = filled & -filled
            filled ^= low
            yield from _bits(self.buckets[low.bit_length() - 1])

    def from_emptiest(self) -> Iterator[int]:
        """Yield domains with any nodes that fit, the most first, then in order."""
        filled = self.filled >> 1 << 1
        while filled:
            count = filled.bit_length() - 1
            filled ^= 1 << count
            yield from _bits(self.buckets[count])

    def count_with_free(self, at_least: int) -> int:
        """Return how many domains have at least this many nodes that fit."""
        return sum(bits.bit_count() for bits in self.buckets[at_least:])


def _bits(bits: int) -> Iterator[int]:
    while bits:
        low = bits & -bits
        bits ^= low
        yield low.bit_length() - 1
