"""Changes that might let a waiting job start; each is tried before anybody hears of it.

They come in three parts: what nobody pays for, what costs GPU time, and what makes less of the
job. A part that cannot help, as for a job that its own terms hold back, is left out.
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
"""In this order where two cost the same."""
REDUCING: tuple[RemedyKind, ...] = ("terms", "tags", "size", "several")
"""What makes less of the job than was asked for."""
Candidate = tuple[RemedyKind, Change]
BACKFILL_TRIES = 4
"""Promises and windows before which a place is sought."""
TYPE_TRIES = 4
RENT_MULTIPLES = (1, 2, 8)
"""Times the nodes that are missing: others may take those that come first."""


def free_changes(settled: Settled, job: Job, job_class: JobClass) -> Iterator[Candidate]:
    """Yield changes that nobody pays for, kind by kind in order."""
    if job.id in settled.held_back:
        # Its own terms are asked before anything else.
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
    """Yield changes that cost GPU time, rented or lost to others."""
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
    """Yield changes that make less of the job than was asked for."""
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
    """Yield limits that would let a job end before its nodes are needed, the longest first."""
    reserved = settled.state.reserved.values()
    starts = [each.reservation.start_ms for each in reserved if each.job.id != job.id]
    starts += openings(settled, job)
    for start_ms in sorted(dict.fromkeys(starts), reverse=True)[:BACKFILL_TRIES]:
        span_ms = Millis(start_ms - settled.now_ms)
        if span_ms > 0 and (job.limit_ms is None or span_ms < job.limit_ms):
            yield "hole", RequestChange(limit_ms=span_ms)


def _requests(settled: Settled, job: Job) -> Iterator[Candidate]:
    """Yield other places and types to ask for."""
    where, shape, state = job.shape.where, job.shape, settled.state
    if where is not None and where.within and where.how != "preferred":
        yield "place", RequestChange(how="preferred")
    if shape.accelerators:
        known = dict.fromkeys(kind[1] for kind in state.capacity.node_indexes if kind[1])
        others = [name for name in known if name not in shape.accelerators]
        for name in others[:TYPE_TRIES]:
            yield "type", RequestChange(accelerators=(name,))


def _priorities(settled: Settled, job: Job, job_class: JobClass) -> Iterator[Candidate]:
    """Yield priorities with which a job would go before its team, or displace some of it."""
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
    """Yield nodes to rent: those that are missing, and more where others would take them."""
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
    """Return the terms to give up that hold a job back, or make it impossible."""
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
    """Return how many members of an array hold room, or may as soon as there is some."""
    held = [each.job for each in settled.state.allocations.held.values()]
    waiting = settled.view.pending.values()
    held += [each for each in waiting if each.id not in settled.held_back]
    return sum(1 for each in held if each.terms is not None and each.terms.array == array)


def _blocks_dependents(settled: Settled, job_id: JobId) -> bool:
    """Return whether a job is not over, or did not complete, so that what comes after waits."""
    view = settled.view
    if view.fates.get(job_id, "completed") != "completed":
        return True
    return job_id in view.pending or job_id in view.orders or job_id in view.running


def combined_changes(settled: Settled, job: Job, job_class: JobClass) -> Iterator[Candidate]:
    """Yield changes that help only together, for jobs that more than one thing holds up."""
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
        assert isinstance(rent, RentNodes), "nodes are what was asked for"
        yield "several", CombinedChange((*steps, rent))


def _sizes(settled: Settled, job: Job) -> Iterator[Candidate]:
    """Yield a smaller size that finds room and passes quotas, the largest that halving finds."""
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
    """Return whether a job of this size would find room within its limits."""
    state, smaller = settled.state, sized(job.shape, gpus)
    if not state.capacity.splits(smaller):
        return False
    types = open_types(state, state.class_of(replace(job, shape=smaller)))
    return bool(types) and fits(state.capacity, smaller, types)
