"""Calibrate at 1x: does simulating the history under its own policy reproduce what happened?

Simulated layers are only as good as the simulation. The history is run once as it is, without
added failures, because its durations already include them; then wait times, GPU utilisation and
start order are compared with the real ones. Each simulated layer says which of them it uses and how
far they may be off: 14 percent of the GPU time is little for a queue, and more than all the time
that jobs may lose to contention. A layer that is further off is graded as assumed.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from tenfold.model.ids import JobId
from tenfold.model.job.job import WHOLE, Job
from tenfold.model.units import SECOND
from tenfold.sim.measure.meters import requested_milli
from tenfold.sim.measure.window import Window, slots_milli, within, work_of
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.runs.run import GrowTask, RunOutcome, simulate_task
from tenfold.study.grow.runs.window import policy_cost, representative_window

ERROR_MOST = 0.15
IDLE_WAIT_S = 60.0
"""Waits shorter than this on both sides count as equal."""
PERIOD_S, PERIOD_OF_LIMIT = 60.0, 0.05
"""A scheduler that looks once a minute starts jobs late; that is no other queue if it is little of
the limit of waits."""
TODAY_COST = 0.25
"""At 1x queues are short, and a run costs less than at larger factors."""
JOBS_LEAST = 20
"""Fewer jobs with a known start are too few to compare."""


class Tolerances(NamedTuple):
    """How far each figure may be off for a layer that uses it; None if it does not."""

    wait: float | None = ERROR_MOST
    use: float | None = ERROR_MOST
    order: float | None = ERROR_MOST


class Compared(NamedTuple):
    """A figure as recorded and as simulated."""

    real: float
    simulated: float
    error: float


class Calibration(Struct, frozen=True, kw_only=True):
    """How far a run of the history is off. Errors are relative."""

    jobs: int
    """Jobs of the window with a known start that fit the fleet file."""
    unfit_share: float = 0.0
    """Share of the GPU time of the history that fits no node of the fleet file."""
    wait_error: float | None = None
    """Of the mean wait over jobs or over GPU-hours, the worse of the two."""
    utilisation_error: float | None = None
    order_tau: float | None = None
    """Kendall's tau-b of the two orders of starting: 1 is the same order."""
    wait_s: Compared | None = None
    """Mean wait, over jobs or over GPU-hours: the worse of the two."""
    utilisation: Compared | None = None
    calibrated: bool = False
    sentence: str = ""

    def off(self, most: Tolerances) -> list[str]:
        """Return what is further off than a layer allows, with both figures."""
        if self.wait_s is None or self.utilisation is None or self.order_tau is None:
            return []
        found: list[str] = []
        wait, use, order = self.wait_s, self.utilisation, 1 - self.order_tau
        if most.wait is not None and wait.error > most.wait:
            both = f"recorded {_hours(wait.real)}, simulated {_hours(wait.simulated)}"
            found.append(f"wait time off by {wait.error:.0%} ({both})")
        if most.use is not None and use.error > most.use:
            both = f"recorded {use.real:.0%}, simulated {use.simulated:.0%}"
            found.append(f"GPU utilisation off by {use.error:.0%} ({both})")
        if most.order is not None and order > most.order:
            found.append(f"start order off by {order:.0%} (Kendall's tau {self.order_tau:.2f})")
        return found

    def covers(self, most: Tolerances) -> bool:
        """Return whether everything that a layer uses is close enough."""
        compared = self.wait_s is not None and self.unfit_share <= ERROR_MOST
        return compared and not self.off(most)


NONE = Calibration(jobs=0)
"""Of a history that was not compared."""


class _Pair(Struct, frozen=True, gc=False):
    """A job with its real and its simulated start, neither later than the window's end."""

    job: Job
    real_ms: int
    simulated_ms: int


def calibrate(inputs: GrowInputs) -> Calibration:
    """Return how well a run of the history reproduces it."""
    if not inputs.jobs or inputs.mix:
        return Calibration(jobs=0, sentence="not calibrated: no job history")
    if not inputs.starts_ms:
        said = "not calibrated: the history has no start times (`start_s`)"
        return Calibration(jobs=0, sentence=said)
    ran = simulate_task(
        GrowTask(
            spec=inputs.fleet.spec,
            jobs=inputs.jobs,
            policy=inputs.policy,
            profiles=inputs.profiles,
            ends=inputs.ends,
            history_window=_part(inputs),
        )
    )
    pairs = _pairs(inputs.jobs, inputs.starts_ms, ran)
    if len(pairs) < JOBS_LEAST:
        said = f"not calibrated: {len(pairs)} jobs have a start time, {JOBS_LEAST} needed"
        return Calibration(jobs=len(pairs), sentence=said)
    period_s = min(PERIOD_S, PERIOD_OF_LIMIT * inputs.grow.limits.wait_s_p90)
    wait = max(
        _waits(pairs, [1] * len(pairs), period_s),
        _waits(pairs, [work_of(one.job) for one in pairs], period_s),
        key=lambda one: one.error,
    )
    use = _uses(inputs.jobs, inputs.starts_ms, ran)
    tau = order_tau([one.real_ms for one in pairs], [one.simulated_ms for one in pairs])
    return _verdict(len(pairs), (wait, use, tau), _unfit_share(inputs, ran))


def _part(inputs: GrowInputs) -> Window | None:
    """Return the part of a long history to compare under a policy that is slow to simulate."""
    cost = policy_cost(inputs.policy)
    if cost == 1:
        return None
    return representative_window(inputs.jobs, cost * TODAY_COST, inputs.grow.limits.wait_s_p90)


