"""What a simulated run measures, from the ends and stops of its jobs.

Wait is completion time less running time; utilisation is allocated GPU time over what the
fleet had from the first submission to the last end; percentiles are nearest-rank.
"""

from collections.abc import Sequence
from math import ceil

from msgspec import Struct

from tenfold.model.job import WHOLE, Job, Slot, StopCause
from tenfold.model.units import HOUR, SECOND

End = tuple[Job, int, int]
"""A job, the time it held its GPUs in all its runs, and when it was over."""


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
        self.ends: list[End] = []
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

    def summary(self, jobs: Sequence[Job], gpus: int) -> Summary:
        """Return the figures of the whole run."""
        return _summary(
            jobs, self.ends, self.turned_away, self.stops, sum(self._milli_ms.values()), gpus
        )

    def teams(self, jobs: Sequence[Job], gpus: int) -> dict[str, Summary]:
        """Return the figures of each team, in order of name; none where no team is named."""
        parts: dict[str, _Part] = {}
        for job in jobs:
            parts.setdefault(job.team, _Part()).jobs.append(job)
        if list(parts) == [""]:
            return {}
        for end in self.ends:
            parts[end[0].team].ends.append(end)
        for job in self.turned_away:
            parts[job.team].refused.append(job)
        for stop in self.stops:
            parts[stop[0].team].stops.append(stop)
        return {
            team: _summary(
                part.jobs, part.ends, part.refused, part.stops, self._milli_ms.get(team, 0), gpus
            )
            for team, part in sorted(parts.items())
        }


class _Part:
    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.ends: list[End] = []
        self.refused: list[Job] = []
        self.stops: list[tuple[Job, StopCause]] = []


def _summary(
    jobs: Sequence[Job],
    ends: Sequence[End],
    refused: Sequence[Job],
    stops: Sequence[tuple[Job, StopCause]],
    milli_ms: int,
    gpus: int,
) -> Summary:
    jcts: list[int] = []
    waits = useful = last = 0
    for job, held, end in ends:
        jct = end - job.submitted_ms
        jcts.append(jct)
        waits += jct - held
        useful += (job.duration_ms or 0) * asked_milli(job)
        last = max(last, end)
    jcts.sort()
    first = min((job.submitted_ms for job in jobs), default=0)
    makespan = max(0, last - first)
    causes = [cause for _, cause in stops]
    return Summary(
        jobs=len(jobs),
        finished=len(ends),
        refused=len(refused),
        avg_jct_s=_mean(sum(jcts), len(jcts)) / SECOND,
        p50_jct_s=_nearest(jcts, 0.50) / SECOND,
        p99_jct_s=_nearest(jcts, 0.99) / SECOND,
        avg_wait_s=_mean(waits, len(jcts)) / SECOND,
        makespan_s=makespan / SECOND,
        gpu_utilization=_mean(milli_ms, gpus * WHOLE * makespan),
        preemptions=sum(cause in ("preempted", "moved") for cause in causes),
        failures=causes.count("node-lost"),
        gpu_hours=milli_ms / WHOLE / HOUR,
        gpu_hours_lost=max(0, milli_ms - useful) / WHOLE / HOUR,
        jain=_jain(ends),
    )


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


def _jain(ends: Sequence[End]) -> float:
    """Return Jain's index of the mean slow-down of each team."""
    slow: dict[str, list[float]] = {}
    for job, held, end in ends:
        slow.setdefault(job.team, []).append((end - job.submitted_ms) / max(1, held))
    means = [sum(values) / len(values) for values in slow.values()]
    return _mean(sum(means) ** 2, len(means) * sum(value * value for value in means))
