"""What is done whatever waits: idle interactive jobs end, and open windows are cleared."""

from msgspec import UNSET

from tenfold.decide.place.allocate.session import Session
from tenfold.decide.place.quota.allocations import PLAIN, Holding
from tenfold.decide.place.state.scheduler_state import Books
from tenfold.model.job.job import Job
from tenfold.model.reason import NodeRef, Reason
from tenfold.model.units import Millis


def end_idle(session: Session) -> None:
    """End interactive jobs that have idled for too long; of others it is only recorded."""
    for job_id, since_ms in session.view.idle.items():
        holding = session.books.holdings.held.get(job_id)
        if holding is None or holding.stopping:
            continue
        idle_ms = _idle_ms_most(holding.job, session.books.govern.idle_ms)
        if idle_ms is None:
            continue
        if session.now_ms >= since_ms + idle_ms:
            session.order_stop(holding, "idle", Reason("idle", {"idle_ms": idle_ms}))
        else:
            session.wakes.append(since_ms + idle_ms)


def _idle_ms_most(job: Job, allowed_ms: Millis | None) -> Millis | None:
    """Return how long a job may idle: what is allowed, or less where it says so itself."""
    terms = job.terms or PLAIN
    if terms.kind != "interactive":
        return None
    if terms.idle_ms is UNSET:
        return allowed_ms
    return terms.idle_ms if allowed_ms is None else min(terms.idle_ms, allowed_ms)


def clear_windows(session: Session) -> None:
    """Stop what runs where a window has opened for others, if it may be stopped."""
    books = session.books
    for node_id in books.windows.open:
        for holding in list(books.holdings.on(node_id)):
            if books.windows.bars(node_id, holding.job) and _may_stop(session, holding):
                why = Reason("window-open", {"node": NodeRef(node_id)})
                session.order_stop(holding, "preempted", why)


def never_between(books: Books, job: Job) -> Reason | None:
    """Return why windows never leave a job the time that it asks for, if they do not."""
    closed = books.windows.never_for(job) if books.govern.windows else ()
    if not closed or books.capacity.could_hold(job.shape, closed):
        return None
    assert job.limit_ms is not None
    return Reason("never-between-windows", {"limit_ms": job.limit_ms, "closed": len(closed)})


def _may_stop(session: Session, holding: Holding) -> bool:
    run = session.view.running.get(holding.job.id)
    return (
        (holding.job.terms or PLAIN).preemptible
        and not holding.stopping
        and run is not None
        and run.becoming is None
    )