def order_tau(real: Sequence[int], simulated: Sequence[int]) -> float:
    """Return Kendall's tau-b of two orders; if all times are equal there is no order to miss."""
    one, other = len(dict.fromkeys(real)) < 2, len(dict.fromkeys(simulated)) < 2
    if one or other:
        return 1.0 if one and other else 0.0
    pairs = sorted(zip(real, simulated, strict=True))
    tied, tied_real, tied_simulated = _ties(pairs), _ties(real), _ties(simulated)
    total = len(pairs) * (len(pairs) - 1) // 2
    _, swapped = _inversions([after for _, after in pairs])
    agree = total - tied_real - tied_simulated + tied - 2 * swapped
    return agree / math.sqrt(total - tied_real) / math.sqrt(total - tied_simulated)


def _ties(values: Sequence[object]) -> int:
    """Return how many pairs of values are equal."""
    return sum(many * (many - 1) // 2 for many in Counter(values).values())


def _inversions(values: list[int]) -> tuple[list[int], int]:
    """Return the values in order, and how many pairs of them were not."""
    if len(values) < 2:
        return values, 0
    middle = len(values) // 2
    (first, before), (second, after) = _inversions(values[:middle]), _inversions(values[middle:])
    across = sum(len(first) - bisect_right(first, value) for value in second)
    return sorted([*first, *second]), before + after + across


def _verdict(jobs: int, found: tuple[Compared, Compared, float], unfit: float) -> Calibration:
    wait, use, tau = found
    made = Calibration(
        jobs=jobs,
        unfit_share=unfit,
        wait_error=wait.error,
        utilisation_error=use.error,
        order_tau=tau,
        wait_s=wait,
        utilisation=use,
    )
    off = made.off(Tolerances())
    if unfit > ERROR_MOST:
        said = f"not calibrated: {unfit:.0%} of the GPU time fits no node of the fleet file"
    elif off:
        said = f"not calibrated: {', '.join(off)} over {jobs:,} jobs (limit {ERROR_MOST:.0%})"
    else:
        said = (
            f"calibrated against {jobs:,} jobs: wait time off by {wait.error:.0%}, "
            f"GPU utilisation by {use.error:.0%}, start order by {abs(1 - tau):.0%}"
        )
    return replace(made, calibrated=not off and unfit <= ERROR_MOST, sentence=said)


def _pairs(jobs: Sequence[Job], starts_ms: Mapping[JobId, int], ran: RunOutcome) -> list[_Pair]:
    """Return the jobs of the window with a real start; a job not yet started counts as waiting.

    A job that ran but fits no node here is a problem of the fleet file, not of wait times.
    """
    away = {job.id: True for job in ran.result.meters.refused_jobs}
    first: dict[JobId, int] = {}
    for job, _, start, _ in ran.runs:
        first[job.id] = min(first.get(job.id, start), start)
    window, until = ran.window, ran.window.until_ms
    return [
        _Pair(job, min(starts_ms[job.id], until), min(first.get(job.id, until), until))
        for job in jobs
        if job.id in starts_ms
        and job.id not in away
        and window.from_ms <= job.submitted_ms <= until
    ]


def _unfit_share(inputs: GrowInputs, ran: RunOutcome) -> float:
    whole = sum(work_of(job) for job in inputs.jobs if job.id in inputs.starts_ms)
    away = [job for job in ran.result.meters.refused_jobs if job.id in inputs.starts_ms]
    return sum(work_of(job) for job in away) / whole if whole else 0.0


def _waits(pairs: Sequence[_Pair], weights: Sequence[int], period_s: float) -> Compared:
    """Return the mean waits; short ones, and those a scheduling period apart, are alike."""
    whole = sum(weights)
    if not whole:
        return Compared(0.0, 0.0, 0.0)
    real = simulated = 0.0
    for one, weight in zip(pairs, weights, strict=True):
        real += (one.real_ms - one.job.submitted_ms) * weight
        simulated += (one.simulated_ms - one.job.submitted_ms) * weight
    real_s, simulated_s = real / whole / SECOND, simulated / whole / SECOND
    apart_s = abs(simulated_s - real_s)
    alike = apart_s <= period_s or max(real_s, simulated_s) < IDLE_WAIT_S
    error = 0.0 if alike else apart_s / max(real_s, IDLE_WAIT_S)
    return Compared(real_s, simulated_s, error)


def _uses(jobs: Sequence[Job], starts_ms: Mapping[JobId, int], ran: RunOutcome) -> Compared:
    """Return the share of the GPU time allocated in the window to jobs with a known start."""
    window = ran.window
    real = sum(
        requested_milli(job) * _within(starts_ms[job.id], job, window)
        for job in jobs
        if job.id in starts_ms
    )
    simulated = sum(
        slots_milli(slots) * within(start, end, window)
        for job, slots, start, end in ran.runs
        if job.id in starts_ms
    )
    whole = max(1, ran.gpus) * WHOLE * window.length_ms
    if not real:
        return Compared(0.0, simulated / whole, 1.0 if simulated else 0.0)
    return Compared(real / whole, simulated / whole, abs(simulated - real) / real)


def _hours(seconds: float) -> str:
    return f"{seconds / 3_600:,.1f} h" if seconds >= 3_600 else f"{seconds / 60:,.0f} min"


def _within(start_ms: int, job: Job, window: Window) -> int:
    return within(start_ms, start_ms + (job.duration_ms or 0), window)
