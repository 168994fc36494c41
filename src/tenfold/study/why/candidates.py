"""Candidate changes that might let a pending job start; each is tested before it is shown.

There are three groups: changes without cost, changes that cost GPU time, and changes that reduce
the request. A group that cannot help, as for a job blocked by its own terms, is left out.
"""

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec.structs import replace

from tenfold.decide.place.explain.quota import open_types
from tenfold.decide.place.explain.settled import Settled
from tenfold.decide.place.explain.why import Blocked
from tenfold.decide.place.explain.windows import openings
from tenfold.decide.place.queue.pending_queues import JobClass
from tenfold.decide.place.quota.team_tree import is_off_peak
from tenfold.fleet.obstacle import fits
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.units import Millis
from tenfold.study.why.changes import Change, CombinedChange, RentNodes, RequestChange, Step, sized
from tenfold.study.why.limit_raises import limit_raises
from tenfold.study.why.search import find_moves, find_stops
from tenfold.study.why.shrink import find_shrinks

RemedyKind = Literal[
    "free",
    "hole",
    "shrink",
    "place",
    "type",
    "priority",
    "quota",
    "burst",
    "defragment",
    "preempt",
    "terms",
    "tags",
    "size",
    "several",
]
"""In order of preference at equal cost."""
REDUCING: tuple[RemedyKind, ...] = ("terms", "tags", "size", "several")
"""Kinds that reduce the request."""
Candidate = tuple[RemedyKind, Change]
BACKFILL_TRIES = 4
"""Reserved starts and windows to try to fit before."""
TYPE_TRIES = 4
RENT_MULTIPLES = (1, 2, 8)
"""Multiples of the missing nodes to try: other jobs may take the first ones."""


def free_changes(settled: Settled, job: Job, job_class: JobClass) -> Iterator[Candidate]:
    """Yield changes without cost, kind by kind in order."""
    if job.id in settled.held_back:
        # Its own terms are checked before anything else.
        return
    can_be_held = not settled.is_refused(job)
    if can_be_held:
        yield from _backfill_limits(settled, job)
        found = find_shrinks(settled, job_class)
        if found is not None:
            yield "shrink", found
    yield from _requests(settled, job)
    if can_be_held:
        yield from _priorities(settled, job, job_class)
    for raises in limit_raises(settled, job, job_class):
        yield "quota", raises


def costly_changes(
    settled: Settled, job: Job, job_class: JobClass, blocked: Blocked
) -> Iterator[Candidate]:
    """Yield changes that cost GPU time, rented or lost by other jobs."""
    if job.id in settled.held_back:
        return
    is_queued = not settled.is_refused(job)
    if blocked.room is not None or blocked.promise is not None:
        yield from _rents(settled, job, [name for name, _ in job_class.options])
        moves = find_moves(settled, job, job_class) if is_queued else None
        if moves is not None:
            yield "defragment", moves
    stops = find_stops(settled, job, job_class) if is_queued else None
    if stops is not None:
        yield "preempt", stops


def reduced_requests(settled: Settled, job: Job) -> Iterator[Candidate]:
    """Yield changes that reduce the request."""
    terms = _terms(settled, job)
    if terms is not None:
        yield "terms", terms
    if job.id in settled.held_back:
        return
    where = job.shape.where
    if where is not None and (where.needs or where.avoids):
        yield "tags", RequestChange(needs=(), avoids=())
    yield from _sizes(settled, job)


def _backfill_limits(settled: Settled, job: Job) -> Iterator[Candidate]:
    """Yield time limits with which a job would end before its nodes are needed, longest first."""
    reserved = settled.state.reserved.values()
    starts = [each.reservation.start_ms for each in reserved if each.job.id != job.id]
    starts += openings(settled, job)
    for start_ms in sorted(dict.fromkeys(starts), reverse=True)[:BACKFILL_TRIES]:
        span_ms = Millis(start_ms - settled.now_ms)
        if span_ms > 0 and (job.limit_ms is None or span_ms < job.limit_ms):
            yield "hole", RequestChange(limit_ms=span_ms)


def _requests(settled: Settled, job: Job) -> Iterator[Candidate]:
    """Yield looser placement and other accelerator types to request."""
    where, shape, state = job.shape.where, job.shape, settled.state
    if where is not None and where.within and where.how != "preferred":
        yield "place", RequestChange(how="preferred")
    if shape.accelerators:
        known = dict.fromkeys(kind[1] for kind in state.capacity.node_indexes if kind[1])
        others = [name for name in known if name not in shape.accelerators]
        for name in others[:TYPE_TRIES]:
            yield "type", RequestChange(accelerators=(name,))


