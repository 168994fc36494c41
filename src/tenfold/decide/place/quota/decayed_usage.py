"""What teams used of late: finished jobs, which count half as much after every half-life.

A team is reckoned to hold still what it held on average over that time, beside what it holds
now: who has just used a lot waits behind who has not. The finished jobs are taken at fixed
counts of them, so that a decider which starts now from the view sees the very same figures.
"""

from itertools import islice

from tenfold.decide.place.ranked.learned import WINDOW, epoch
from tenfold.fleet.fleet import FleetView
from tenfold.model.ids import TeamId
from tenfold.model.job.job import WHOLE
from tenfold.model.units import Millis

Used = dict[tuple[TeamId, str], int]
"""Thousandths of a GPU by team and accelerator type; no type where a job left it open."""


def decayed_usage(view: FleetView, half_life_ms: Millis) -> Used:
    """Return what each team held on average of late, in jobs that are over."""
    after = view.ended - epoch(view.ended)
    history = view.history
    known = len(history) - after
    taken = list(islice(history, max(0, known - WINDOW), known))
    used: dict[tuple[TeamId, str], float] = {}
    if not taken:
        return {}
    now_ms = taken[-1].ended_ms
    for ended in taken:
        job = ended.job
        age = (now_ms - ended.ended_ms) / half_life_ms
        start_age = age + ended.ran_ms / half_life_ms
        # The share of all that counts which lies between its start and its end.
        part = 2.0**-age - 2.0**-start_age
        types = job.shape.accelerators
        key = (job.team, types[0] if len(types) == 1 else "")
        milli = job.shape.milli or job.shape.gpus * WHOLE
        used[key] = used.get(key, 0.0) + milli * part
    return {key: round(milli) for key, milli in used.items()}
