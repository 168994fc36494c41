"""The part of a long history that is simulated, and up to which factor.

A run at ten times the jobs of two busy weeks takes minutes, and there are many runs. So of a longer
history only the most typical window is simulated, by running work and by number of jobs. Earlier
jobs that would still be running when it starts are included, so that the fleet is not empty.
"""

from collections.abc import Sequence

import numpy as np

from tenfold.model.growth.growth import Axis, grows_along
from tenfold.model.job.job import Job
from tenfold.model.policy.policy import Policy
from tenfold.model.units import DAY, HOUR, SECOND
from tenfold.sim.measure.meters import requested_milli
from tenfold.sim.measure.window import Window, window_of
from tenfold.study.grow.history import gpu_time, span_s
from tenfold.study.grow.state import State

JOBS_MOST = 80_000
"""Jobs of the largest run; it takes less than a minute on one core."""
SLURM_COST = 25.0
LENGTH_LEAST_MS = 12 * HOUR
WAITS_LEAST = 4
"""The window is at least this many times the wait limit, or waits could not be measured."""
STEP_MS = 6 * HOUR
OVERLOADED = 2.5
"""Beyond this load the queue just grows, and a run shows nothing more."""


def policy_cost(policy: Policy) -> float:
    """Return what a simulated job costs under a policy, relative to the others.

    Slurm's backfill plans up to a hundred waiting jobs in every pass: 0.3 ms a job where few wait,
    2 ms on a fleet with half as much work again as it can do; others take 0.02 to 0.06.
    """
    return SLURM_COST if policy.name == "slurm" or policy.slurm is not None else 1.0


def representative_window(jobs: Sequence[Job], most: float, wait_s: float) -> Window | None:
    """Return the window to simulate; None for all of the history.

    `most` is how many times the cost of the history the largest run may have.
    """
    whole = window_of(jobs)
    if len(jobs) * most <= JOBS_MOST:
        return None
    span = jobs[-1].submitted_ms - jobs[0].submitted_ms
    length = max(LENGTH_LEAST_MS, int(WAITS_LEAST * wait_s * SECOND))
    length = max(length, int(span * JOBS_MOST / (len(jobs) * most)))
    # Nights differ from days, so a window of days has whole days.
    length = length // DAY * DAY if length >= DAY else length
    if length >= whole.length_ms:
        return None
    return _most_typical(jobs, whole, length)


def _most_typical(jobs: Sequence[Job], whole: Window, length: int) -> Window:
    """Return the window whose work and number of jobs are closest to those of the whole."""
    came = np.asarray([job.submitted_ms for job in jobs], dtype=np.float64)
    ends = came + np.asarray([job.duration_ms or 0 for job in jobs], dtype=np.float64)
    gpus = np.asarray([requested_milli(job) for job in jobs], dtype=np.float64)

    def held(since: float, until: float) -> tuple[float, float]:
        inside = np.clip(np.minimum(ends, until) - np.maximum(came, since), 0.0, None)
        many = np.count_nonzero((came >= since) & (came < until))
        return float((inside * gpus).sum()) / (until - since), many / (until - since)

    work, many = held(whole.from_ms, whole.until_ms)

    def deviation(since: int) -> float:
        here = held(since, since + length)
        return abs(here[0] / work - 1 if work else 0.0) + abs(here[1] / many - 1 if many else 0.0)

    starts = range(whole.from_ms, whole.until_ms - length + 1, STEP_MS)
    best = min(starts, key=deviation)
    return Window(best, best + length)


def overloaded_at(state: State, axis: Axis) -> float | None:
    """Return the factor at which work far exceeds the GPUs; None if it never does."""
    jobs = state.inputs.jobs
    if not jobs or not grows_along(axis, "jobs") or grows_along(axis, "nodes"):
        return None
    load = sum(gpu_time(jobs).values()) / span_s(jobs) / max(1, state.spec.gpus)
    return max(1.0, OVERLOADED / load) if load else None


def window_note(window: Window | None, jobs: Sequence[Job]) -> list[str]:
    """Return a note if only part of the history is simulated."""
    if window is None:
        return []
    inside = sum(1 for job in jobs if window.from_ms <= job.submitted_ms <= window.until_ms)
    return [
        f"simulated {window.length_ms / DAY:.2g} typical days of the history ({inside:,} of its "
        f"{len(jobs):,} jobs) to save time"
    ]
