"""Decayed usage of teams: finished jobs count half as much after every half-life.

Fair share counts a team's average past usage on top of what it uses now, so a team that has just
used a lot waits behind one that has not. Finished jobs are read at fixed counts, so a decider
rebuilt from the view computes the same figures.
"""

from itertools import islice

from tenfold.decide.place.ranked.learned import WINDOW, epoch
from tenfold.fleet.fleet import FleetView
from tenfold.model.ids import TeamId
from tenfold.model.job.job import WHOLE
from tenfold.model.units import Millis

Used = dict[tuple[TeamId, str], int]
"""Thousandths of a GPU by team and accelerator type; no type if the job did not name one."""


def decayed_usage(view: FleetView, half_life_ms: Millis) -> Used:
    """Return the average past usage of each team from finished jobs."""
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
        # The share of the total weight between its start and its end.
        part = 2.0**-age - 2.0**-start_age
        types = job.shape.accelerators
        key = (job.team, types[0] if len(types) == 1 else "")
        milli = job.shape.milli or job.shape.gpus * WHOLE
        used[key] = used.get(key, 0.0) + milli * part
    return {key: round(milli) for key, milli in used.items()}
