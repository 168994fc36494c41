"""Forecast when a pending job will start: P50 and P90, and what they are based on.

With a wait log of the run, live or recorded, the forecast comes from the waits of similar jobs,
adjusted so that half start by P50 and nine in ten by P90. With too few recorded waits, the fleet
is simulated ahead a few times with the real decider; those forecasts have never been checked
against outcomes and are called uncalibrated.
"""

from collections.abc import Callable, Collection

from msgspec import Struct
from msgspec.structs import replace

from tenfold.engine.loop import Decider
from tenfold.fleet.fleet import Fleet, FleetView
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.units import Millis
from tenfold.report.figures import count
from tenfold.study.eta.levels import SHARES
from tenfold.study.eta.past_waits import MIN_WAITS
from tenfold.study.eta.run_times import RunTimeModel
from tenfold.study.eta.simulated_start import simulate_start
from tenfold.study.eta.wait_log import Outcome, WaitLog

RUNS = 5
MIN_JUDGED = 20
"""With fewer checked forecasts than this, none is called calibrated."""
TOLERANCE = (0.10, 0.06)
"""Nor if the share that started by P50, or by P90, is further off than this."""


class Eta(Struct, frozen=True, kw_only=True):
    """Times by which a pending job starts in half, and in nine of ten, such cases."""

    p50_ms: Millis
    p90_ms: Millis
    basis: str
    """One sentence on what this is based on."""
    calibrated: bool = False
    """Whether enough forecasts of this kind were checked, and held as often as they should."""


def eta(view: FleetView, job: Job, now_ms: Millis, wait_log: WaitLog) -> Eta:
    """Return when a pending job will start, from the wait log of the run."""
    assert job.id in view.pending, f"job `{job.id}` is not pending"
    p50_ms, p90_ms = wait_log.forecast(view, job, now_ms)
    found = Eta(
        p50_ms=Millis(p50_ms),
        p90_ms=Millis(p90_ms),
        basis=_basis_of(wait_log),
        calibrated=is_calibrated(wait_log),
    )
    return _capped_by_reservation(view, job.id, now_ms, found)


def is_calibrated(wait_log: WaitLog) -> bool:
    """Return whether enough forecasts of a wait log were checked, and held as they should."""
    return len(wait_log.outcomes) >= MIN_JUDGED and all(
        abs(found - share) <= apart
        for found, share, apart in zip(coverage(wait_log.outcomes), SHARES, TOLERANCE, strict=True)
    )


def coverage(outcomes: Collection[Outcome]) -> tuple[float, float]:
    """Return the shares of waits that ended by their P50 and by their P90."""
    count = max(1, len(outcomes))
    return (
        sum(each.started_ms <= each.p50_ms for each in outcomes) / count,
        sum(each.started_ms <= each.p90_ms for each in outcomes) / count,
    )


def not_before(found: Eta, bound_ms: Millis | None) -> Eta:
    """Return a forecast no earlier than the time before which the job may not start."""
    if bound_ms is None or found.p50_ms >= bound_ms:
        return found
    return replace(found, p50_ms=bound_ms, p90_ms=max(found.p90_ms, bound_ms))


def eta_of(
    fleet: Fleet, job_id: JobId, now_ms: Millis, decider_of: Callable[[], Decider], *, seed: int = 0
) -> Eta | None:
    """Return when a pending job will start, from the current state alone.

    `decider_of` makes a fresh decider for each simulation. None if the job started in none of
    them and has no reserved start: how long the simulations ran says nothing about the job.
    """
    assert job_id in fleet.pending, f"job `{job_id}` is not pending"
    run_times = RunTimeModel(fleet, now_ms)
    runs = [
        simulate_start(fleet, job_id, now_ms, decider_of(), run_times, seed * RUNS + number)
        for number in range(RUNS)
    ]
    # A simulation that was cut off says only that the wait is longer, not by how much.
    times = sorted(each.at_ms if each.started else 2 * each.at_ms - now_ms for each in runs)
    missed = sum(not each.started for each in runs)
    if missed == RUNS and job_id not in fleet.reservations:
        return None
    known = len(fleet.history)
    source = (
        "run times of finished jobs" if known else "assumed run times (no job has finished yet)"
    )
    basis = f"{RUNS} simulations with {source}"
    if missed:
        basis += f"; the job started in {RUNS - missed or 'none'} of them"
    basis += "; uncalibrated"
    found = Eta(p50_ms=Millis(times[RUNS // 2]), p90_ms=Millis(times[-1]), basis=basis)
    return _capped_by_reservation(fleet, job_id, now_ms, found)


def _capped_by_reservation(view: FleetView, job_id: JobId, now_ms: Millis, found: Eta) -> Eta:
    """Return a forecast no later than the job's reserved start."""
    reservation = view.reservations.get(job_id)
    if reservation is None or not now_ms <= reservation.start_ms < found.p90_ms:
        return found
    return replace(
        found,
        p50_ms=min(found.p50_ms, reservation.start_ms),
        p90_ms=reservation.start_ms,
        basis=f"P90 from its reservation; P50 from {found.basis}",
    )


def _basis_of(wait_log: WaitLog) -> str:
    """Return how many waits the forecast uses, and how often recent forecasts held."""
    if wait_log.known < MIN_WAITS:
        known = count(wait_log.known, "recorded wait")
        return f"from the queued work alone; uncalibrated: only {known}"
    basis = f"waits of similar jobs among the last {wait_log.known:,}"
    judged = len(wait_log.outcomes)
    if judged < MIN_JUDGED:
        return f"{basis}; uncalibrated: only {count(judged, 'forecast')} checked so far"
    by_p50, by_p90 = coverage(wait_log.outcomes)
    return (
        f"{basis}; {'calibrated' if is_calibrated(wait_log) else 'uncalibrated'}: of the last"
        f" {judged:,} jobs forecast, {by_p50:.0%} started by their P50 and {by_p90:.0%} by"
        " their P90"
    )
