"""What a simulated run measures, from the ends and stops of its jobs.

Wait is completion time less running time; utilisation is allocated GPU time over what the
fleet had from the first submission to the last end; percentiles are nearest-rank.
"""

from collections.abc import Sequence
from math import ceil

from msgspec import Struct

from tenfold.model.job import WHOLE, Job, Slot, StopCause
from tenfold.model.units import SECOND


class Summary(Struct, frozen=True, kw_only=True):
    """The figures of a whole run, or of one team's part of it."""

    jobs: int
    finished: int
    refused: int
    avg_jct_s: float
    p50_jct_s: float
    p99_jct_s: float
    avg_wait_s: float
    makespan_s: float
    gpu_utilization: float
    preemptions: int
    failures: int
    """Runs broken by a lost node."""
    gpu_hours: float
    """Allocated, useful or not."""
    gpu_hours_lost: float
    """Allocated, less the work that jobs came for."""
    jain: float
    """Evenness over teams of how much longer jobs took than they ran: 1 is even."""


class Meters:
    """Collects one record for each end; everything else is summed when asked."""

    def __init__(self) -> None:
        self.ends: list[tuple[Job, int, int]] = []
        """(job, time it held its GPUs in all its runs, end)."""
        self.turned_away: list[Job] = []
        self.stops: list[tuple[Job, StopCause]] = []
        self._milli_ms: dict[str, int] = {}
        """Allocated thousandths of a GPU x ms, by team."""

    def finished(self, job: Job, slots: Sequence[Slot], ran: int, held: int, now: int) -> None:
        """Note the end of a job, its last run and all its runs."""
        self.ends.append((job, held, now))
        allocated = self._milli_ms
        allocated[job.team] = allocated.get(job.team, 0) + _milli(slots) * ran

    def stopped(self, job: Job, slots: Sequence[Slot], ran: int, cause: StopCause) -> None:
        """Note a run that was cut short."""
        self.stops.append((job, cause))
        allocated = self._milli_ms
        allocated[job.team] = allocated.get(job.team, 0) + _milli(slots) * ran

    def refused(self, job: Job) -> None:
        """Note a job that the fleet can never hold."""
        self.turned_away.append(job)

    def summary(self, jobs: Sequence[Job], gpus: int, team: str | None = None) -> Summary:
        """Return the figures of all jobs, or of one team's."""
        mine = [job for job in jobs if team is None or job.team == team]
        ends = [end for end in self.ends if team is None or end[0].team == team]
        jcts = sorted(end - job.submitted_ms for job, _, end in ends)
        waits = sum(end - job.submitted_ms - held for job, held, end in ends)
        first = min((job.submitted_ms for job in mine), default=0)
        makespan = max((end for _, _, end in ends), default=first) - first
        allocated = sum(
            milli_ms for name, milli_ms in self._milli_ms.items() if team in (None, name)
        )
        useful = sum((job.duration_ms or 0) * asked_milli(job) for job, _, _ in ends)
        stops = [cause for job, cause in self.stops if team is None or job.team == team]
        return Summary(
            jobs=len(mine),
            finished=len(ends),
            refused=sum(team in (None, job.team) for job in self.turned_away),
            avg_jct_s=_mean(sum(jcts), len(jcts)) / SECOND,
            p50_jct_s=_nearest(jcts, 0.50) / SECOND,
            p99_jct_s=_nearest(jcts, 0.99) / SECOND,
            avg_wait_s=_mean(waits, len(jcts)) / SECOND,
            makespan_s=makespan / SECOND,
            gpu_utilization=_mean(allocated, gpus * WHOLE * makespan),
            preemptions=sum(cause in ("preempted", "moved") for cause in stops),
            failures=sum(cause == "node-lost" for cause in stops),
            gpu_hours=allocated / WHOLE / 3_600_000,
            gpu_hours_lost=max(0, allocated - useful) / WHOLE / 3_600_000,
            jain=_jain(ends),
        )

    def teams(self) -> list[str]:
        """Return the teams that had jobs, in order of name."""
        names = {job.team for job, _, _ in self.ends} | {job.team for job in self.turned_away}
        return sorted(names)


def asked_milli(job: Job) -> int:
    """Return what a job asks for in thousandths of a GPU."""
    return job.shape.milli or job.shape.gpus * WHOLE


def _milli(slots: Sequence[Slot]) -> int:
    if len(slots) == 1:
        return slots[0].milli or slots[0].gpus * WHOLE
    return sum(slot.milli or slot.gpus * WHOLE for slot in slots)


def _mean(total: float, count: float) -> float:
    return total / count if count else 0.0


def _nearest(ordered: Sequence[int], share: float) -> int:
    return ordered[max(0, ceil(share * len(ordered)) - 1)] if ordered else 0


def _jain(ends: Sequence[tuple[Job, int, int]]) -> float:
    """Return Jain's index of the mean slow-down of each team."""
    slow: dict[str, list[float]] = {}
    for job, held, end in ends:
        slow.setdefault(job.team, []).append((end - job.submitted_ms) / max(1, held))
    means = [sum(values) / len(values) for values in slow.values()]
    return _mean(sum(means) ** 2, len(means) * sum(value * value for value in means))
