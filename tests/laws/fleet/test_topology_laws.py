"""What holds for every claim of room by domain, power and tag."""

from collections import Counter
from itertools import combinations, product

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tenfold.fleet.capacity import Capacity, Slots
from tenfold.fleet.fleet import Fleet
from tenfold.fleet.topology.node_index import TopologyNodeIndex
from tenfold.fleet.topology.topology import TopologyCapacity
from tenfold.model.actions import StartJob
from tenfold.model.events import (
    ActionOrdered,
    JobEnded,
    JobStarted,
    JobSubmitted,
    NodeCordoned,
    NodeReturned,
)
from tenfold.model.fleet.constraints import LEVELS, Level, PlacementConstraints, TopologyMode
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Job, Shape, shape_of
from tenfold.model.units import Millis
from tenfold.testing.builders import fleet, in_domains, nodes

NOW = Millis(0)
SIZE = 4
"""GPUs of a node here."""
WATTS = 10
"""For each GPU; an idle node draws as much."""

wheres = st.builds(
    PlacementConstraints,
    within=st.sampled_from(LEVELS),
    how=st.sampled_from(["required", "preferred", "balanced", "spread"]),
    needs=st.sampled_from([(), (), (), ("EU",)]),
    avoids=st.sampled_from([(), (), (), ("EU",)]),
)
gangs = st.builds(
    lambda count, each, rest, cpus, where: shape_of(
        count * each + rest % each, gpus_per_node=each, cpus=count * cpus, where=where
    ),
    st.integers(1, 3) | st.integers(1, 7),
    st.integers(1, SIZE),
    st.integers(0, 2),
    st.sampled_from([0, 0, 2, 3]),
    st.none() | wheres,
)
shapes = st.one_of(gangs, gangs, st.builds(shape_of, st.sampled_from([0.3, 0.5, 1, 2])))


@st.composite
def members(draw: st.DrawFn, *, with_power: bool = True) -> list[Node]:
    """Up to a dozen nodes of one or two kinds, in domains that need not nest."""
    count = draw(st.integers(1, 5) | st.integers(6, 12))
    per: dict[Level, int] = {
        level: draw(st.sampled_from([1, 2, 2, 3, 3, 4, 6])) for level in LEVELS
    }
    made = in_domains(nodes(count, gpus=SIZE, cpus=draw(st.sampled_from([0, 4]))), per)
    if draw(st.booleans()):
        made = [
            replace(one, rack="") if number % 5 == 4 else one for number, one in enumerate(made)
        ]
    if draw(st.booleans()):
        cut = draw(st.integers(0, count))
        made = made[:cut] + [replace(one, tags=("EU",)) for one in made[cut:]]
    if with_power and draw(st.booleans()):
        watts = draw(st.integers(1, 6 * SIZE)) * WATTS
        drawn = {"watts_idle": WATTS, "watts_per_gpu": WATTS, "rack_watts": watts}
        made = [replace(one, **drawn) for one in made]
    return made


fleets = members()
unpowered = members(with_power=False)


def rack_of(node: Node) -> str:
    return node.rack or node.id


def drawn(made: Fleet) -> Counter[str]:
    watts: Counter[str] = Counter()
    for node in made.nodes.values():
        held = node.gpus - made.gpus_free[node.id]
        watts[rack_of(node)] += node.watts_idle + held * node.watts_per_gpu
    return watts


def same(kept: TopologyCapacity, built: TopologyCapacity) -> None:
    assert list(kept.node_indexes) == list(built.node_indexes)
    for mine, theirs in zip(kept.node_indexes.values(), built.node_indexes.values(), strict=True):
        assert isinstance(mine, TopologyNodeIndex)
        assert isinstance(theirs, TopologyNodeIndex)
        for what in ("free", "is_open", "exact", "summary", "counts", "given", "cpus", "shown"):
            assert getattr(mine, what) == getattr(theirs, what), what
        for (level, gpus), tally in mine.tallies.items():
            fresh = theirs.tally(level, gpus)
            for what in ("counts", "buckets", "filled"):
                assert getattr(tally, what) == getattr(fresh, what), (what, level, gpus)


