"""Why a shape can never run on this fleet: what it asks for that no empty fleet would give.

The power of racks, a domain that all must share and tags are taken away one after the other,
then together; those without which the shape would fit are the cause. Only where none of them
is does its size say no.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from tenfold.decide.place.wishes import NOUNS, anywhere, is_bound, untagged
from tenfold.fleet import topology_plans as plans
from tenfold.fleet.capacity import Capacity, Seat
from tenfold.fleet.topology_bank import Rack, TopologyBank
from tenfold.fleet.topology_domains import Tally
from tenfold.model.job import Shape
from tenfold.model.reason import Reason
from tenfold.model.where import Where

Cause = Literal["tags", "place", "power"]
CAUSES: tuple[tuple[Cause, ...], ...] = (
    ("power",),
    ("place",),
    ("tags",),
    ("place", "power"),
    ("tags", "power"),
    ("tags", "place"),
    ("tags", "place", "power"),
)
"""What to leave out of account, in turn: a rack that is large enough is not to blame for its
power, nor are tags that enough nodes bear for where these stand."""
CODES = (
    "no-such-accelerator",
    "no-node-with-tags",
    "too-few-with-tags",
    "larger-than-a-domain",
    "more-than-racks-feed",
    "larger-than-a-node",
    "larger-than-the-fleet",
)
"""Codes of refusals that say that a shape never fits."""


def never_fits(capacity: Capacity, shape: Shape) -> tuple[Reason, ...]:
    """Return what holds even for an empty, whole fleet; several where only together they do."""
    kinds = capacity.banks
    if shape.accelerators and not any(kind[1] in shape.accelerators for kind in kinds):
        wanted = " or ".join(f"`{name}`" for name in shape.accelerators)
        return (Reason("no-such-accelerator", f"no node of this fleet has {wanted}"),)
    for causes in CAUSES:
        if _fits_without(capacity, shape, causes):
            return tuple(_reason(capacity, shape, causes, cause) for cause in causes)
    return (_too_large(capacity, shape),)


def _fits_without(capacity: Capacity, shape: Shape, causes: Sequence[Cause]) -> bool:
    """Return whether an empty fleet would hold a shape, these left out of account."""
    asked = _without(shape, causes)
    if "power" not in causes:
        return asked is not shape and capacity.could_hold(asked)
    return any(_stands(seat, asked.where) for seat in capacity.seats(asked))


def _without(shape: Shape, causes: Sequence[Cause]) -> Shape:
    """Return a shape that does not ask for what these causes are about."""
    where = shape.where
    if "tags" in causes and where is not None and (where.needs or where.avoids):
        shape = untagged(shape)
    return anywhere(shape) if "place" in causes and is_bound(shape.where) else shape


def _stands(seat: Seat, where: Where | None) -> bool:
    """Return whether the nodes of a bank, all idle and fed, could take a gang as it asks."""
    members, bank = members_of(seat), seat.bank
    if members > len(bank.names):
        return False
    if members == 1 or where is None or not is_bound(where) or not isinstance(bank, TopologyBank):
        return True
    groups = bank.groups(where.within)
    if where.how == "required" or groups.largest >= members:
        return groups.largest >= members
    for plan in plans.balanced(Tally(groups, range(len(bank.names))), seat.members):
        smallest = min(count for _, count in plan)
        if not seat.rest or any(
            groups.sizes[domain] > count for domain, count in plan if count == smallest
        ):
            return True
    return False


def members_of(seat: Seat) -> int:
    """Return how many nodes a gang takes in a bank."""
    return seat.members + (seat.rest > 0)


def _reason(capacity: Capacity, shape: Shape, causes: Sequence[Cause], cause: Cause) -> Reason:
    """Return one cause with its counts, the others left out of account."""
    asked = _without(shape, [each for each in causes if each != cause])
    if cause == "tags":
        return _tags_reason(capacity, asked)
    if cause == "place":
        return _place_reason(capacity, asked)
    return _power_reason(capacity, asked)


def _tags_reason(capacity: Capacity, shape: Shape) -> Reason:
    assert shape.where is not None, "tags are in the way of shapes that ask for some"
    tags = [f"`{tag}`" for tag in shape.where.needs]
    tags += [f"no `{tag}`" for tag in shape.where.avoids]
    named, all_of = " and ".join(tags), _nodes_in(capacity.seats(untagged(shape)))
    seats = capacity.seats(shape)
    if not seats:
        said = f"none of the {all_of:,} nodes that could hold a member bears {named}"
        return Reason("no-node-with-tags", said)
    needed, alike = _nearest(seats)
    bear = _nodes_in(seats)
    said = f"it needs {needed:,} nodes that bear {named}: {bear:,} of {all_of:,} do"
    if bear > alike:
        said += f", at most {alike:,} of them alike"
    return Reason("too-few-with-tags", said)


def _place_reason(capacity: Capacity, shape: Shape) -> Reason:
    assert shape.where is not None, "places are in the way of shapes that ask for some"
    level, seats = shape.where.within, capacity.seats(shape)
    largest = max(
        seat.bank.groups(level).largest for seat in seats if isinstance(seat.bank, TopologyBank)
    )
    needed, noun = min(map(members_of, seats)), NOUNS[level]
    how = f"in one {noun}" if shape.where.how == "required" else f"in equal parts over {noun}s"
    said = f"it needs {needed:,} nodes {how}, and the largest {noun} has {largest:,} alike"
    return Reason("larger-than-a-domain", said)


def _power_reason(capacity: Capacity, shape: Shape) -> Reason:
    where = shape.where
    level = where.within if where is not None and where.how == "required" else ""
    best: tuple[float, int, int, Seat] | None = None
    for seat in capacity.seats(shape):
        if isinstance(seat.bank, TopologyBank) and _stands(seat, where):
            fed = _fed(capacity, seat.bank, seat.gpus or 1)
            of = seat.bank.groups(level).of if level else [0] * len(seat.bank.names)
            counts = [0] * (max(of) + 1)
            for number in fed:
                counts[of[number]] += 1
            most = max(counts)
            size = of.count(counts.index(most))
            found = (most / members_of(seat), most, size, seat)
            best = found if best is None or found[:2] > best[:2] else best
    assert best is not None, "power is in the way of shapes that would stand"
    _, most, size, seat = best
    needed = members_of(seat)
    nodes = "a node" if needed == 1 else f"{needed:,} nodes"
    gpus = "1 GPU" if seat.gpus <= 1 else f"{seat.gpus:,} GPUs"
    there = f"racks feed {most:,} of {size:,}"
    if level:
        there = f"the best {NOUNS[level]} feeds {most:,} of its {size:,}"
    said = f"it needs {nodes} with {gpus}, and {there} at once, even if all were idle"
    return Reason("more-than-racks-feed", said)


def _fed(capacity: Capacity, bank: TopologyBank, gpus: int) -> Iterator[int]:
    """Yield as many nodes of a bank as racks could feed with so many GPUs each, were all idle."""
    left: dict[int, int] = {}
    for other, number in capacity.place.values():
        rack = _rack(other, number)
        if rack is not None and isinstance(other, TopologyBank):
            node = other.nodes[number]
            left[id(rack)] = left.get(id(rack), node.rack_watts) - node.watts_idle
    for number, node in enumerate(bank.nodes):
        rack, watts = _rack(bank, number), gpus * node.watts_per_gpu
        if rack is not None and watts:
            if left[id(rack)] < watts:
                continue
            left[id(rack)] -= watts
        yield number


def _rack(bank: object, number: int) -> Rack | None:
    return bank.racks.get(number) if isinstance(bank, TopologyBank) else None


def _too_large(capacity: Capacity, shape: Shape) -> Reason:
    seats = capacity.seats(shape)
    if seats:
        needed, alike = _nearest(seats)
        said = f"the gang needs {needed:,} nodes and the largest set of nodes alike has {alike:,}"
        return Reason("larger-than-the-fleet", said)
    kinds = [
        kind for kind in capacity.banks if not shape.accelerators or kind[1] in shape.accelerators
    ]
    each, most = shape.gpus_per_node or 0, max((kind[2] for kind in kinds), default=0)
    each = min(each, shape.gpus) or int(shape.gpus + shape.milli > 0)
    if each > most:
        gpus = "1 GPU" if each == 1 else f"{each:,} GPUs"
        said = f"a member asks for {gpus} and the largest node that would do has {most:,}"
        return Reason("larger-than-a-node", said)
    return Reason("larger-than-a-node", f"no node can hold a member of shape `{shape.key}`")


def _nearest(seats: Sequence[Seat]) -> tuple[int, int]:
    """Return (nodes needed, nodes alike) for the kind of node that comes nearest."""
    seat = max(seats, key=lambda each: len(each.bank.names) / members_of(each))
    return members_of(seat), len(seat.bank.names)


def _nodes_in(seats: Sequence[Seat]) -> int:
    return sum(len(seat.bank.names) for seat in seats)
