"""Calibrate at 1x: does simulating the history under its own policy reproduce what happened?

Simulated layers are only as good as the simulation. The history is run once as it is, without
added failures, because its durations already include them; then wait times, GPU utilisation and
start order are compared with the real ones. If any is off by more than 15 percent, or the history
has no start times, simulated layers are graded as assumed.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.units import SECOND
from tenfold.sim.measure.meters import requested_milli
from tenfold.sim.measure.window import Window, slots_milli, within, work_of
from tenfold.study.grow.answer import CalibrationShown
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.runs.run import GrowTask, RunOutcome, simulate_task

ERROR_MOST = 0.15
IDLE_WAIT_S = 60.0
"""Waits shorter than this on both sides count as equal."""
JOBS_LEAST = 20
"""Fewer jobs with a known start are too few to compare."""


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
    calibrated: bool = False
    sentence: str = ""


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
        )
    )
    pairs = _pairs(inputs.jobs, inputs.starts_ms, ran)
    if len(pairs) < JOBS_LEAST:
        said = f"not calibrated: {len(pairs)} jobs have a start time, {JOBS_LEAST} needed"
        return Calibration(jobs=len(pairs), sentence=said)
    wait = max(
        _wait_error(pairs, [1] * len(pairs)),
        _wait_error(pairs, [work_of(one.job) for one in pairs]),
    )
    use = _use_error(inputs.jobs, inputs.starts_ms, ran)
    tau = order_tau([one.real_ms for one in pairs], [one.simulated_ms for one in pairs])
    return _verdict(len(pairs), (wait, use, tau), _unfit_share(inputs, ran))


def shown(calibration: Calibration) -> CalibrationShown:
    """Return it as it is printed."""
    return CalibrationShown(calibrated=calibration.calibrated, sentence=calibration.sentence)


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


def _verdict(jobs: int, found: tuple[float, float, float], unfit: float) -> Calibration:
    wait, use, tau = found
    off = [
        f"{name} off by {error:.0%}"
        for name, error in (("wait time", wait), ("GPU utilisation", use), ("start order", 1 - tau))
        if error > ERROR_MOST
    ]
    if unfit > ERROR_MOST:
        said = f"not calibrated: {unfit:.0%} of the GPU time fits no node of the fleet file"
    elif off:
        said = f"not calibrated: {', '.join(off)} over {jobs:,} jobs (limit {ERROR_MOST:.0%})"
    else:
        said = (
            f"calibrated against {jobs:,} jobs: wait time off by {wait:.0%}, "
            f"GPU utilisation by {use:.0%}, start order by {1 - tau:.0%}"
        )
    return Calibration(
        jobs=jobs,
        unfit_share=unfit,
        wait_error=wait,
        utilisation_error=use,
        order_tau=tau,
        calibrated=not off and unfit <= ERROR_MOST,
        sentence=said,
    )


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


def _wait_error(pairs: Sequence[_Pair], weights: Sequence[int]) -> float:
    whole = sum(weights)
    if not whole:
        return 0.0
    real = simulated = 0.0
    for one, weight in zip(pairs, weights, strict=True):
        real += (one.real_ms - one.job.submitted_ms) * weight
        simulated += (one.simulated_ms - one.job.submitted_ms) * weight
    real_s, simulated_s = real / whole / SECOND, simulated / whole / SECOND
    if real_s < IDLE_WAIT_S and simulated_s < IDLE_WAIT_S:
        return 0.0
    return abs(simulated_s - real_s) / max(real_s, IDLE_WAIT_S)


def _use_error(jobs: Sequence[Job], starts_ms: Mapping[JobId, int], ran: RunOutcome) -> float:
    """Return the error of the GPU time allocated in the window, by jobs with a known start."""
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
    if not real:
        return 0.0 if not simulated else 1.0
    return abs(simulated - real) / real


def _within(start_ms: int, job: Job, window: Window) -> int:
    return within(start_ms, start_ms + (job.duration_ms or 0), window)
