"""When will a waiting job start? P50 and P90 of the moment, and what they rest on.

With a book that has followed the run, or its record, the answer is what jobs like this one
have waited, set so that half start by P50 and nine in ten by P90. From a state that holds
too few waits, the fleet is run ahead a few times with the real decider; nobody has checked
those forecasts, and they are called uncalibrated.
"""

from collections.abc import Callable, Collection

from msgspec import Struct
from msgspec.structs import replace

from tenfold.engine.loop import Decider
from tenfold.fleet.fleet import Fleet, FleetView
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.units import Millis
from tenfold.study.eta.levels import SHARES
from tenfold.study.eta.past_waits import MIN_WAITS
from tenfold.study.eta.run_times import RunTimeModel
from tenfold.study.eta.simulated_start import simulate_start
from tenfold.study.eta.wait_log import Outcome, WaitLog

RUNS = 5
MIN_JUDGED = 20
"""With fewer forecasts judged than this, none is called calibrated."""
TOLERANCE = (0.10, 0.06)
"""Nor where the share that started by P50, or by P90, is further than this from its own."""


class Eta(Struct, frozen=True, kw_only=True):
    """Moments by which a waiting job starts in half, and in nine of ten, such cases."""

    p50_ms: Millis
    p90_ms: Millis
    basis: str
    """One sentence on what this rests on."""
    calibrated: bool = False
    """Whether forecasts like this one were judged here, and held as often as they say."""


def eta(view: FleetView, job: Job, now_ms: Millis, wait_log: WaitLog) -> Eta:
    """Return when a waiting job will start, from a book that has followed the run."""
    assert job.id in view.pending, f"job `{job.id}` does not wait"
    p50_ms, p90_ms = wait_log.forecast(view, job, now_ms)
    found = Eta(
        p50_ms=Millis(p50_ms),
        p90_ms=Millis(p90_ms),
        basis=_basis_of(wait_log),
        calibrated=is_calibrated(wait_log),
    )
    return _capped_by_reservation(view, job.id, now_ms, found)


def is_calibrated(wait_log: WaitLog) -> bool:
    """Return whether enough forecasts of a book were judged, and held as they should."""
    return len(wait_log.outcomes) >= MIN_JUDGED and all(
        abs(found - share) <= apart
        for found, share, apart in zip(coverage(wait_log.outcomes), SHARES, TOLERANCE, strict=True)
    )


def coverage(outcomes: Collection[Outcome]) -> tuple[float, float]:
    """Return which shares of some waits were over by their P50 and by their P90."""
    count = max(1, len(outcomes))
    return (
        sum(each.started_ms <= each.p50_ms for each in outcomes) / count,
        sum(each.started_ms <= each.p90_ms for each in outcomes) / count,
    )


def not_before(found: Eta, bound_ms: Millis | None) -> Eta:
    """Return an answer that is not before a moment until which the job may not start."""
    if bound_ms is None or found.p50_ms >= bound_ms:
        return found
    return replace(found, p50_ms=bound_ms, p90_ms=max(found.p90_ms, bound_ms))


def eta_of(
    fleet: Fleet, job_id: JobId, now_ms: Millis, decider_of: Callable[[], Decider], *, seed: int = 0
) -> Eta:
    """Return when a waiting job will start, from a state alone.

    `decider_of` makes a fresh decider, one for each run ahead.
    """
    assert job_id in fleet.pending, f"job `{job_id}` does not wait"
    run_times = RunTimeModel(fleet, now_ms)
    runs = [
        simulate_start(fleet, job_id, now_ms, decider_of(), run_times, seed * RUNS + number)
        for number in range(RUNS)
    ]
    # A run that was given up says that the wait is longer; how much, it does not say.
    times = sorted(each.at_ms if each.started else 2 * each.at_ms - now_ms for each in runs)
    missed = sum(not each.started for each in runs)
    basis = f"{RUNS} runs ahead with run times drawn from {len(fleet.history):,} finished jobs"
    if missed:
        basis += f", of which {missed} ended before it started"
    basis += "; uncalibrated: nobody has checked such forecasts here"
    found = Eta(p50_ms=Millis(times[RUNS // 2]), p90_ms=Millis(times[-1]), basis=basis)
    return _capped_by_reservation(fleet, job_id, now_ms, found)


def _capped_by_reservation(view: FleetView, job_id: JobId, now_ms: Millis, found: Eta) -> Eta:
    """Return an answer that is no later than what the job was promised."""
    reservation = view.reservations.get(job_id)
    if reservation is None or not now_ms <= reservation.start_ms < found.p90_ms:
        return found
    return replace(
        found,
        p50_ms=min(found.p50_ms, reservation.start_ms),
        p90_ms=reservation.start_ms,
        basis=f"promised by then; before that, {found.basis}",
    )


def _basis_of(wait_log: WaitLog) -> str:
    """Say how many waits are known, and how often the latest forecasts held."""
    if wait_log.known < MIN_WAITS:
        return f"the work in the queue alone; uncalibrated: only {wait_log.known} waits are known"
    basis = f"the waits of jobs like it among the last {wait_log.known:,}"
    judged = len(wait_log.outcomes)
    if judged < MIN_JUDGED:
        return f"{basis}; uncalibrated: only {judged} such forecasts were judged"
    by_p50, by_p90 = coverage(wait_log.outcomes)
    return (
        f"{basis}; {'calibrated' if is_calibrated(wait_log) else 'uncalibrated'}: of the last"
        f" {judged:,} forecasts, {by_p50:.0%} started by P50 and {by_p90:.0%} by P90"
    )
