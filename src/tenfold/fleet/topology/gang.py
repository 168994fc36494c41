"""Which nodes a gang takes: in one domain, packed, in equal parts or spread out.

Each strategy is a function that fills `gang.chosen` and returns whether the whole gang fits.
Domains are counted by GPUs; CPUs, memory and rack power are then checked node by node, where
they are counted.
"""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain, islice

from tenfold.fleet.capacity import GangSplit, Slots
from tenfold.fleet.topology import plans
from tenfold.fleet.topology.domains import Tally
from tenfold.fleet.topology.node_index import Rack, TopologyNodeIndex
from tenfold.model.fleet.constraints import LEVELS, Level, PlacementConstraints, TopologyMode
from tenfold.model.job.job import Shape, per_member

USUAL: Level = "leaf"
"""The level that a gang without constraints prefers: traffic below a leaf switch is free."""


class Gang:
    """One gang that looks for nodes in one index. Nothing is allocated yet."""

    def __init__(self, node_index: TopologyNodeIndex, split: GangSplit, shape: Shape) -> None:
        cpus, memory = per_member(shape, split.members + (split.rest > 0))
        self.node_index = node_index
        self.members = split.members
        self.gpus = split.gpus
        self.rest = split.rest
        self.chosen: list[int] = []
        self._cpus = cpus if node_index.counts_cpus else 0
        self._memory = memory if node_index.counts_memory else 0
        self._checks = bool(self._cpus or self._memory or node_index.racks)
        self._drawn: dict[Rack, int] = {}
        """Watts that the nodes chosen so far would draw."""

    def clear(self) -> None:
        """Start over."""
        self.chosen.clear()
        self._drawn.clear()

    def tally(self, level: Level) -> Tally:
        """Return how many nodes of each domain fit a member."""
        if not self._checks:
            return self.node_index.tally(level, self.gpus)
        fitting = (n for n in self.node_index.each(self.gpus) if self._fits(n, self.gpus))
        return Tally(self.node_index.groups(level), fitting)

    def gather(self, numbers: Iterable[int], wanted: int) -> bool:
        """Choose this many of these nodes, the first that fit; False if too few do."""
        before = len(self.chosen)
        if not self._checks:
            self.chosen.extend(islice(numbers, wanted))
        else:
            for number in numbers if wanted else ():
                if self._fits(number, self.gpus):
                    self._choose(number, self.gpus)
                    if len(self.chosen) == before + wanted:
                        break
        return len(self.chosen) == before + wanted

    def complete(self, numbers: Iterable[int], for_rest: Iterable[int]) -> bool:
        """Choose the missing members, and the smaller last one, if there is one."""
        missing = self.members - len(self.chosen)
        if missing:
            chosen = set(self.chosen)
            if not self.gather((n for n in numbers if n not in chosen), missing):
                return False
        if not self.rest:
            return True
        chosen = set(self.chosen)
        others = (n for n in for_rest if n not in chosen and self._fits(n, self.rest))
        last = next(others, -1)
        if last >= 0:
            self._choose(last, self.rest)
        return last >= 0

    def slots(self) -> Slots:
        """Return the slots of the chosen nodes."""
        slots, gpus = self.node_index.slots, self.gpus
        chosen = [slots(number, gpus)[0] for number in self.chosen[: self.members]]
        if self.rest:
            chosen.append(slots(self.chosen[-1], self.rest)[0])
        return tuple(chosen)

    def _choose(self, number: int, gpus: int) -> None:
        self.chosen.append(number)
        if rack := self.node_index.racks.get(number):
            watts = gpus * self.node_index.nodes[number].watts_per_gpu
            self._drawn[rack] = self._drawn.get(rack, 0) + watts

    def _fits(self, number: int, gpus: int) -> bool:
        node_index = self.node_index
        if self._cpus > node_index.cpus[number] or self._memory > node_index.memory[number]:
            return False
        if rack := node_index.racks.get(number):
            watts = gpus * node_index.nodes[number].watts_per_gpu
            return self._drawn.get(rack, 0) + watts <= rack.left
        return True


Strategy = Callable[[Gang], bool]