class Mirror:
    """A fleet, and an index of it that is only told what changed."""

    def __init__(self, given_nodes: list[Node]) -> None:
        self.fleet = fleet(given_nodes)
        self.warm = TopologyCapacity.of(self.fleet)
        self.kept: list[NodeId] = []

    def rebuilt(self) -> TopologyCapacity:
        built = TopologyCapacity.of(self.fleet)
        for node_id in self.kept:
            built.hide(node_id)
        return built

    def start(self, seq: int, shape: Shape) -> Slots | None:
        fresh = self.rebuilt()
        could = self.warm.could_hold(shape)
        slots = self.warm.claim(shape)
        assert fresh.claim(shape) == slots, "a rebuilt index chooses as a warm one"
        if slots is None:
            return None
        assert could, "what was placed could be placed"
        where = shape.where or PlacementConstraints()
        for tags in (self.fleet.nodes[slot.node].tags for slot in slots):
            assert all(tag in tags for tag in where.needs)
            assert not any(tag in tags for tag in where.avoids)
        job = Job(id=JobId(f"job-{seq}"), shape=shape, submitted_ms=NOW, seq=seq)
        assert self.rebuilt().has(slots, shape)
        self.fleet.apply(JobSubmitted(NOW, job))
        self.fleet.apply(ActionOrdered(NOW, StartJob(job.id, slots)))
        self.fleet.apply(JobStarted(NOW, job.id))
        return slots

    def end(self, place: int) -> None:
        if self.fleet.running:
            job_id = list(self.fleet.running)[place % len(self.fleet.running)]
            held = self.fleet.running[job_id]
            self.warm.give(held.slots, held.job.shape)
            self.fleet.apply(JobEnded(NOW, job_id))

    def turn(self, place: int) -> None:
        node_id = list(self.fleet.nodes)[place % len(self.fleet.nodes)]
        closes = self.fleet.states[node_id] == "up"
        self.fleet.apply((NodeCordoned if closes else NodeReturned)(NOW, node_id))
        self.warm.set_open(node_id, not closes)

    def keep(self, place: int) -> None:
        if place % 2 and self.kept:
            self.warm.unhide(self.kept.pop(place % len(self.kept)))
        else:
            self.kept.append(list(self.fleet.nodes)[place % len(self.fleet.nodes)])
            self.warm.hide(self.kept[-1])


deeds = st.tuples(st.sampled_from(["end", "turn", "keep"]), st.integers(0, 3) | st.integers(0, 11))


days = st.lists(shapes, min_size=1, max_size=4).flatmap(
    lambda few: st.lists(st.sampled_from(few) | deeds, min_size=8, max_size=30)
)
"""Jobs of a few shapes, as they come, and what happens between them."""


@given(fleets, days)
@settings(deadline=None, max_examples=500)
def test_the_kept_index_is_the_rebuilt_one_and_no_rack_draws_too_much(
    given_nodes: list[Node], steps: list[Shape | tuple[str, int]]
):
    mirror = Mirror(given_nodes)
    limits = {rack_of(node): node.rack_watts for node in given_nodes if node.rack_watts}
    for seq, step in enumerate(steps):
        if isinstance(step, Shape):
            before = drawn(mirror.fleet)
            mirror.start(seq, step)
            for rack, watts in drawn(mirror.fleet).items():
                assert watts == before[rack] or watts <= limits.get(rack, watts)
        else:
            getattr(mirror, step[0])(step[1])
        same(mirror.warm, mirror.rebuilt())


def started(given_nodes: list[Node], held: list[Shape]) -> tuple[Fleet, TopologyCapacity]:
    mirror = Mirror(given_nodes)
    for seq, shape in enumerate(held):
        mirror.start(seq, shape)
    return mirror.fleet, mirror.warm


def name_at(node: Node, level: Level) -> str:
    names = {"scale-up": node.scaleup, "rack": node.rack, "leaf": node.leaf, "pod": node.pod}
    return names[level] or node.id


def asked(level: Level, how: TopologyMode, count: int, each: int, rest: int) -> Shape:
    where = PlacementConstraints(within=level, how=how)
    return shape_of(count * each + rest % each, gpus_per_node=each, where=where)


wishes = st.tuples(
    st.sampled_from(LEVELS), st.integers(1, 7), st.integers(1, SIZE), st.integers(0, SIZE)
)


def sets_of(made: Fleet, shape: Shape) -> list[tuple[Node, ...]]:
    """Return every set of nodes alike that could take the gang now, the slow way."""
    each = shape.gpus_per_node or SIZE
    count, rest = divmod(shape.gpus, each)
    needs = [each] * count + ([rest] if rest else [])
    found: list[tuple[Node, ...]] = []
    alike: dict[tuple[str, ...], list[Node]] = {}
    for node in made.nodes.values():
        alike.setdefault(node.tags, []).append(node)
    for kind in alike.values():
        for chosen in combinations(kind, len(needs)):
            free = sorted((made.gpus_free[node.id] for node in chosen), reverse=True)
            if all(have >= need for have, need in zip(free, needs, strict=True)):
                found.append(chosen)
    return found


def feeds(made: Fleet, chosen: tuple[Node, ...], shape: Shape) -> bool:
    """Return whether the racks can feed the gang on these nodes, some member being smaller."""
    each = shape.gpus_per_node or SIZE
    rest = shape.gpus % each
    for small in range(len(chosen)) if rest else (-1,):
        watts = drawn(made)
        wanted = [rest if place == small else each for place in range(len(chosen))]
        for node, gpus in zip(chosen, wanted, strict=True):
            watts[rack_of(node)] += gpus * node.watts_per_gpu
        fits = all(
            made.gpus_free[node.id] >= gpus for node, gpus in zip(chosen, wanted, strict=True)
        )
        if fits and all(
            not node.rack_watts or watts[rack_of(node)] <= node.rack_watts for node in chosen
        ):
            return True
    return False


