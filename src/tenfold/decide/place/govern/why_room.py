"""Why a shape finds no room: what it needs, how much of it there is, and what is in the way.

Every question is put to the index that placed everybody else: the shape is claimed with one
obstacle taken away after the other, and the first without which it fits is the reason.
"""

from collections.abc import Sequence

from msgspec import Struct

from tenfold.decide.place.govern.books import Books
from tenfold.decide.place.wishes import NOUNS, anywhere
from tenfold.fleet.capacity import Seat
from tenfold.fleet.topology import Nearest
from tenfold.fleet.topology_bank import TopologyBank
from tenfold.model.ids import NodeId
from tenfold.model.job import WHOLE, Shape, per_member
from tenfold.model.reason import Reason
from tenfold.model.where import Where


class Room(Struct, frozen=True, kw_only=True):
    """What a shape needs, and what there is of it on the nodes nearest to holding it."""

    nodes_needed: int
    gpus_per_node: float
    nodes_with_room: int
    nodes_alike: int
    """Nodes of that kind, those that are away or kept included."""
    nodes_away: int
    nodes_kept: int
    """Nodes that are kept for promises."""
    nodes_in_window: int = 0
    """Nodes that a window keeps from it now."""
    gpus_needed: float
    gpus_free: int
    """Whole GPUs free on open nodes of that kind."""
    domain: str = ""
    """The domain that comes nearest, where all must stand in one."""
    domain_nodes: int = 0
    domain_nodes_with_room: int = 0


def room_of(books: Books, shape: Shape, accelerators: Sequence[str]) -> Room:
    """Return the counts for the kind of node, among these types, that comes nearest."""
    seats = [seat for name in accelerators for seat in books.capacity.seats_in(shape, name)]
    assert seats, f"shape `{shape.key}` was refused by now"
    seat = max(seats, key=lambda each: _with_room(each, shape) / _members(each))
    bank = seat.bank
    kept = {
        slot.node
        for each in books.promised.values()
        for slot in each.promise.slots
        if books.capacity.place[slot.node][0] is bank
    }
    in_window = sum(
        node not in kept and books.capacity.place[node][0] is bank and _is_closed(books, node)
        for node in books.windows.open
    )
    nearest = _nearest(books, shape)
    return Room(
        nodes_needed=_members(seat),
        gpus_per_node=shape.milli / WHOLE if shape.milli else seat.gpus,
        nodes_with_room=_with_room(seat, shape),
        nodes_alike=len(bank.names),
        nodes_away=bank.is_open.count(False) - len(kept) - in_window,
        nodes_kept=len(kept),
        nodes_in_window=in_window,
        gpus_needed=shape.milli / WHOLE or shape.gpus,
        gpus_free=sum(free * count for free, count in enumerate(bank.counts)),
        domain=nearest.domain if nearest else "",
        domain_nodes=nearest.nodes if nearest else 0,
        domain_nodes_with_room=nearest.with_room if nearest else 0,
    )


def room_reason(books: Books, shape: Shape, accelerators: Sequence[str], room: Room) -> Reason:
    """Return the first thing in the way of a shape that its team may hold."""
    if fits(books, shape, accelerators):
        return Reason("others-first", "there is room for it, and its turn has not come")
    if books.promised and _fits_unkept(books, shape, accelerators):
        return _kept_reason(books, room)
    where = shape.where
    needs = f"it needs {nodes_of(room)}"
    if room.nodes_with_room < room.nodes_needed:
        if where is not None and where.how == "required" and where.within:
            needs += f" in one {NOUNS[where.within]}"
        return _short(books, shape, accelerators, room, needs)
    if where is not None and where.within and fits(books, anywhere(shape), accelerators):
        return _domain_reason(where, room, needs)
    if _draws(books, shape, accelerators):
        return Reason("rack-power", f"{needs}, and their racks cannot feed them all")
    had = f"{room.nodes_with_room:,} nodes have these"
    return Reason("cpus-or-memory-short", f"{needs}: {had}, but not its CPUs and memory")


def fits(books: Books, shape: Shape, accelerators: Sequence[str]) -> bool:
    """Return whether there is room for a shape now; nothing is taken."""
    for name in accelerators:
        slots = books.capacity.claim_in(shape, name)
        if slots is not None:
            books.capacity.give(slots, shape)
            return True
    return False


def _short(
    books: Books, shape: Shape, accelerators: Sequence[str], room: Room, needs: str
) -> Reason:
    """Return why too few nodes have room."""
    gone = [f"{room.nodes_away:,} away"] if room.nodes_away else []
    gone += [f"{room.nodes_in_window:,} in a window"] if room.nodes_in_window else []
    away = f" ({', '.join(gone)})" if gone else ""
    had = f"{room.nodes_with_room:,} of {room.nodes_alike:,} nodes have room{away}"
    if _draws(books, shape, accelerators) and _unfed(books, shape, accelerators):
        return Reason("rack-power", f"{needs}: {had}; others have GPUs that racks cannot feed")
    if _gpus_suffice(books, shape, accelerators):
        return Reason("cpus-or-memory-short", f"{needs} with its CPUs and memory: {had}")
    free = "1 GPU is free" if room.gpus_free == 1 else f"{room.gpus_free:,} GPUs are free"
    if room.gpus_free >= room.gpus_needed > 0:
        return Reason("room-scattered", f"{needs}: {had}, though {free}")
    return Reason("too-few-free", f"{needs}: {had}, {free}")


