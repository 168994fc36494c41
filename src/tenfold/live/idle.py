"""Turn activity reports into idle and busy events.

A report may be late: its attempt may have ended, be stopping, or have been replaced. It is then
ignored. A repeated report causes no second event.
"""

from collections.abc import Sequence

from tenfold.fleet.view import FleetView
from tenfold.live.attempts.attempts import Attempts
from tenfold.live.inbox import ReportActivity
from tenfold.model.events import Event, JobBusy, JobIdled
from tenfold.model.ids import JobId
from tenfold.model.reason import Reason
from tenfold.model.units import Millis

NOT_MEASURED = Reason("not-measured")


def idle_changes(
    request: ReportActivity,
    view: FleetView,
    attempts: Attempts,
    now_ms: Millis,
    events: Sequence[Event],
) -> list[Event]:
    """Return the events that follow from a report, given pending events."""
    reported = {event.job_id for event in events if isinstance(event, JobIdled | JobBusy)}
    made: list[Event] = []
    if request.is_first_report:
        found = [job_id for job_id in view.idle if _can_change(job_id, view, attempts, reported)]
        made += [JobBusy(now_ms, job_id, NOT_MEASURED) for job_id in found]
        reported |= view.idle.keys()
    for one in request.jobs:
        if not _can_change(one.job_id, view, attempts, reported, one.attempt):
            continue
        idles = one.job_id in view.idle
        if one.idle_since_ms is None and idles:
            made.append(JobBusy(now_ms, one.job_id))
        elif one.idle_since_ms is not None and not idles:
            since_ms = max(view.running[one.job_id].started_ms, one.idle_since_ms)
            made.append(JobIdled(now_ms, one.job_id, min(now_ms, since_ms)))
        reported.add(one.job_id)
    return made


def _can_change(
    job_id: JobId,
    view: FleetView,
    attempts: Attempts,
    reported: set[JobId],
    attempt: int | None = None,
) -> bool:
    """Return whether a job runs this attempt, is not stopping, and has no pending change."""
    active = attempts.get(job_id)
    if (
        active is None
        or active.stop_reason is not None
        or active.started_ms is None
        or job_id in reported
    ):
        return False
    run = view.running.get(job_id)
    return run is not None and not run.stopping and attempt in (None, active.attempt)