few = st.lists(st.builds(shape_of, st.integers(1, 6)), max_size=4)


@given(fleets, few, wishes)
@settings(deadline=None, max_examples=300)
def test_a_required_gang_stands_in_one_domain_and_fails_only_where_none_would_do(
    given_nodes: list[Node], held: list[Shape], wish: tuple[Level, int, int, int]
):
    level, count, each, rest = wish
    made, capacity = started(given_nodes, held)
    shape = asked(level, "required", count, each, rest)
    slots = capacity.claim(shape)
    if slots is not None:
        assert len({name_at(made.nodes[slot.node], level) for slot in slots}) == 1
        assert sum(slot.gpus for slot in slots) == shape.gpus
        assert len({slot.node for slot in slots}) == len(slots)
        return
    for chosen in sets_of(made, shape):
        if len({name_at(node, level) for node in chosen}) == 1:
            assert not feeds(made, chosen, shape), chosen


@given(unpowered, few, wishes, st.sampled_from([0, 6]), st.booleans())
@settings(deadline=None, max_examples=300)
def test_a_wish_that_is_only_preferred_never_keeps_a_gang_waiting(
    given_nodes: list[Node],
    held: list[Shape],
    wish: tuple[Level, int, int, int],
    cpus: int,
    spread: bool,
):
    level, count, each, rest = wish
    made, capacity = started(given_nodes, held)
    shape = asked(level, "spread" if spread else "preferred", count, each, rest)
    shape = replace(shape, key=f"{shape.key} c{cpus}", cpus_milli=cpus * 1_000)
    slots = capacity.claim(shape)
    assert (slots is None) == (Capacity.of(made).claim(shape) is None)


@given(fleets, few, st.integers(2, 6))
@settings(deadline=None, max_examples=150)
def test_a_gang_without_a_wish_waits_only_where_no_nodes_would_do(
    given_nodes: list[Node], held: list[Shape], count: int
):
    made, capacity = started(given_nodes, held)
    shape = shape_of(count * SIZE)
    if capacity.claim(shape) is None:
        assert not any(feeds(made, chosen, shape) for chosen in sets_of(made, shape))


@given(fleets, few, wishes)
@settings(deadline=None, max_examples=300)
def test_balanced_parts_differ_by_at_most_one(
    given_nodes: list[Node], held: list[Shape], wish: tuple[Level, int, int, int]
):
    level, count, each, rest = wish
    made, capacity = started(given_nodes, held)
    slots = capacity.claim(asked(level, "balanced", count, each, rest))
    parts = Counter(name_at(made.nodes[slot.node], level) for slot in slots or ())
    assert not parts or max(parts.values()) - min(parts.values()) <= 1


@given(unpowered, few, wishes)
@settings(deadline=None, max_examples=300)
def test_balanced_and_packed_gangs_use_no_domain_too_many(
    given_nodes: list[Node], held: list[Shape], wish: tuple[Level, int, int, int]
):
    level, count, each, _ = wish
    made, capacity = started([replace(node, tags=()) for node in given_nodes], held)
    packed, balanced = (asked(level, how, count, each, 0) for how in ("preferred", "balanced"))
    best = capacity.claim(balanced)
    if best is not None:
        capacity.give(best, balanced)
    sets = [Counter(name_at(node, level) for node in chosen) for chosen in sets_of(made, packed)]
    level_sets = [parts for parts in sets if max(parts.values()) - min(parts.values()) <= 1]
    least = min((len(parts) for parts in level_sets), default=None)
    assert least == (None if best is None else len(domains_of(made, best, level)))
    if least == 1:
        slots = capacity.claim(packed)
        assert slots is not None
        assert len(domains_of(made, slots, level)) == 1


def domains_of(made: Fleet, slots: Slots, level: Level) -> dict[str, None]:
    return dict.fromkeys(name_at(made.nodes[slot.node], level) for slot in slots)


@given(unpowered, few, wishes)
@settings(deadline=None, max_examples=150)
def test_spread_gangs_stand_in_as_many_domains_as_can_be(
    given_nodes: list[Node], held: list[Shape], wish: tuple[Level, int, int, int]
):
    level, count, each, _ = wish
    made, capacity = started([replace(node, tags=()) for node in given_nodes], held)
    shape = asked(level, "spread", count, each, 0)
    slots = capacity.claim(shape)
    if count > 1 and slots is not None:
        most = max(len({name_at(n, level) for n in chosen}) for chosen in sets_of(made, shape))
        assert len(domains_of(made, slots, level)) == most


@given(fleets)
@settings(deadline=None, max_examples=50)
def test_every_node_stands_in_one_domain_of_each_level(given_nodes: list[Node]):
    capacity = TopologyCapacity.of(fleet(given_nodes))
    for level, node in product(LEVELS, given_nodes):
        assert node.id in capacity.domains(level)[capacity.domain_of(node.id, level)]
    for level in LEVELS:
        ids = [node_id for ids in capacity.domains(level).values() for node_id in ids]
        assert sorted(ids) == sorted(node.id for node in given_nodes)