def _domain_reason(where: Where, room: Room, needs: str) -> Reason:
    noun = NOUNS[where.within]
    if where.how != "required":
        how = "in equal parts over" if where.how == "balanced" else "spread over"
        had = f"{room.nodes_with_room:,} have room, but not so"
        return Reason("wrong-domain", f"{needs} {how} {noun}s: {had}")
    count = f"{room.domain_nodes_with_room:,} of {room.domain_nodes:,}"
    best = f"best {noun} `{room.domain}` has {count}"
    return Reason("wrong-domain", f"{needs} in one {noun}: {best}")


def _kept_reason(books: Books, room: Room) -> Reason:
    first = min(books.promised.values(), key=lambda each: each.promise.start_ms)
    nodes = "1 node is" if room.nodes_kept == 1 else f"{room.nodes_kept:,} nodes are"
    more = len(books.promised) - 1
    others = f" and {more} more" if more else ""
    return Reason(
        "kept-for-a-promise",
        f"it needs {nodes_of(room)}: there would be room, but {nodes} kept "
        f"for job `{first.job.id}`{others}",
    )


def _fits_unkept(books: Books, shape: Shape, accelerators: Sequence[str]) -> bool:
    """Return whether there would be room if nothing were kept for others."""
    kept = [each.promise.slots for each in books.promised.values()]
    for slots in kept:
        books.unkeep(slots)
    found = fits(books, shape, accelerators)
    for slots in kept:
        books.keep(slots)
    return found


def nodes_of(room: Room) -> str:
    """Return the nodes that a shape needs, in words."""
    each = f"{room.gpus_per_node:g} free GPUs" if room.gpus_per_node != 1 else "a free GPU"
    if room.nodes_needed == 1:
        return f"a node with {each}" if room.gpus_per_node else "a node"
    return f"{room.nodes_needed:,} nodes with {each}"


def _is_closed(books: Books, node_id: NodeId) -> bool:
    bank, number = books.capacity.place[node_id]
    return not bank.is_open[number]


def _nearest(books: Books, shape: Shape) -> Nearest | None:
    where = shape.where
    if where is None or where.how != "required" or not where.within:
        return None
    return books.capacity.best_domain(shape)


def _members(seat: Seat) -> int:
    return seat.members + (seat.rest > 0)


def _with_room(seat: Seat, shape: Shape) -> int:
    """Count open nodes of a bank that could take one member now."""
    bank = seat.bank
    if not (shape.milli or shape.cpus_milli or shape.memory_mib):
        return bank.with_room(seat.gpus)
    cpus, memory = per_member(shape, _members(seat))
    numbers = dict.fromkeys(bank.each(1 if shape.milli else seat.gpus))
    for number, given in bank.given.items() if shape.milli else ():
        if bank.is_open[number] and any(held + shape.milli <= WHOLE for held in given.values()):
            numbers[number] = None
    return sum(
        (not bank.counts_cpus or bank.cpus[number] >= cpus)
        and (not bank.counts_memory or bank.memory[number] >= memory)
        for number in numbers
    )


def _banks(
    books: Books, shape: Shape, accelerators: Sequence[str]
) -> list[tuple[TopologyBank, Seat]]:
    return [
        (seat.bank, seat)
        for name in accelerators
        for seat in books.capacity.seats_in(shape, name)
        if isinstance(seat.bank, TopologyBank)
    ]


def _draws(books: Books, shape: Shape, accelerators: Sequence[str]) -> bool:
    """Return whether the nodes that would do stand in racks whose limit binds."""
    return any(bank.racks for bank, _ in _banks(books, shape, accelerators))


def _gpus_suffice(books: Books, shape: Shape, accelerators: Sequence[str]) -> bool:
    """Return whether enough nodes have the GPUs, so that it is CPUs or memory that they lack."""
    if not (shape.cpus_milli or shape.memory_mib):
        return False
    least = 1 if shape.milli else 0
    return any(
        bank.with_room(max(least, seat.gpus)) >= _members(seat)
        for bank, seat in _banks(books, shape, accelerators)
    )


def _unfed(books: Books, shape: Shape, accelerators: Sequence[str]) -> bool:
    """Return whether enough nodes would have room if their racks could feed them."""
    for bank, seat in _banks(books, shape, accelerators):
        least = seat.gpus or 1
        with_gpus = sum(
            is_open and free >= least for is_open, free in zip(bank.is_open, bank.free, strict=True)
        )
        if with_gpus >= _members(seat):
            return True
    return False
