"""Small jobs are moved together where that lets a gang start, and costs less than its waiting.

A gang needs whole nodes; small jobs stand on a part of many. Where there is room for them
elsewhere they are stopped and started again there, before anybody else is served. What that
costs, lost work and restarts, must be less than the GPU time for which the gang would wait.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tenfold.decide.place.allocate.session import Session
from tenfold.decide.place.preempt.reclaim import priced
from tenfold.decide.place.preempt.victim_index import Givers
from tenfold.decide.place.queue.pending_queues import Class, Option
from tenfold.decide.place.quota.allocations import PLAIN, Holding
from tenfold.fleet.capacity import Slots
from tenfold.model.job.job import Job
from tenfold.model.units import Millis

MOVED_MOST = 64
"""More jobs are never moved for one gang."""


class Moves(NamedTuple):
    """Who moves for a gang, and the room that it gets."""

    movers: list[Holding]
    slots: Slots


def moves_for(session: Session, cls: Class, start_ms: Millis) -> Moves | None:
    """Return moves that let a gang start which otherwise starts at a time, where they pay."""
    books = session.books
    if not session.may_displace() or books.holdings.stopping:
        return None
    job = cls.line[0][2]
    small = [each for each in books.holdings.held.values() if _may_move(session, each)]
    givers = Givers(books.capacity, priced(session.reclaim, small))
    for option in cls.options:
        if books.tree.obstacle(cls.team, option.amounts) is not None:
            continue
        movers = givers.for_room(cls.shape, option.accelerator)
        if not movers or len(movers) > MOVED_MOST:
            continue
        cost = sum(map(session.reclaim.price, movers))
        if cost < option.amounts[0][1] * (start_ms - session.now_ms):
            slots = _tried(session, job, option, movers)
            if slots is not None:
                return Moves(movers, slots)
    return None


def _may_move(session: Session, holding: Holding) -> bool:
    """Return whether a job may be moved: a part of one node, ripe, and not in use by a person."""
    terms = holding.job.terms or PLAIN
    if len(holding.slots) != 1 or not terms.preemptible or terms.kind == "interactive":
        return False
    slot = holding.slots[0]
    bank, _ = session.books.capacity.place[slot.node]
    run = session.view.running.get(holding.job.id)
    return (
        0 < slot.gpus < bank.size
        and run is not None
        and run.becoming is None
        and slot.gpus == holding.job.shape.gpus
        and session.now_ms >= session.books.holdings.ripe_ms(holding)
    )


def _tried(session: Session, job: Job, option: Option, movers: Sequence[Holding]) -> Slots | None:
    """Return the room of a gang if all movers find another place once it has it."""
    books, scratch = session.books, session.books.scratch
    with scratch.trial():
        for each in movers:
            scratch.release(each.slots, each.job.shape)
        slots = scratch.claimed(session.claim(job.shape, job, option), job.shape)
        if slots is None:
            return None
        for each in sorted(movers, key=_arrival):
            shape, options = each.job.shape, books.options(each.job.shape)
            homes = (session.claim(shape, each.job, one) for one in options)
            home = next((one for one in homes if one is not None), None)
            if scratch.claimed(home, shape) is None:
                return None
        return slots


def _arrival(holding: Holding) -> tuple[int, int]:
    return holding.job.submitted_ms, holding.job.seq
