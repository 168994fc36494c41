"""Move small jobs together where that lets a gang start and costs less than waiting.

A gang needs whole nodes, while small jobs use parts of many. Small jobs that fit elsewhere are
stopped and restarted there before other jobs start. The cost, lost work and restarts, must be
less than the GPU time for which the gang would wait.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tenfold.decide.place.allocate.session import Session
from tenfold.decide.place.preempt.reclaim import priced
from tenfold.decide.place.preempt.victim_index import VictimIndex
from tenfold.decide.place.queue.pending_queues import JobClass, Option
from tenfold.decide.place.quota.allocations import PLAIN, Allocation
from tenfold.fleet.capacity import Slots
from tenfold.model.job.job import Job
from tenfold.model.units import Millis

MOVED_MOST = 64
"""The most jobs to move for one gang."""


class Moves(NamedTuple):
    """The jobs that move for a gang, and the slots that it gets."""

    moved: list[Allocation]
    slots: Slots


def moves_for(session: Session, job_class: JobClass, start_ms: Millis) -> Moves | None:
    """Return moves that let a gang start before `start_ms`, if they pay off."""
    state = session.state
    if not session.may_preempt() or state.allocations.stopping:
        return None
    job = job_class.queue[0][2]
    small = [each for each in state.allocations.held.values() if _may_move(session, each)]
    victim_index = VictimIndex(state.capacity, priced(session.reclaim, small))
    for option in job_class.options:
        if state.tree.obstacle(job_class.team, option.amounts) is not None:
            continue
        moved = victim_index.victims_for(job_class.shape, option.accelerator)
        if not moved or len(moved) > MOVED_MOST:
            continue
        cost = sum(map(session.reclaim.price, moved))
        if cost < option.amounts[0][1] * (start_ms - session.now_ms):
            slots = _tried(session, job, option, moved)
            if slots is not None:
                return Moves(moved, slots)
    return None


def _may_move(session: Session, allocation: Allocation) -> bool:
    """Return whether a job may be moved: part of one node, preemptible, not interactive."""
    terms = allocation.job.terms or PLAIN
    if len(allocation.slots) != 1 or not terms.preemptible or terms.kind == "interactive":
        return False
    slot = allocation.slots[0]
    node_index, _ = session.state.capacity.place[slot.node]
    run = session.view.running.get(allocation.job.id)
    return (
        0 < slot.gpus < node_index.size
        and run is not None
        and run.becoming is None
        and slot.gpus == allocation.job.shape.gpus
        and session.now_ms >= session.state.allocations.preemptible_from_ms(allocation)
    )


def _tried(session: Session, job: Job, option: Option, moved: Sequence[Allocation]) -> Slots | None:
    """Return the slots of a gang if all moved jobs fit elsewhere once it has them."""
    state, scratch = session.state, session.state.scratch
    with scratch.trial():
        for each in moved:
            scratch.release(each.slots, each.job.shape)
        slots = scratch.claimed(session.claim(job.shape, job, option), job.shape)
        if slots is None:
            return None
        for each in sorted(moved, key=_arrival):
            shape, options = each.job.shape, state.options(each.job.shape)
            found = (session.claim(shape, each.job, one) for one in options)
            slots_elsewhere = next((one for one in found if one is not None), None)
            if scratch.claimed(slots_elsewhere, shape) is None:
                return None
        return slots


def _arrival(allocation: Allocation) -> tuple[int, int]:
    return allocation.job.submitted_ms, allocation.job.seq
