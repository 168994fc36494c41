"""Forecast when a pending job will start: P50 and P90, and what they are based on.

With a wait log of the run, live or recorded, the forecast comes from the waits of similar jobs,
adjusted so that half start by P50 and nine in ten by P90. With too few recorded waits, the fleet
is simulated ahead a few times with the real decider; those forecasts have never been checked
against outcomes and are called uncalibrated.

Where the data do not support a time, there is none: `NoForecast` says why.
"""

from collections.abc import Callable, Collection, Sequence
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from tenfold.engine.loop import Decider
from tenfold.fleet.fleet import Fleet, FleetView
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.units import DAY, MINUTE, Millis
from tenfold.report.figures import count
from tenfold.study.eta.levels import SHARES
from tenfold.study.eta.past_waits import MIN_WAITS
from tenfold.study.eta.run_times import RunTimeModel
from tenfold.study.eta.simulated_start import MOST_FACTS, SimulatedStart, simulate_start
from tenfold.study.eta.wait_log import Outcome, WaitLog

RUNS = 5
MIN_JUDGED = 20
"""With fewer checked forecasts than this, none is called calibrated."""
ERROR_STARTS = 30
"""Latest starts over which the error of forecasts is stated."""
FAR_MS = 30 * DAY
"""A start further ahead than this is not forecast."""
RESERVED = "its reserved start"
UNCHECKED = "uncalibrated: forecast error not yet measured"
TOLERANCE = (0.10, 0.06)
"""Nor if the share that started by P50, or by P90, is further off than this."""


class Eta(Struct, frozen=True, kw_only=True):
    """Times by which a pending job starts in half, and in nine of ten, such cases."""

    p50_ms: Millis
    p90_ms: Millis | None
    """None if it is not known."""
    basis: str
    """One sentence on what this is based on."""
    calibrated: bool = False
    """Whether enough forecasts of this kind were checked, and held as often as they should."""
    error_factor: float | None = None
    """How far P50 was off in the median of the latest starts; None if too few were checked."""


class NoForecast(Struct, frozen=True):
    """Why there is no forecast."""

    reason: str


Forecast = Eta | NoForecast


def eta(view: FleetView, job: Job, now_ms: Millis, wait_log: WaitLog) -> Forecast:
    """Return when a pending job will start, from the wait log of the run."""
    assert job.id in view.pending, f"job `{job.id}` is not pending"
    p50_ms, p90_ms = wait_log.forecast(view, job, now_ms)
    found = Eta(
        p50_ms=Millis(p50_ms),
        p90_ms=Millis(p90_ms),
        basis=_basis_of(wait_log),
        calibrated=is_calibrated(wait_log),
        error_factor=error_factor(wait_log.outcomes),
    )
    return _within_reach(_capped_by_reservation(view, job.id, now_ms, found), now_ms)


def error_factor(outcomes: Collection[Outcome]) -> float | None:
    """Return by which factor the P50 of recent waits was off in the median; None if too few."""
    recent = list(outcomes)[-ERROR_STARTS:]
    if len(recent) < MIN_JUDGED:
        return None
    # Below a minute, a factor says more about rounding than about the forecast.
    waits = [
        (max(MINUTE, each.p50_ms - each.began_ms), max(MINUTE, each.started_ms - each.began_ms))
        for each in recent
    ]
    return median(max(one / other, other / one) for one, other in waits)


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


def not_before(found: Forecast, bound_ms: Millis | None) -> Forecast:
    """Return a forecast no earlier than the time before which the job may not start."""
    if isinstance(found, NoForecast) or bound_ms is None or found.p50_ms >= bound_ms:
        return found
    p90_ms = None if found.p90_ms is None else max(found.p90_ms, bound_ms)
    return replace(found, p50_ms=bound_ms, p90_ms=p90_ms)


def eta_of(
    fleet: Fleet, job_id: JobId, now_ms: Millis, decider_of: Callable[[], Decider], *, seed: int = 0
) -> Forecast:
    """Return when a pending job will start, from the current state alone.

    `decider_of` makes a fresh decider for each simulation. A simulation that was cut off says only
    that the wait is longer, not by how much: without a start in most of them there is no forecast.
    """
    assert job_id in fleet.pending, f"job `{job_id}` is not pending"
    run_times = RunTimeModel(fleet, now_ms)
    runs = [
        simulate_start(fleet, job_id, now_ms, decider_of(), run_times, seed * RUNS + number)
        for number in range(RUNS)
    ]
    times = sorted(each.at_ms for each in runs if each.started)
    if len(times) <= RUNS // 2:
        reservation = fleet.reservations.get(job_id)
        if reservation is None or reservation.start_ms < now_ms:
            return NoForecast(_why_none(runs, run_times))
        basis = f"{RESERVED}; uncalibrated"
        return Eta(p50_ms=reservation.start_ms, p90_ms=reservation.start_ms, basis=basis)
    source = f"the run times of {count(run_times.known, 'finished job')}"
    if not run_times.is_known:
        source = f"the time limits of jobs ({_few(run_times)})"
    basis = f"{RUNS} simulations of the queue with {source}"
    if len(times) < RUNS:
        basis += f"; the job started in {len(times)} of them"
    basis += f"; {UNCHECKED}"
    found = Eta(
        p50_ms=Millis(times[RUNS // 2]),
        p90_ms=Millis(times[-1]) if len(times) == RUNS else None,
        basis=basis,
    )
    return _within_reach(_capped_by_reservation(fleet, job_id, now_ms, found), now_ms)


def _why_none(runs: Sequence[SimulatedStart], run_times: RunTimeModel) -> str:
    """Return why simulations gave no forecast."""
    started = sum(each.started for each in runs)
    many = f"the job started in {started or 'none'} of {RUNS} simulations"
    if not run_times.is_known:
        return f"{many}: {_few(run_times)}, so run times are not known"
    if any(each.cut_off for each in runs):
        return f"{many}; the others were cut off after {MOST_FACTS:,} events"
    return many


def _few(run_times: RunTimeModel) -> str:
    if not run_times.known:
        return "no job has finished yet"
    jobs = "1 job has" if run_times.known == 1 else f"{run_times.known} jobs have"
    return f"only {jobs} finished so far"


def _within_reach(found: Eta, now_ms: Millis) -> Forecast:
    """Return a forecast without times that are too far ahead to mean anything."""
    if found.p50_ms - now_ms > FAR_MS:
        days = FAR_MS // DAY
        return NoForecast(f"more than {days} days ahead, too far for a forecast ({found.basis})")
    if found.p90_ms is not None and found.p90_ms - now_ms > FAR_MS:
        return replace(found, p90_ms=None)
    return found


def _capped_by_reservation(view: FleetView, job_id: JobId, now_ms: Millis, found: Eta) -> Eta:
    """Return a forecast no later than the job's reserved start."""
    reservation = view.reservations.get(job_id)
    if reservation is None or now_ms > reservation.start_ms:
        return found
    if found.p90_ms is not None and reservation.start_ms >= found.p90_ms:
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
    factor = error_factor(wait_log.outcomes)
    starts = min(judged, ERROR_STARTS)
    off = (
        "" if factor is None else f"P50 off by a factor {factor:.1f} on the last {starts} starts; "
    )
    return (
        f"{basis}; {off}{'calibrated' if is_calibrated(wait_log) else 'uncalibrated'}: of the last"
        f" {judged:,} jobs forecast, {by_p50:.0%} started by their P50 and {by_p90:.0%} by"
        " their P90"
    )
