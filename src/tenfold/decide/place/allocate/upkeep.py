"""Work of every cycle: end idle interactive jobs and clear open maintenance windows."""

from msgspec import UNSET

from tenfold.decide.place.allocate.session import Session
from tenfold.decide.place.quota.allocations import PLAIN, Allocation
from tenfold.decide.place.state.scheduler_state import SchedulerState
from tenfold.model.job.job import Job
from tenfold.model.reason import NodeRef, Reason
from tenfold.model.units import Millis


def end_idle(session: Session) -> None:
    """End interactive jobs that have been idle too long; other idle jobs are only recorded."""
    for job_id, since_ms in session.view.idle.items():
        allocation = session.state.allocations.held.get(job_id)
        if allocation is None or allocation.stopping:
            continue
        idle_ms = _idle_ms_most(allocation.job, session.state.govern.idle_ms)
        if idle_ms is None:
            continue
        if session.now_ms >= since_ms + idle_ms:
            session.order_stop(allocation, "idle", Reason("idle", {"idle_ms": idle_ms}))
        else:
            session.wakes.append(since_ms + idle_ms)


def _idle_ms_most(job: Job, allowed_ms: Millis | None) -> Millis | None:
    """Return how long a job may be idle: the policy's limit, or its own if that is shorter."""
    terms = job.terms or PLAIN
    if terms.kind != "interactive":
        return None
    if terms.idle_ms is UNSET:
        return allowed_ms
    return terms.idle_ms if allowed_ms is None else min(terms.idle_ms, allowed_ms)


def clear_windows(session: Session) -> None:
    """Stop preemptible jobs on nodes where a window for others has opened."""
    state = session.state
    for node_id in state.windows.open:
        for allocation in list(state.allocations.on(node_id)):
            if state.windows.bars(node_id, allocation.job) and _may_stop(session, allocation):
                why = Reason("window-open", {"node": NodeRef(node_id)})
                session.order_stop(allocation, "preempted", why)


def never_between(state: SchedulerState, job: Job) -> Reason | None:
    """Return the reason if no gap between windows is long enough for a job."""
    closed = state.windows.never_for(job) if state.govern.windows else ()
    if not closed or state.capacity.could_hold(job.shape, closed):
        return None
    assert job.limit_ms is not None
    return Reason("never-between-windows", {"limit_ms": job.limit_ms, "closed": len(closed)})


def _may_stop(session: Session, allocation: Allocation) -> bool:
    run = session.view.running.get(allocation.job.id)
    return (
        (allocation.job.terms or PLAIN).preemptible
        and not allocation.stopping
        and run is not None
        and run.becoming is None
    )
