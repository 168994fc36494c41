"""Find elastic jobs that could free capacity for a pending job by shrinking."""

from collections.abc import Iterator

from tenfold.decide.place.explain.settled import Settled
from tenfold.decide.place.queue.pending_queues import JobClass
from tenfold.decide.place.quota.allocations import Allocation
from tenfold.decide.place.state.scheduler_state import SchedulerState
from tenfold.fleet.capacity import Slots
from tenfold.fleet.fleet import FleetView
from tenfold.model.job.job import WHOLE, Shape, Slot
from tenfold.study.why.changes import NewSlots, ShrinkJobs
from tenfold.study.why.search import type_of

GPUS_ALONE = Shape(key="gpus alone")
"""What an elastic job releases: GPUs only, no CPUs or memory."""


def find_shrinks(settled: Settled, job_class: JobClass) -> ShrinkJobs | None:
    """Return elastic jobs that would free enough capacity by shrinking."""
    state, view = settled.state, settled.view
    released: list[tuple[Allocation, Slots]] = []
    elastic = [each for each in state.allocations.held.values() if _slack(view, each) > 0]
    found = False
    with state.scratch.trial():
        for each in sorted(elastic, key=lambda one: (-_slack(view, one), one.job.seq)):
            spare = _spare(state, each)
            if spare:
                _release(state, each, spare)
                released.append((each, spare))
                found = _fits(state, job_class)
            if found:
                released = _minimal(state, job_class, released)
                break
    if not found or not released:
        return None
    return ShrinkJobs(
        tuple(NewSlots(each.job.id, _remaining(each, spare)) for each, spare in released)
    )


def _fits(state: SchedulerState, job_class: JobClass) -> bool:
    """Return whether a class fits within its limits, without allocating."""
    tree, scratch = state.tree, state.scratch
    return any(
        tree.obstacle(job_class.team, amounts) is None
        and scratch.fits_in(job_class.shape, accelerator)
        for accelerator, amounts in job_class.options
    )


def _minimal(
    state: SchedulerState, job_class: JobClass, released: list[tuple[Allocation, Slots]]
) -> list[tuple[Allocation, Slots]]:
    """Drop every job, and every part, that turns out not to be necessary."""
    needed: list[tuple[Allocation, Slots]] = []
    for each, spare in reversed(released):
        kept = list(_parts(each, spare))
        for part in list(kept):
            _restore(state, each, (part,))
            if _fits(state, job_class):
                kept.remove(part)
            else:
                _release(state, each, (part,))
        if kept:
            needed.append((each, tuple(kept)))
    return needed


def _parts(allocation: Allocation, spare: Slots) -> Iterator[Slot]:
    """Yield units that can be kept separately: gang members, or GPUs of a single member."""
    if len(allocation.slots) > 1:
        yield from spare
    else:
        for slot in spare:
            yield from [Slot(slot.node, 1)] * slot.gpus


def _slack(view: FleetView, allocation: Allocation) -> int:
    """Return how many GPUs an elastic job could release."""
    terms, shape, run = (
        allocation.job.terms,
        allocation.job.shape,
        view.running.get(allocation.job.id),
    )
    if terms is None or not terms.least_gpus or run is None or run.becoming is not None:
        return 0
    if allocation.stopping or shape.milli or shape.cpus_milli or shape.memory_mib:
        return 0
    return allocation.gpus_milli // WHOLE - terms.least_gpus


def _spare(state: SchedulerState, allocation: Allocation) -> Slots:
    """Return what an elastic job could release: members on the emptiest nodes first."""
    assert allocation.job.terms is not None, "only an elastic job can shrink"
    slack = allocation.gpus_milli // WHOLE - allocation.job.terms.least_gpus
    if len(allocation.slots) == 1:
        return (Slot(allocation.slots[0].node, slack),)

    def free(slot: Slot) -> int:
        node_index, number = state.capacity.place[slot.node]
        return -node_index.free[number]

    spare: list[Slot] = []
    for slot in sorted(allocation.slots, key=free):
        if slot.gpus <= slack:
            spare.append(slot)
            slack -= slot.gpus
    return tuple(spare)


def _release(state: SchedulerState, allocation: Allocation, spare: Slots) -> None:
    """Count part of what a job holds as free."""
    state.scratch.release(spare, GPUS_ALONE)
    state.scratch.count(allocation.team, state.amounts(spare, type_of(state, allocation)), -1)


def _restore(state: SchedulerState, allocation: Allocation, spare: Slots) -> None:
    """Count a released part as held again."""
    state.scratch.allocate(spare, GPUS_ALONE)
    state.scratch.count(allocation.team, state.amounts(spare, type_of(state, allocation)), 1)


def _remaining(allocation: Allocation, spare: Slots) -> Slots:
    removed: dict[str, int] = {}
    for slot in spare:
        removed[slot.node] = removed.get(slot.node, 0) + slot.gpus
    left = [Slot(slot.node, slot.gpus - removed.get(slot.node, 0)) for slot in allocation.slots]
    return tuple(slot for slot in left if slot.gpus)
