"""Hold a deferrable job until the hours in which its energy is cleanest or cheapest.

Only a deadline makes a job deferrable, and only a limit (or an estimate) says for how long. How
full the fleet will be is unknown here; the slack before the deadline covers time in the queue.
"""

from math import ceil

from tenfold.model.facts.intensity import HourlyCurve
from tenfold.model.job.job import Job
from tenfold.model.units import HOUR, Millis

SLACK_DEFAULT = 1.5
"""An assumption: the time from release to deadline, as a multiple of the job's run time."""


def release_at(
    job: Job,
    now_ms: Millis,
    curve: HourlyCurve,
    lasts_ms: Millis | None = None,
    *,
    slack: float = SLACK_DEFAULT,
) -> Millis:
    """Return when to release a job, `now_ms` or later: the earliest of the best times.

    A job without a limit is assumed to last `lasts_ms`; without either, or without a deadline, it
    is not held.
    """
    lasts = lasts_ms if job.limit_ms is None else job.limit_ms
    if job.deadline_ms is None or not lasts:
        return now_ms
    latest = min(job.deadline_ms - ceil(slack * lasts), now_ms + curve.period_ms)
    if latest <= now_ms:
        return now_ms
    moments = _moments(now_ms, latest, lasts)
    return Millis(min(moments, key=lambda at: (curve.area(at, at + lasts), at)))


def _moments(first: int, last: int, lasts: int) -> list[int]:
    """Return every time that can be best.

    Between two of them the mean over the run changes linearly, since neither its start nor its end
    crosses an hour: the best is at an end.
    """
    starts = range(-(-first // HOUR) * HOUR, last + 1, HOUR)
    ends = range(-(-(first + lasts) // HOUR) * HOUR, last + lasts + 1, HOUR)
    return [first, last, *starts, *(end - lasts for end in ends)]
