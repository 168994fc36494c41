"""The part of a long history that runs go through, and how far they are followed.

A run at ten times the jobs of a busy fortnight takes minutes, and there are many runs. So where
a history holds more jobs than that, a stretch of it is run which is as usual as it can be: that
much work under way, and that many jobs. Jobs that came before and would still be running when
it begins are there, so that the fleet is not empty then.
"""

from collections.abc import Sequence

import numpy as np

from tenfold.model.growth.growth import Axis, grows_along
from tenfold.model.job.job import Job
from tenfold.model.units import DAY, HOUR, SECOND
from tenfold.sim.measure.meters import requested_milli
from tenfold.sim.measure.window import Window, window_of
from tenfold.study.grow.history import gpu_time, span_s
from tenfold.study.grow.state import State

JOBS_MOST = 80_000
"""Jobs of the largest run; with them an answer takes less than a minute on one core."""
LENGTH_LEAST_MS = 12 * HOUR
WAITS_LEAST = 4
"""A stretch is at least so many times as long as jobs may wait, or it could not tell."""
STEP_MS = 6 * HOUR
OVERLOADED = 2.5
"""Beyond so much more work than there are GPUs all that a run tells is that the line grows."""


def representative_window(jobs: Sequence[Job], most: float, wait_s: float) -> Window | None:
    """Return the stretch that runs go through; None where they go through all of a history."""
    whole = window_of(jobs)
    if len(jobs) * most <= JOBS_MOST:
        return None
    span = jobs[-1].submitted_ms - jobs[0].submitted_ms
    length = max(LENGTH_LEAST_MS, int(WAITS_LEAST * wait_s * SECOND))
    length = max(length, int(span * JOBS_MOST / (len(jobs) * most)))
    # Nights differ from days: a stretch of days is of whole ones.
    length = length // DAY * DAY if length >= DAY else length
    if length >= whole.length_ms:
        return None
    return _usual(jobs, whole, length)


def _usual(jobs: Sequence[Job], whole: Window, length: int) -> Window:
    """Return the stretch whose work and number of jobs are nearest to those of the whole."""
    came = np.asarray([job.submitted_ms for job in jobs], dtype=np.float64)
    ends = came + np.asarray([job.duration_ms or 0 for job in jobs], dtype=np.float64)
    gpus = np.asarray([requested_milli(job) for job in jobs], dtype=np.float64)

    def held(since: float, until: float) -> tuple[float, float]:
        inside = np.clip(np.minimum(ends, until) - np.maximum(came, since), 0.0, None)
        many = np.count_nonzero((came >= since) & (came < until))
        return float((inside * gpus).sum()) / (until - since), many / (until - since)

    work, many = held(whole.from_ms, whole.until_ms)

    def odd(since: int) -> float:
        here = held(since, since + length)
        return abs(here[0] / work - 1 if work else 0.0) + abs(here[1] / many - 1 if many else 0.0)

    starts = range(whole.from_ms, whole.until_ms - length + 1, STEP_MS)
    best = min(starts, key=odd)
    return Window(best, best + length)


def overloaded_at(state: State, axis: Axis) -> float | None:
    """Return the factor at which the work is far beyond the GPUs; None where it never is so."""
    jobs = state.inputs.jobs
    if not jobs or not grows_along(axis, "jobs") or grows_along(axis, "nodes"):
        return None
    load = sum(gpu_time(jobs).values()) / span_s(jobs) / max(1, state.spec.gpus)
    return max(1.0, OVERLOADED / load) if load else None


def window_note(window: Window | None, jobs: Sequence[Job]) -> list[str]:
    """Return what a reader should know of runs that do not go through all of the history."""
    if window is None:
        return []
    inside = sum(1 for job in jobs if window.from_ms <= job.submitted_ms <= window.until_ms)
    return [
        f"runs go through {window.length_ms / DAY:.2g} days of the history, as usual as any, "
        f"{inside:,} of its {len(jobs):,} jobs: the largest factor would take minutes with all"
    ]
