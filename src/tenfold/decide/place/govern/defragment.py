"""Small jobs are moved together where that lets a gang start, and costs less than its waiting.

A gang needs whole nodes; small jobs stand on a part of many. Where there is room for them
elsewhere they are stopped and started again there, before anybody else is served. What that
costs, lost work and restarts, must be less than the GPU time for which the gang would wait.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tenfold.decide.place.govern.givers import Givers
from tenfold.decide.place.govern.holdings import PLAIN, Holding
from tenfold.decide.place.govern.lines import Class, Option
from tenfold.decide.place.govern.reclaim import priced
from tenfold.decide.place.govern.upkeep import claim
from tenfold.fleet.capacity import Slots
from tenfold.model.job import Job
from tenfold.model.units import Millis

if TYPE_CHECKING:
    from tenfold.decide.place.govern.walk import Walk

MOVED_MOST = 64
"""More jobs are never moved for one gang."""


class Moves(NamedTuple):
    """Who moves for a gang, and the room that it gets."""

    movers: list[Holding]
    slots: Slots


def moves_for(walk: "Walk", cls: Class, start_ms: Millis) -> Moves | None:
    """Return moves that let a gang start which otherwise starts at a time, where they pay."""
    books = walk.books
    if not walk.may_displace() or books.holdings.stopping:
        return None
    job = cls.line[0][2]
    small = [each for each in books.holdings.held.values() if _may_move(walk, each)]
    givers = Givers(books.capacity, priced(walk.reclaim, small))
    for option in cls.options:
        if books.tree.obstacle(cls.team, option.amounts) is not None:
            continue
        movers = givers.for_room(cls.shape, option.accelerator)
        if not movers or len(movers) > MOVED_MOST:
            continue
        cost = sum(map(walk.reclaim.price, movers))
        if cost < option.amounts[0][1] * (start_ms - walk.now_ms):
            slots = _tried(walk, job, option, movers)
            if slots is not None:
                return Moves(movers, slots)
    return None


def _may_move(walk: "Walk", holding: Holding) -> bool:
    """Return whether a job may be moved: a part of one node, ripe, and not in use by a person."""
    terms = holding.job.terms or PLAIN
    if len(holding.slots) != 1 or not terms.preemptible or terms.kind == "interactive":
        return False
    slot = holding.slots[0]
    bank, _ = walk.books.capacity.place[slot.node]
    run = walk.view.running.get(holding.job.id)
    return (
        0 < slot.gpus < bank.size
        and run is not None
        and run.becoming is None
        and slot.gpus == holding.job.shape.gpus
        and walk.now_ms >= walk.books.holdings.ripe_ms(holding)
    )


def _tried(walk: "Walk", job: Job, option: Option, movers: Sequence[Holding]) -> Slots | None:
    """Return the room of a gang if all movers find another place once it has it."""
    books, scratch = walk.books, walk.books.scratch
    with scratch.trial():
        for each in movers:
            scratch.release(each.slots, each.job.shape)
        slots = scratch.claimed(claim(walk, job.shape, job, option), job.shape)
        if slots is None:
            return None
        for each in sorted(movers, key=_arrival):
            shape, options = each.job.shape, books.options(each.job.shape)
            homes = (claim(walk, shape, each.job, one) for one in options)
            home = next((one for one in homes if one is not None), None)
            if scratch.claimed(home, shape) is None:
                return None
        return slots


def _arrival(holding: Holding) -> tuple[int, int]:
    return holding.job.submitted_ms, holding.job.seq
