"""Adoption: after a restart, take over the attempts of the control plane before.

The journal says which jobs have an attempt, and the executor what became of it since.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from msgspec import UNSET

from tenfold.live.attempts.active import ActiveAttempt
from tenfold.live.attempts.attempts import Attempts
from tenfold.live.executor import AttemptEnded, AttemptLost, AttemptStarted, AttemptState
from tenfold.model.events import Event
from tenfold.model.ids import JobId
from tenfold.model.reason import Reason
from tenfold.model.units import Millis

Known = Mapping[JobId, Mapping[int, AttemptState]]
"""What the executor knows: the attempts of each job, by number."""
Guard = Callable[[JobId, Callable[[], list[Event]], bool], Sequence[Event]]
"""Handles one job, which may fail: its work, and whether none of its processes is left."""


def _unguarded(job_id: JobId, work: Callable[[], list[Event]], is_over: bool) -> Sequence[Event]:
    return work()


def adopt(
    attempts: Attempts,
    states: Iterable[AttemptState],
    now_ms: Millis,
    guard: Guard = _unguarded,
) -> list[Event]:
    """Take over the attempts of an earlier control plane; return the events since then.

    Orders that the executor does not know are sent again: they are in the journal. Held devices
    are registered first, so they are not assigned again.
    """
    view = attempts.view
    known: dict[JobId, dict[int, AttemptState]] = {}
    for state in states:
        known.setdefault(state.job_id, {})[state.attempt] = state
    ours: dict[JobId, AttemptState | None] = {}
    events: list[Event] = []

    def register(job_id: JobId) -> list[Event]:
        find = _ordered if job_id in view.orders else _running
        active, state = find(attempts, job_id, known)
        ours[job_id] = state
        attempts.add(active, state)
        return []

    for job_id in (*view.orders, *view.running):
        over = all(state.end is not None for state in known.get(job_id, {}).values())
        events += guard(job_id, partial(register, job_id), over)
    for job_id, state in ours.items():
        active = attempts.get(job_id)
        if active is not None and active.quarantine is None:
            work = partial(_adopt_one, attempts, active, state, now_ms)
            events += guard(job_id, work, state is None or state.end is not None)
    attempts.finish({(job_id, number) for job_id, found in known.items() for number in found})
    return events


def _ordered(
    attempts: Attempts, job_id: JobId, known: Known
) -> tuple[ActiveAttempt, AttemptState | None]:
    order, attempt = attempts.view.orders[job_id], attempts.registry.attempt(job_id)
    active = ActiveAttempt(order.job, order.slots, attempt)
    _resume_cancel(attempts, active)
    return active, known.get(job_id, {}).get(attempt)


def _running(
    attempts: Attempts, job_id: JobId, known: Known
) -> tuple[ActiveAttempt, AttemptState | None]:
    """Return the newest attempt of a running job; a resize may be half done."""
    run, last = attempts.view.running[job_id], attempts.registry.attempt(job_id)
    found = known.get(job_id, {})
    newest = max((number for number in found if number <= last), default=last)
    active = ActiveAttempt(run.job, run.slots, newest, run.started_ms)
    if run.becoming is not None and newest == last:
        active.slots, active.started_ms, active.is_resize = run.becoming, None, True
    elif run.becoming is not None:
        active.next_slots, active.next_attempt, active.stop_reason = (
            run.becoming,
            last,
            "resize",
        )
    elif run.stopping:
        active.stop_reason = "preempted" if run.reclaimed is UNSET else "idle"
    _resume_cancel(attempts, active)
    return active, found.get(newest)


def _resume_cancel(attempts: Attempts, active: ActiveAttempt) -> None:
    """Continue a cancellation that an earlier control plane accepted."""
    by = attempts.view.cancel_requests.get(active.job.id)
    if by is not None:
        active.by, active.stop_reason = by, "cancelled"


def _adopt_one(
    attempts: Attempts, active: ActiveAttempt, state: AttemptState | None, now_ms: Millis
) -> list[Event]:
    job_id = active.job.id
    if state is None:
        if active.started_ms is None and active.stop_reason == "cancelled":
            return attempts.cancelled_start(active, now_ms)
        if active.started_ms is None:
            attempts.launch(active)
            return []
        reason = Reason("attempt-unknown")
        return attempts.lost(AttemptLost(now_ms, job_id, active.attempt, reason), now_ms)
    if state.end is not None and attempts.must_wait(state.end):
        attempts.waiting.append(state.end)
        return []
    if isinstance(state.end, AttemptEnded):
        return attempts.ended(state.end, now_ms)
    if isinstance(state.end, AttemptLost):
        return attempts.lost(state.end, now_ms)
    if active.stop_reason is not None:
        # The order is in the journal, but it may not have been sent.
        attempts.stop(active, active.stop_reason)
    if state.started_ms is not None:
        return attempts.started(AttemptStarted(state.started_ms, job_id, active.attempt), now_ms)
    return []
