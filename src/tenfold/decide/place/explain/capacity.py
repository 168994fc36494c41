"""Room as teams have it: what is kept for promises and by windows is not there for others."""

from collections.abc import Sequence

from tenfold.decide.place.state.scheduler_state import Books
from tenfold.fleet.obstacle import Room, fits, needs, obstacle_to, room_of
from tenfold.model.job.job import Shape
from tenfold.model.reason import JobRef, Reason


def governed_room(books: Books, shape: Shape, accelerators: Sequence[str]) -> Room:
    """Return the counts for the kind of node, among these types, that comes nearest."""
    kept = (slot.node for each in books.promised.values() for slot in each.promise.slots)
    return room_of(books.capacity, shape, accelerators, kept, books.windows.open)


def room_reason(books: Books, shape: Shape, accelerators: Sequence[str], room: Room) -> Reason:
    """Return the first thing in the way of a shape that its team may hold."""
    if fits(books.capacity, shape, accelerators):
        return Reason("others-first")
    if books.promised and _fits_unkept(books, shape, accelerators):
        first = min(books.promised.values(), key=lambda each: each.promise.start_ms)
        fields = needs(room)
        fields["kept"], fields["job"] = room.nodes_kept, JobRef(first.job.id, first.job.team)
        fields["more"] = len(books.promised) - 1
        return Reason("kept-for-a-promise", fields)
    return obstacle_to(books.capacity, shape, accelerators, room)


def _fits_unkept(books: Books, shape: Shape, accelerators: Sequence[str]) -> bool:
    """Return whether there would be room if nothing were kept for others."""
    with books.scratch.trial():
        for each in books.promised.values():
            books.scratch.unhide(books.capacity.around(each.promise.slots))
        return fits(books.capacity, shape, accelerators)
