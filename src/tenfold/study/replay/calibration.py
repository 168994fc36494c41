"""How far a simulation of the unchanged policy is from what another scheduler did.

A comparison with another policy is only as good as this: above the limit it is marked.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from tenfold.engine.decision_log import is_observed
from tenfold.files.records.replay_bundle import Bundle
from tenfold.model.events import Event, JobReleased, JobStarted
from tenfold.model.ids import JobId
from tenfold.model.job.job import WHOLE
from tenfold.model.policy.policy import Policy
from tenfold.model.units import SECOND, Millis
from tenfold.study.replay.diff import JobRun, runs_of
from tenfold.study.replay.rerun import rerun

ERROR_MOST = 0.15
PACE_S = 5.0
"""Mean waits below this are the pace of the scheduler, and count as alike."""


class WaitCalibration(Struct, frozen=True, kw_only=True):
    """Waits as recorded, and as simulated under the policy that was in force."""

    policy: str
    jobs: int
    """Jobs that are in both: they started, or were still pending at the end."""
    recorded_wait_s: float
    """Mean wait from when a job was eligible, to its start or to the end of the record."""
    simulated_wait_s: float
    recorded_gpu_wait_s: float
    """The same, weighted by GPUs."""
    simulated_gpu_wait_s: float
    error: float | None
    """The worse of the two relative errors; None if there is no job."""
    calibrated: bool
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The error next to its limit."""
        if self.error is None:
            return "not calibrated: no job of the record can be run again"
        word = "calibrated" if self.calibrated else "uncalibrated"
        return (
            f"{word}: waits of the unchanged policy are off by {self.error:.0%} over "
            f"{self.jobs:,} jobs (limit {ERROR_MOST:.0%})"
        )


def calibrate(bundle: Bundle) -> WaitCalibration | None:
    """Simulate an observed record under its own policy; None for a record of our own decisions."""
    if not is_observed(bundle.lines):
        return None
    return _calibration(bundle, bundle.header.policy)


def _calibration(bundle: Bundle, policy: Policy) -> WaitCalibration:
    again = rerun(bundle, policy)
    eligible = eligible_ms(again.recorded)
    end_ms = max((event.at_ms for event in again.recorded), default=Millis(0))
    before, after = runs_of(again.recorded), runs_of(again.again)
    pairs = [(run, after[job_id]) for job_id, run in before.items() if job_id in after]
    real = [_wait_s(run, eligible, end_ms) for run, _ in pairs]
    simulated = [_wait_s(other, eligible, end_ms) for _, other in pairs]
    weights = [max(1, run.job.shape.milli or run.job.shape.gpus * WHOLE) for run, _ in pairs]
    mean, mean_again = _mean(real), _mean(simulated)
    by_gpu, by_gpu_again = _weighted(real, weights), _weighted(simulated, weights)
    error = max(_error(mean, mean_again), _error(by_gpu, by_gpu_again)) if pairs else None
    return WaitCalibration(
        policy=policy.name,
        jobs=len(pairs),
        recorded_wait_s=mean,
        simulated_wait_s=mean_again,
        recorded_gpu_wait_s=by_gpu,
        simulated_gpu_wait_s=by_gpu_again,
        error=error,
        calibrated=error is not None and error <= ERROR_MOST,
        notes=again.notes,
    )


def eligible_ms(events: Iterable[Event]) -> dict[JobId, Millis]:
    """Return when jobs that were held became eligible, before their first start."""
    found: dict[JobId, Millis] = {}
    started: dict[JobId, None] = {}
    for event in events:
        if isinstance(event, JobStarted):
            started[event.job_id] = None
        elif isinstance(event, JobReleased) and event.job_id not in started:
            found[event.job_id] = event.at_ms
    return found


def _wait_s(run: JobRun, eligible: Mapping[JobId, Millis], end_ms: Millis) -> float:
    """Return the wait until the first start, or until the record ends."""
    from_ms = eligible.get(run.job.id, run.job.submitted_ms)
    until_ms = end_ms if run.first_ms is None else min(run.first_ms, end_ms)
    return max(0, until_ms - from_ms) / SECOND


def _error(real_s: float, simulated_s: float) -> float:
    """Return the relative error of a mean wait; two very short waits are alike."""
    if real_s < PACE_S and simulated_s < PACE_S:
        return 0.0
    return abs(simulated_s - real_s) / max(real_s, PACE_S)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _weighted(values: list[float], weights: list[int]) -> float:
    whole = sum(weights)
    return sum(a * b for a, b in zip(values, weights, strict=True)) / whole if whole else 0.0
