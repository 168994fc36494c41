"""Hold a job that can wait until the hours in which its energy is cleanest or cheapest.

Only a deadline says that a job can wait, and only a limit (or an estimate) says for how
long. How full the fleet will be is not known here; the slack before the deadline is what
pays for a queue.
"""

from math import ceil

from tenfold.model.facts.intensity import HourlyCurve
from tenfold.model.job.job import Job
from tenfold.model.units import HOUR, Millis

SLACK_DEFAULT = 1.5
"""An assumption: from the release to the deadline, this many times what the job may run."""


def release_at(
    job: Job,
    now_ms: Millis,
    curve: HourlyCurve,
    lasts_ms: Millis | None = None,
    *,
    slack: float = SLACK_DEFAULT,
) -> Millis:
    """Return when to let a job in, `now_ms` or later: the earliest of the best moments.

    A job without a limit is taken to last `lasts_ms`; without either, or without a deadline,
    it is not held.
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
    """Return every moment that can be best.

    Between two of them the mean over the run changes evenly, since neither its start nor its
    end crosses an hour: the best lies at an end.
    """
    starts = range(-(-first // HOUR) * HOUR, last + 1, HOUR)
    ends = range(-(-(first + lasts) // HOUR) * HOUR, last + lasts + 1, HOUR)
    return [first, last, *starts, *(end - lasts for end in ends)]
