"""How far the governed decider is from the best that could be done, in small worlds."""

from random import Random
from typing import NamedTuple

from tenfold.decide.place.governed import GovernedPlacer
from tenfold.model.actions import StartJob, StopJob
from tenfold.model.units import Millis
from tests.rigs.governed.oracle import cost, kept_in_place, least_lost, most_started
from tests.rigs.governed.quota_state import QuotaState
from tests.rigs.governed.small import NOW_MS, lent_world, waiting_world


class Gap(NamedTuple):
    """The share of GPUs that one walk leaves: of any choice of jobs, and with its own choice."""

    of_any: float
    of_its_own: float


class Lost(NamedTuple):
    """What the stops for one job cost, in GPU ms: ours, the least, and by starting over."""

    ours: int
    least: int
    anew: int


def walk_gap(seed: int) -> Gap | None:
    """Return what one walk leaves of the GPUs that could start now; None where none could."""
    fleet, govern = waiting_world(Random(seed))
    most = most_started(govern, fleet, Millis(0))
    if not most:
        return None
    actions = GovernedPlacer(govern).decide(fleet, Millis(0), None).actions
    starts = [one for one in actions if isinstance(one, StartJob)]
    started = sum(slot.gpus for one in starts for slot in one.slots)
    among = [one.job_id for one in starts]
    same = most_started(govern, fleet, Millis(0), among=among)
    assert started <= same <= most, f"world {seed}: {started} GPUs started, {same}, {most}"
    return Gap(1 - started / most, 1 - started / same if same else 0.0)


def stops_cost(seed: int) -> Lost | None:
    """Return what is stopped for an owner's job; None where it fits as it is, or never will."""
    fleet, govern, job = lent_world(Random(seed))
    quota_state = QuotaState(govern, fleet, NOW_MS)
    if quota_state.fits(job):
        return None
    best = least_lost(quota_state, job)
    actions = GovernedPlacer(govern).decide(fleet, NOW_MS, None).actions
    ours = [one.job_id for one in actions if isinstance(one, StopJob)]
    assert bool(ours) == (best is not None), f"world {seed}: {ours} against {best}"
    if best is None:
        return None
    sums = [
        sum(cost(quota_state, fleet.running[one]) for one in names)
        for names in (ours, best, kept_in_place(quota_state, job))
    ]
    return Lost(*sums)
