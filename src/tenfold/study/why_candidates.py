"""Changes that might let a waiting job start; each is tried before anybody hears of it."""

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec.structs import replace

from tenfold.decide.place.govern.lines import Class
from tenfold.decide.place.govern.tree import UNLIMITED, Team, is_off_peak
from tenfold.decide.place.govern.why import Blocked
from tenfold.decide.place.govern.why_quota import missing, open_types
from tenfold.decide.place.govern.why_room import fits
from tenfold.decide.place.govern.why_settled import Settled
from tenfold.model.ids import JobId
from tenfold.model.job import Job
from tenfold.model.units import Millis
from tenfold.study.why_changes import (
    AskFor,
    Change,
    Grant,
    Raise,
    RentNodes,
    Several,
    Step,
    sized,
)
from tenfold.study.why_search import moving, stopping
from tenfold.study.why_shrink import shrinking

Kind = Literal[
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
Candidate = tuple[Kind, Change]
HOLES = 4
"""Promises before which a place is sought."""
TYPES = 4
RENTED = (1, 2, 8)
"""Times the nodes that are missing: others may take those that come first."""


def candidates(settled: Settled, job: Job, cls: Class, blocked: Blocked) -> Iterator[Candidate]:
    """Yield changes that are worth trying, kind by kind."""
    yield from _holes(settled, job)
    found = shrinking(settled, cls)
    if found is not None:
        yield "shrink", found
    yield from _requests(settled, job, cls)
    yield from _grants(settled, job, cls)
    if blocked.room is not None or blocked.promise is not None:
        yield from _rents(settled, job, [name for name, _ in cls.options])
        moves = moving(settled, job, cls)
        if moves is not None:
            yield "defragment", moves
    stops = stopping(settled, job, cls)
    if stops is not None:
        yield "preempt", stops
    terms = _terms(settled, job)
    if terms is not None:
        yield "terms", terms
    yield from _sizes(settled, job)


def _holes(settled: Settled, job: Job) -> Iterator[Candidate]:
    """Yield limits that would let a job end before nodes are needed that are kept."""
    promised = settled.books.promised.values()
    starts = {each.promise.start_ms for each in promised if each.job.id != job.id}
    for start_ms in sorted(starts, reverse=True)[:HOLES]:
        span_ms = Millis(start_ms - settled.now_ms)
        if span_ms > 0 and (job.limit_ms is None or span_ms < job.limit_ms):
            yield "hole", AskFor(limit_ms=span_ms)


def _requests(settled: Settled, job: Job, cls: Class) -> Iterator[Candidate]:
    """Yield other places, types, priorities and tags to ask for."""
    where, shape, books = job.shape.where, job.shape, settled.books
    if where is not None and where.within and where.how != "preferred":
        yield "place", AskFor(how="preferred")
    if shape.accelerators:
        known = dict.fromkeys(kind[1] for kind in books.capacity.banks if kind[1])
        others = [name for name in known if name not in shape.accelerators]
        for name in others[:TYPES]:
            yield "type", AskFor(accelerators=(name,))
    ahead = [each.priority for each in books.lines if each.team is cls.team]
    if (most := max(ahead, default=job.priority)) > job.priority or len(cls.line) > 1:
        yield "priority", AskFor(priority=most + 1)
    own = books.holdings
    if own.has_below(cls.team, job.priority + 1) and not own.has_below(cls.team, job.priority):
        yield "priority", AskFor(priority=job.priority + 1)
    if where is not None and (where.needs or where.avoids):
        yield "tags", AskFor(needs=(), avoids=())


def _grants(settled: Settled, job: Job, cls: Class) -> Iterator[Candidate]:
    """Yield quotas and limits that would let a job in, type by type."""
    named = settled.books.tree.named
    if job.team not in named:
        return
    for option in range(len(cls.options)):
        limits = _limits_raised(settled, cls, option)
        if limits:
            yield "quota", Grant(tuple(limits))
        quota = _quota_raised(settled, cls, option)
        if quota:
            yield "quota", Grant(tuple(quota))
        if limits and quota:
            yield "quota", Grant((*limits, *quota))


def _limits_raised(settled: Settled, cls: Class, option: int) -> list[Raise]:
    """Return how far limits must move before no limit is in the way."""
    tree = settled.books.tree
    amounts = cls.options[option].amounts
    moved: list[tuple[Team, int, int]] = []
    raises: list[Raise] = []
    while (met := tree.obstacle(cls.team, amounts)) is not None:
        lacks = missing(settled.books, met)
        node, number = lacks.team, lacks.number
        name = tree.resources.names[number]
        if node.parent is None:
            raises += _lent(tree.root, number, name, lacks.by)
        elif node.borrow[number] < UNLIMITED and node.id in tree.named:
            raises.append(Raise(node.id, "borrow", name, lacks.by))
        node.borrow[number] += lacks.by
        moved.append((node, number, lacks.by))
    for node, number, by in moved:
        node.borrow[number] -= by
    return raises


def _lent(root: Team, number: int, name: str, by: int) -> list[Raise]:
    """Return who could lend what they keep and do not use."""
    found: list[Raise] = []
    left = list(root.children)
    for team in left:
        idle = min(by, team.guaranteed[number] - team.usage[number])
        if idle > 0:
            found.append(Raise(team.id, "lend", name, idle))
            by -= idle
        left += team.children
    return found if by <= 0 else []


def _quota_raised(settled: Settled, cls: Class, option: int) -> list[Raise]:
    """Return the quota with which a job, and all that its team holds, would be at home."""
    tree, team = settled.books.tree, cls.team
    return [
        Raise(team.id, "quota", tree.resources.names[number], short)
        for number, amount in cls.options[option].amounts
        if tree.resources.governed[number]
        and (short := team.held[number] + amount - team.effective[number]) > 0
    ]


def _rents(settled: Settled, job: Job, types: Iterable[str]) -> Iterator[Candidate]:
    """Yield nodes to rent: those that are missing, and more where others would take them."""
    capacity, where = settled.books.capacity, job.shape.where
    for name in types:
        for seat in capacity.seats_in(job.shape, name):
            members = seat.members + (seat.rest > 0)
            together = where is not None and where.within and where.how != "preferred"
            there = 0 if together else seat.bank.with_room(max(1, seat.gpus))
            least = max(1, members - there)
            for times in RENTED:
                yield "burst", RentNodes(seat.bank.names[0], least * times)
            break


def _terms(settled: Settled, job: Job) -> AskFor | None:
    """Return the terms to give up that hold a job back, or make it impossible."""
    terms = job.terms
    if terms is None:
        return None
    after = tuple(each for each in terms.after if not _is_waited_for(settled, each))
    wanted = AskFor()
    if after != terms.after:
        wanted = replace(wanted, after=after)
    if terms.off_peak and not is_off_peak(settled.govern, settled.now_ms):
        wanted = replace(wanted, off_peak=False)
    if terms.array_most:
        let_in = _let_in(settled, terms.array)
        if let_in >= terms.array_most:
            wanted = replace(wanted, array_most=let_in + 1)
    return None if wanted == AskFor() else wanted


def _let_in(settled: Settled, array: str) -> int:
    """Return how many members of an array hold room, or may as soon as there is some."""
    held = [each.job for each in settled.books.holdings.held.values()]
    waiting = settled.view.pending.values()
    held += [each for each in waiting if each.id not in settled.held_back]
    return sum(1 for each in held if each.terms is not None and each.terms.array == array)


def _is_waited_for(settled: Settled, job_id: JobId) -> bool:
    """Return whether a job is not over, or did not complete, so that what comes after waits."""
    view = settled.view
    if view.fates.get(job_id, "completed") != "completed":
        return True
    return job_id in view.pending or job_id in view.orders or job_id in view.running


def several(settled: Settled, job: Job, cls: Class) -> Iterator[Candidate]:
    """Yield changes that help only together, for jobs that more than one thing holds up."""
    steps: list[Step] = []
    terms = _terms(settled, job)
    if terms is not None:
        steps.append(terms)
    for _, grant in _grants(settled, job, cls):
        assert isinstance(grant, Grant), "grants are what was asked for"
        steps.append(grant)
        if len(steps) > 1:
            yield "several", Several(tuple(steps))
        break
    for _, rent in _rents(settled, job, [name for name, _ in cls.options]) if steps else ():
        assert isinstance(rent, RentNodes), "nodes are what was asked for"
        yield "several", Several((*steps, rent))


def _sizes(settled: Settled, job: Job) -> Iterator[Candidate]:
    """Yield a smaller size that finds room and passes quotas, the largest that halving finds."""
    shape = job.shape
    each = shape.gpus_per_node or 1
    step = each if shape.gpus > each else 1
    fewest, most = 0, max(0, shape.gpus - 1) // step
    while fewest < most:
        middle = (fewest + most + 1) // 2
        if _has_room(settled, job, middle * step):
            fewest = middle
        else:
            most = middle - 1
    if fewest:
        yield "size", AskFor(gpus=fewest * step)


def _has_room(settled: Settled, job: Job, gpus: int) -> bool:
    """Return whether a job of this size would find room within its limits."""
    books, smaller = settled.books, sized(job.shape, gpus)
    if not books.capacity.seats(smaller):
        return False
    types = open_types(books, books.class_of(replace(job, shape=smaller)))
    return bool(types) and fits(books, smaller, types)
