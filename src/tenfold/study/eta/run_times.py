"""Draw run times of jobs from finished and still running ones.

Run time is divided into doubling intervals. The hazard of an interval is the probability that a
job which reached it ends in it, for its size if enough jobs of that size are known; before any
history, run times are uniform on a log scale. True durations are never read.
"""

from tenfold.fleet.fleet import NEVER_RAN, FleetView
from tenfold.model.job.job import Job
from tenfold.model.units import MINUTE, Millis

MIN_FINISHED = 3
"""With fewer finished jobs, run times are not known: only time limits bound them."""
FIRST_MS = MINUTE
LEVELS = 22
BOUNDS = [0, *(FIRST_MS << step for step in range(LEVELS))]
PRIOR = [1 / (LEVELS - level + 1) for level in range(LEVELS)]
TRUST_ALL, TRUST_SIZE = 1.0, 8.0
"""Weight of the wider prior, in jobs."""
EVERY = -1
NONE = (0,) * LEVELS


class RunTimeModel:
    """Survival shares at each interval, by power-of-two size."""

    def __init__(self, view: FleetView, now_ms: Millis) -> None:
        self.known = len(view.history)
        """Finished jobs that run times are drawn from."""
        self.is_known = self.known >= MIN_FINISHED
        ends: dict[int, list[int]] = {}
        reached: dict[int, list[int]] = {}
        for ended in view.history:
            _count(ends, ended.job, ended.ran_ms)
        past = view.past
        for job_id, run in view.running.items():
            before_ms = past.get(job_id, NEVER_RAN).ran_ms
            _count(reached, run.job, before_ms + now_ms - run.started_ms)
        for job_id, job in view.pending.items():
            if job_id in past:
                _count(reached, job, past[job_id].ran_ms)
        wide = _hazards(ends.get(EVERY, NONE), reached.get(EVERY, NONE), PRIOR, TRUST_ALL)
        self._every = _survival(wide)
        self._by_size = {
            size: _survival(
                _hazards(ends.get(size, NONE), reached.get(size, NONE), wide, TRUST_SIZE)
            )
            for size in {**ends, **reached}
            if size != EVERY
        }

    def draw(self, job: Job, served_ms: int, chance: float) -> int:
        """Return a run time above `served_ms`: `chance` in [0, 1) is the share that is shorter."""
        survival = self._by_size.get(_size(job), self._every)
        level = _level(served_ms)
        start, end = BOUNDS[level], BOUNDS[level + 1]
        inside = min(1.0, (served_ms - start) / (end - start))
        share = survival[level] - inside * (survival[level] - survival[level + 1])
        share *= 1 - chance
        while level < LEVELS - 1 and survival[level + 1] > share:
            level += 1
        gone, left = survival[level] - share, survival[level] - survival[level + 1]
        start, end = BOUNDS[level], BOUNDS[level + 1]
        length = start + min(1.0, gone / left if left else 1.0) * (end - start)
        return max(served_ms + 1, round(length))


def _size(job: Job) -> int:
    return job.shape.gpus.bit_length()


def _level(ran_ms: int) -> int:
    return min(LEVELS - 1, (ran_ms // FIRST_MS).bit_length())


def _count(counts: dict[int, list[int]], job: Job, ran_ms: int) -> None:
    for size in (EVERY, _size(job)):
        if size not in counts:
            counts[size] = [0] * LEVELS
        counts[size][_level(ran_ms)] += 1


def _hazards(
    ends: "list[int] | tuple[int, ...]",
    reached: "list[int] | tuple[int, ...]",
    wider: list[float],
    trust: float,
) -> list[float]:
    """Return the hazard of each interval; a job inside one counts half for it."""
    hazards = [0.0] * LEVELS
    beyond = 0
    for level in range(LEVELS - 1, -1, -1):
        at_risk = beyond + ends[level] + reached[level] / 2
        hazards[level] = min(1.0, (ends[level] + trust * wider[level]) / (at_risk + trust))
        beyond += ends[level] + reached[level]
    return hazards


def _survival(hazards: list[float]) -> list[float]:
    shares = [1.0]
    for hazard in hazards:
        shares.append(shares[-1] * (1 - hazard))
    return shares