def strategies(where: PlacementConstraints | None) -> tuple[Strategy, ...]:
    """Return the strategies for a gang, best first; without constraints it is packed."""
    if where is None or not where.within:
        return STRATEGIES["preferred", USUAL]
    return STRATEGIES[where.how, where.within]


def together(gang: Gang, level: Level) -> bool:
    """All in one domain: the tightest one that fits."""
    node_index, groups = gang.node_index, gang.node_index.groups(level)
    if groups.largest < gang.members + (gang.rest > 0):
        return False
    words = groups.words
    for domain in node_index.tally(level, gang.gpus).from_tightest(gang.members):
        if gang.rest and node_index.tally(level, gang.rest).counts[domain] <= gang.members:
            continue
        gang.clear()
        if gang.gather(node_index.each_in(words[domain], gang.gpus), gang.members) and (
            not gang.rest or gang.complete((), node_index.each_in(words[domain], gang.rest))
        ):
            return True
    return False


def together_in(gang: Gang, level: Level, wider: Level) -> bool:
    """All in one wider domain, and there in as few domains as possible."""
    node_index = gang.node_index
    around, inner = node_index.groups(wider), node_index.groups(level)
    if not around.divides:
        return False
    if not inner.divides:
        return together(gang, wider)
    for domain in node_index.tally(wider, gang.gpus).from_tightest(gang.members):
        gang.clear()
        words = around.words[domain]
        numbers = list(node_index.each_in(words, gang.gpus))
        plan = plans.packed(Tally(inner, numbers), gang.members) or []
        for part, count in plan:
            gang.gather((n for n in numbers if inner.of[n] == part), count)
        if gang.complete(numbers, node_index.each_in(words, gang.rest)):
            return True
    return False


def packed(gang: Gang, level: Level) -> bool:
    """In as few domains as possible, the emptiest first."""
    node_index, groups = gang.node_index, gang.node_index.groups(level)
    gang.clear()
    if not groups.divides:
        return gang.complete(node_index.each(gang.gpus), node_index.each(gang.rest))
    plan = plans.packed(gang.tally(level), gang.members)
    if plan is None:
        return False
    for domain, count in plan:
        gang.gather(node_index.each_in(groups.words[domain], gang.gpus), count)
    near = [node_index.each_in(groups.words[domain], gang.rest) for domain, _ in reversed(plan)]
    return gang.complete(node_index.each(gang.gpus), chain(*near, node_index.each(gang.rest)))


def in_equal_parts(gang: Gang, level: Level) -> bool:
    """In parts that differ by at most one member, on as few domains as possible."""
    node_index, words = gang.node_index, gang.node_index.groups(level).words
    for plan in plans.balanced(gang.tally(level), gang.members):
        gang.clear()
        for domain, count in plan:
            gang.gather(node_index.each_in(words[domain], gang.gpus), count)
        smallest = min(count for _, count in plan)
        room = [node_index.each_in(words[d], gang.rest) for d, count in plan if count == smallest]
        if gang.complete((), chain(*room)):
            return True
    return False


def spread(gang: Gang, level: Level) -> bool:
    """Over as many domains as possible, one member at a time."""
    node_index, groups = gang.node_index, gang.node_index.groups(level)
    gang.clear()
    plan = plans.spread(gang.tally(level), gang.members)
    if plan is None:
        return False
    for domain, count in plan:
        gang.gather(node_index.each_in(groups.words[domain], gang.gpus), count)
    taken = dict(plan)
    fresh = (n for n in node_index.each(gang.rest) if groups.of[n] not in taken)
    return gang.complete(node_index.each(gang.gpus), chain(fresh, node_index.each(gang.rest)))


def _strategies(how: TopologyMode, level: Level) -> tuple[Strategy, ...]:
    if how == "required":
        return (partial(together, level=level),)
    if how == "balanced":
        return (partial(together, level=level), partial(in_equal_parts, level=level))
    if how == "spread":
        return (partial(spread, level=level),)
    wider = LEVELS[LEVELS.index(level) + 1 :]
    near = [partial(together_in, level=level, wider=each) for each in wider]
    return (partial(together, level=level), *near, partial(packed, level=level))


HOWS: tuple[TopologyMode, ...] = ("required", "preferred", "balanced", "spread")
STRATEGIES = {(how, level): _strategies(how, level) for how in HOWS for level in LEVELS}
