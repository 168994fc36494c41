"""Elastic jobs that could make room for a waiting one by going on with less."""

from collections.abc import Iterator

from tenfold.decide.place.explain.settled import Settled
from tenfold.decide.place.queue.pending_queues import Class
from tenfold.decide.place.quota.allocations import Holding
from tenfold.decide.place.state.scheduler_state import Books
from tenfold.fleet.capacity import Slots
from tenfold.fleet.fleet import FleetView
from tenfold.model.job.job import WHOLE, Shape, Slot
from tenfold.study.why.changes import NewSlots, ShrinkJobs
from tenfold.study.why.search import type_of

GPUS_ALONE = Shape(key="gpus alone")
"""What an elastic job gives back: GPUs, and nothing that is counted beside them."""


def find_shrinks(settled: Settled, cls: Class) -> ShrinkJobs | None:
    """Return elastic jobs that would make room by going on with less."""
    books, view = settled.books, settled.view
    released: list[tuple[Holding, Slots]] = []
    elastic = [each for each in books.holdings.held.values() if _slack(view, each) > 0]
    found = False
    with books.scratch.trial():
        for each in sorted(elastic, key=lambda one: (-_slack(view, one), one.job.seq)):
            spare = _spare(books, each)
            if spare:
                _release(books, each, spare)
                released.append((each, spare))
                found = _fits(books, cls)
            if found:
                released = _minimal(books, cls, released)
                break
    if not found or not released:
        return None
    return ShrinkJobs(
        tuple(NewSlots(each.job.id, _remaining(each, spare)) for each, spare in released)
    )


def _fits(books: Books, cls: Class) -> bool:
    """Return whether a class finds room within its limits; nothing is taken."""
    tree, scratch = books.tree, books.scratch
    return any(
        tree.obstacle(cls.team, amounts) is None and scratch.fits_in(cls.shape, accelerator)
        for accelerator, amounts in cls.options
    )


def _minimal(
    books: Books, cls: Class, released: list[tuple[Holding, Slots]]
) -> list[tuple[Holding, Slots]]:
    """Let off everybody, and every part, without which it works as well."""
    needed: list[tuple[Holding, Slots]] = []
    for each, spare in reversed(released):
        kept = list(_parts(each, spare))
        for part in list(kept):
            _restore(books, each, (part,))
            if _fits(books, cls):
                kept.remove(part)
            else:
                _release(books, each, (part,))
        if kept:
            needed.append((each, tuple(kept)))
    return needed


def _parts(holding: Holding, spare: Slots) -> Iterator[Slot]:
    """Yield what may be left out on its own: a whole member of several, or one GPU of one."""
    if len(holding.slots) > 1:
        yield from spare
    else:
        for slot in spare:
            yield from [Slot(slot.node, 1)] * slot.gpus


def _slack(view: FleetView, holding: Holding) -> int:
    """Return how many GPUs an elastic job could give up."""
    terms, shape, run = holding.job.terms, holding.job.shape, view.running.get(holding.job.id)
    if terms is None or not terms.least_gpus or run is None or run.becoming is not None:
        return 0
    if holding.stopping or shape.milli or shape.cpus_milli or shape.memory_mib:
        return 0
    return holding.gpus_milli // WHOLE - terms.least_gpus


def _spare(books: Books, holding: Holding) -> Slots:
    """Return what an elastic job could give up: members on nodes with the most room first."""
    assert holding.job.terms is not None, "only an elastic job has something to spare"
    slack = holding.gpus_milli // WHOLE - holding.job.terms.least_gpus
    if len(holding.slots) == 1:
        return (Slot(holding.slots[0].node, slack),)

    def free(slot: Slot) -> int:
        bank, number = books.capacity.place[slot.node]
        return -bank.free[number]

    spare: list[Slot] = []
    for slot in sorted(holding.slots, key=free):
        if slot.gpus <= slack:
            spare.append(slot)
            slack -= slot.gpus
    return tuple(spare)


def _release(books: Books, holding: Holding, spare: Slots) -> None:
    """Count a part of what a job holds as free."""
    books.scratch.release(spare, GPUS_ALONE)
    books.scratch.count(holding.team, books.amounts(spare, type_of(books, holding)), -1)


def _restore(books: Books, holding: Holding, spare: Slots) -> None:
    """Count a part that a job gave up as its own again."""
    books.scratch.allocate(spare, GPUS_ALONE)
    books.scratch.count(holding.team, books.amounts(spare, type_of(books, holding)), 1)


def _remaining(holding: Holding, spare: Slots) -> Slots:
    removed: dict[str, int] = {}
    for slot in spare:
        removed[slot.node] = removed.get(slot.node, 0) + slot.gpus
    left = [Slot(slot.node, slot.gpus - removed.get(slot.node, 0)) for slot in holding.slots]
    return tuple(slot for slot in left if slot.gpus)
