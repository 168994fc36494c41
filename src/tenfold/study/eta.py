"""When will a waiting job start? P50 and P90 of the moment, and what they rest on.

With a book that has followed the run, the answer is what jobs like this one have waited, set
so that half start by P50 and nine in ten by P90. From a saved state without one, the fleet is
run ahead a few times with the real decider; nobody has checked those forecasts, and `basis`
says so.
"""

from collections.abc import Callable

from msgspec import Struct

from tenfold.engine.loop import Decider
from tenfold.fleet.fleet import Fleet, FleetView
from tenfold.model.ids import JobId
from tenfold.model.job import Job
from tenfold.model.units import Millis
from tenfold.study.eta_ahead import run_ahead
from tenfold.study.eta_book import EtaBook
from tenfold.study.eta_lengths import Lengths
from tenfold.study.eta_waits import ENOUGH

RUNS = 5
JUDGED = 20
"""With fewer forecasts judged than this, none is called calibrated."""


class Eta(Struct, frozen=True, kw_only=True):
    """Moments by which a waiting job starts in half, and in nine of ten, such cases."""

    p50_ms: Millis
    p90_ms: Millis
    basis: str
    """One sentence on what this rests on."""


def eta(view: FleetView, job: Job, now_ms: Millis, book: EtaBook) -> Eta:
    """Return when a waiting job will start, from a book that has followed the run."""
    assert job.id in view.pending, f"job `{job.id}` does not wait"
    p50_ms, p90_ms = book.forecast(view, job, now_ms)
    return _kept(view, job.id, now_ms, (p50_ms, p90_ms), _book_basis(book))


def eta_of(
    fleet: Fleet, job_id: JobId, now_ms: Millis, decider_of: Callable[[], Decider], *, seed: int = 0
) -> Eta:
    """Return when a waiting job will start, from a state alone.

    `decider_of` makes a fresh decider, one for each run ahead.
    """
    assert job_id in fleet.pending, f"job `{job_id}` does not wait"
    lengths = Lengths(fleet, now_ms)
    found = [
        run_ahead(fleet, job_id, now_ms, decider_of(), lengths, seed * RUNS + number)
        for number in range(RUNS)
    ]
    # A run that was given up says that the wait is longer; how much, it does not say.
    times = sorted(each.at_ms if each.started else 2 * each.at_ms - now_ms for each in found)
    missed = sum(not each.started for each in found)
    basis = f"{RUNS} runs ahead with run times drawn from {len(fleet.history):,} finished jobs"
    if missed:
        basis += f", of which {missed} ended before it started"
    basis += "; not calibrated: nobody has checked such forecasts here"
    return _kept(fleet, job_id, now_ms, (times[RUNS // 2], times[-1]), basis)


def _kept(
    view: FleetView, job_id: JobId, now_ms: Millis, found: tuple[int, int], basis: str
) -> Eta:
    """Return an answer that is no later than what the job was promised."""
    p50_ms, p90_ms = found
    promise = view.promises.get(job_id)
    if promise is not None and now_ms <= promise.start_ms < p90_ms:
        p50_ms, p90_ms = min(p50_ms, promise.start_ms), promise.start_ms
        basis = f"promised by then; before that, {basis}"
    return Eta(p50_ms=Millis(p50_ms), p90_ms=Millis(p90_ms), basis=basis)


def _book_basis(book: EtaBook) -> str:
    """Say how many waits are known, and how often the latest forecasts held."""
    if book.known < ENOUGH:
        return f"the pace of the queue alone, for only {book.known} waits are known; not calibrated"
    outcomes = book.outcomes
    basis = f"the waits of jobs like it among the last {book.known:,}"
    if len(outcomes) < JUDGED:
        return f"{basis}; not calibrated yet"
    by_p50 = sum(each.started_ms <= each.p50_ms for each in outcomes) / len(outcomes)
    by_p90 = sum(each.started_ms <= each.p90_ms for each in outcomes) / len(outcomes)
    return (
        f"{basis}; by the last {len(outcomes):,} forecasts, {by_p50:.0%} started by P50"
        f" and {by_p90:.0%} by P90"
    )
