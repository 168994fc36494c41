"""What is done whoever waits: idle sessions end, windows are cleared, claims keep off them."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import UNSET

from tenfold.decide.place.govern.holdings import PLAIN, Holding
from tenfold.decide.place.govern.lines import Option
from tenfold.fleet.capacity import Slots
from tenfold.model.actions import StopJob
from tenfold.model.job import Job, Shape
from tenfold.model.reason import Reason
from tenfold.model.units import MINUTE, Millis

if TYPE_CHECKING:
    from tenfold.decide.place.govern.books import Books
    from tenfold.decide.place.govern.walk import Walk


def end_idle(walk: "Walk") -> None:
    """End interactive sessions that have idled for too long; other jobs are only told of."""
    for job_id, since_ms in walk.view.idle.items():
        holding = walk.books.holdings.held.get(job_id)
        if holding is None or holding.stopping:
            continue
        idle_ms = _idle_ms_most(holding.job, walk.books.govern.idle_ms)
        if idle_ms is None:
            continue
        if walk.now_ms >= since_ms + idle_ms:
            walk.books.holdings.stop(holding)
            why = f"it has had nothing to do for {idle_ms / MINUTE:g} minutes"
            walk.actions.append(StopJob(job_id, "idle", Reason("idle", why)))
            walk.stops += 1
        else:
            walk.wakes.append(since_ms + idle_ms)


def _idle_ms_most(job: Job, allowed_ms: Millis | None) -> Millis | None:
    """Return how long a session may idle: what is allowed, or less where it says so itself."""
    terms = job.terms or PLAIN
    if terms.kind != "interactive":
        return None
    if terms.idle_ms is UNSET:
        return allowed_ms
    return terms.idle_ms if allowed_ms is None else min(terms.idle_ms, allowed_ms)


def clear_windows(walk: "Walk") -> None:
    """Stop what runs where a window has opened for others, if it may be stopped."""
    books = walk.books
    for node_id in books.windows.open:
        for holding in list(books.holdings.on(node_id)):
            if books.windows.bars(node_id, holding.job) and _may_stop(walk, holding):
                why = Reason("window-open", f"node `{node_id}` is kept for a window")
                books.holdings.stop(holding)
                walk.actions.append(StopJob(holding.job.id, "preempted", why))
                walk.stops += 1


def never_between(books: "Books", job: Job) -> Reason | None:
    """Return why windows never leave a job the time that it asks for, if they do not."""
    closed = books.windows.never_for(job) if books.govern.windows else ()
    if not closed or books.capacity.could_hold(job.shape, closed):
        return None
    assert job.limit_ms is not None
    return Reason(
        "never-between-windows",
        f"it may not be stopped and runs up to {job.limit_ms / MINUTE:g} minutes: "
        f"on {len(closed)} nodes windows leave less, and the others cannot hold it",
    )


def _may_stop(walk: "Walk", holding: Holding) -> bool:
    run = walk.view.running.get(holding.job.id)
    return (
        (holding.job.terms or PLAIN).preemptible
        and not holding.stopping
        and run is not None
        and run.becoming is None
    )


def claim(walk: "Walk", shape: Shape, job: Job, option: Option) -> Slots | None:
    """Take room for a shape on nodes that no window keeps from the job."""
    books, capacity = walk.books, walk.books.capacity
    if not books.govern.windows:
        return capacity.claim_in(shape, option.accelerator)
    with open_to(walk, job):
        slots = capacity.claim_in(shape, option.accelerator)
        if slots is not None and books.windows.clashes(slots, job, walk.now_ms):
            capacity.give(slots, shape)
            with kept_from(walk, job):
                slots = capacity.claim_in(shape, option.accelerator)
    return slots


@contextmanager
def open_to(walk: "Walk", job: Job) -> Generator[None]:
    """Offer the nodes of open windows that are for the team of a job."""
    capacity, states = walk.books.capacity, walk.view.states
    own = [
        node_id
        for node_id, team in walk.books.windows.open.items()
        if team and team == job.team and states[node_id] == "up"
    ]
    for node_id in own:
        capacity.set_open(node_id, True)
    yield
    for node_id in own:
        capacity.set_open(node_id, False)


@contextmanager
def kept_from(walk: "Walk", job: Job) -> Generator[None]:
    """Hide the nodes on which windows open before a job would be gone."""
    capacity = walk.books.capacity
    barred = walk.books.windows.coming_for(job, walk.now_ms)
    for node_id in barred:
        capacity.keep(node_id)
    yield
    for node_id in barred:
        capacity.unkeep(node_id)
