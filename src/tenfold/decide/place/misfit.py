"""Why a shape can never run on this fleet: what it asks for that no empty fleet would give.

The power of racks, a domain that all must share and tags are taken away one after the other,
then together; those without which the shape would fit are the cause. Only where none of them
is does its size say no.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from tenfold.fleet.capacity import Capacity, Seat
from tenfold.fleet.obstacle import members_of
from tenfold.fleet.topology import plans
from tenfold.fleet.topology.bank import Rack, TopologyBank
from tenfold.fleet.topology.domains import Tally
from tenfold.fleet.wishes import anywhere, is_bound, untagged
from tenfold.model.fleet.constraints import PlacementConstraints
from tenfold.model.job.job import Shape
from tenfold.model.reason import Reason, Value

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
        return (Reason("no-such-accelerator", {"accelerators": shape.accelerators}),)
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


def _stands(seat: Seat, where: PlacementConstraints | None) -> bool:
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
    seats, fields = capacity.seats(shape), dict[str, Value]()
    if shape.where.needs:
        fields["tags"] = shape.where.needs
    if shape.where.avoids:
        fields["avoided"] = shape.where.avoids
    fields["of"] = _nodes_in(capacity.seats(untagged(shape)))
    if not seats:
        return Reason("no-node-with-tags", fields)
    (fields["nodes"], alike), bear = _nearest(seats), _nodes_in(seats)
    fields["tagged"] = bear
    if bear > alike:
        fields["alike"] = alike
    return Reason("too-few-with-tags", fields)


def _place_reason(capacity: Capacity, shape: Shape) -> Reason:
    assert shape.where is not None, "places are in the way of shapes that ask for some"
    level, seats = shape.where.within, capacity.seats(shape)
    largest = max(
        seat.bank.groups(level).largest for seat in seats if isinstance(seat.bank, TopologyBank)
    )
    needed = min(map(members_of, seats))
    fields = {"nodes": needed, "how": shape.where.how, "within": level, "largest": largest}
    return Reason("larger-than-a-domain", fields)


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
    fields: dict[str, Value] = {"nodes": members_of(seat), "per_node": max(seat.gpus, 1)}
    fields["fed"], fields["of"], fields["within"] = most, size, level
    return Reason("more-than-racks-feed", fields)


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
        return Reason("larger-than-the-fleet", {"nodes": needed, "alike": alike})
    kinds = [
        kind for kind in capacity.banks if not shape.accelerators or kind[1] in shape.accelerators
    ]
    each, most = shape.gpus_per_node or 0, max((kind[2] for kind in kinds), default=0)
    each = min(each, shape.gpus) or int(shape.gpus + shape.milli > 0)
    if each > most:
        return Reason("larger-than-a-node", {"per_node": each, "largest": most})
    return Reason("larger-than-a-node", {"shape": shape.key})


def _nearest(seats: Sequence[Seat]) -> tuple[int, int]:
    """Return (nodes needed, nodes alike) for the kind of node that comes nearest."""
    seat = max(seats, key=lambda each: len(each.bank.names) / members_of(each))
    return members_of(seat), len(seat.bank.names)


def _nodes_in(seats: Sequence[Seat]) -> int:
    return sum(len(seat.bank.names) for seat in seats)