def _priorities(settled: Settled, job: Job, job_class: JobClass) -> Iterator[Candidate]:
    """Yield priorities with which a job would pass or preempt jobs of its own team."""
    state = settled.state
    ahead = [each.priority for each in state.queues if each.team is job_class.team]
    if (most := max(ahead, default=job.priority)) > job.priority or len(job_class.queue) > 1:
        yield "priority", RequestChange(priority=most + 1)
    own = state.allocations
    if own.has_lower_priority(job_class.team, job.priority + 1) and not own.has_lower_priority(
        job_class.team, job.priority
    ):
        yield "priority", RequestChange(priority=job.priority + 1)


def _rents(settled: Settled, job: Job, types: Iterable[str]) -> Iterator[Candidate]:
    """Yield nodes to rent: the missing ones, and more in case other jobs take them."""
    capacity, where = settled.state.capacity, job.shape.where
    for name in types:
        for split in capacity.splits_in(job.shape, name):
            members = split.members + (split.rest > 0)
            together = where is not None and where.within and where.how != "preferred"
            there = 0 if together else split.node_index.count_with_free(max(1, split.gpus))
            least = max(1, members - there)
            for times in RENT_MULTIPLES:
                yield "burst", RentNodes(split.node_index.names[0], least * times)
            break


def _terms(settled: Settled, job: Job) -> RequestChange | None:
    """Return the terms to drop that block a job or make it impossible."""
    terms = job.terms
    if terms is None:
        return None
    after = tuple(each for each in terms.after if not _blocks_dependents(settled, each))
    change = RequestChange()
    if after != terms.after:
        change = replace(change, after=after)
    if terms.off_peak and not is_off_peak(settled.govern, settled.now_ms):
        change = replace(change, off_peak=False)
    if terms.array_most:
        admitted = _admitted_members(settled, terms.array)
        if admitted >= terms.array_most:
            change = replace(change, array_most=admitted + 1)
    return None if change == RequestChange() else change


def _admitted_members(settled: Settled, array: str) -> int:
    """Return how many members of an array run, or may start as soon as they fit."""
    held = [each.job for each in settled.state.allocations.held.values()]
    waiting = settled.view.pending.values()
    held += [each for each in waiting if each.id not in settled.held_back]
    return sum(1 for each in held if each.terms is not None and each.terms.array == array)


def _blocks_dependents(settled: Settled, job_id: JobId) -> bool:
    """Return whether a job has not completed, so that its dependents wait."""
    view = settled.view
    if view.end_statuses.get(job_id, "completed") != "completed":
        return True
    return job_id in view.pending or job_id in view.orders or job_id in view.running


def combined_changes(settled: Settled, job: Job, job_class: JobClass) -> Iterator[Candidate]:
    """Yield combinations of changes, for jobs blocked by more than one constraint."""
    steps: list[Step] = []
    terms = _terms(settled, job)
    if terms is not None:
        steps.append(terms)
    for raises in limit_raises(settled, job, job_class):
        steps.append(raises)
        if len(steps) > 1:
            yield "several", CombinedChange(tuple(steps))
        break
    for _, rent in _rents(settled, job, [name for name, _ in job_class.options]) if steps else ():
        assert isinstance(rent, RentNodes), "rents yields nodes"
        yield "several", CombinedChange((*steps, rent))


def _sizes(settled: Settled, job: Job) -> Iterator[Candidate]:
    """Yield the largest smaller size that fits and passes quotas, found by bisection."""
    shape = job.shape
    each = shape.gpus_per_node or 1
    step = each if shape.gpus > each else 1
    minimal, most = 0, max(0, shape.gpus - 1) // step
    while minimal < most:
        middle = (minimal + most + 1) // 2
        if _has_capacity(settled, job, middle * step):
            minimal = middle
        else:
            most = middle - 1
    if minimal:
        yield "size", RequestChange(gpus=minimal * step)


def _has_capacity(settled: Settled, job: Job, gpus: int) -> bool:
    """Return whether a job of this size would fit within its limits."""
    state, smaller = settled.state, sized(job.shape, gpus)
    if not state.capacity.splits(smaller):
        return False
    types = open_types(state, state.class_of(replace(job, shape=smaller)))
    return bool(types) and fits(state.capacity, smaller, types)
