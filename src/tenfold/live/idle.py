"""Who idles, as facts: what was measured meets what the fleet believes.

A measurement is told by whoever took it, and may come late: its attempt may be over, told to
stop, or another one by now. Then it says nothing. What is told twice is a fact once.
"""

from collections.abc import Sequence

from tenfold.fleet.view import FleetView
from tenfold.live.attempts import Attempts
from tenfold.live.inbox import Observe
from tenfold.model.events import Event, JobBusy, JobIdled
from tenfold.model.ids import JobId
from tenfold.model.reason import Reason
from tenfold.model.units import Millis

NOT_MEASURED = Reason("not-measured")


def turns(
    request: Observe, view: FleetView, attempts: Attempts, now_ms: Millis, facts: Sequence[Event]
) -> list[Event]:
    """Return the facts that follow, beside those of this moment that are not applied yet."""
    told = {fact.job_id for fact in facts if isinstance(fact, JobIdled | JobBusy)}
    made: list[Event] = []
    if request.is_anew:
        found = [job_id for job_id in view.idle if _is_used(job_id, view, attempts, told)]
        made += [JobBusy(now_ms, job_id, NOT_MEASURED) for job_id in found]
        told |= view.idle.keys()
    for one in request.seen:
        if not _is_used(one.job_id, view, attempts, told, one.attempt):
            continue
        idles = one.job_id in view.idle
        if one.idle_since_ms is None and idles:
            made.append(JobBusy(now_ms, one.job_id))
        elif one.idle_since_ms is not None and not idles:
            since_ms = max(view.running[one.job_id].started_ms, one.idle_since_ms)
            made.append(JobIdled(now_ms, one.job_id, min(now_ms, since_ms)))
        told.add(one.job_id)
    return made


def _is_used(
    job_id: JobId,
    view: FleetView,
    attempts: Attempts,
    told: set[JobId],
    attempt: int | None = None,
) -> bool:
    """Tell whether a job runs by this attempt, is to go on, and was not told of just now."""
    live = attempts.get(job_id)
    if live is None or live.why is not None or live.started_ms is None or job_id in told:
        return False
    run = view.running.get(job_id)
    return run is not None and not run.stopping and attempt in (None, live.attempt)
