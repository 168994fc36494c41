"""Metrics of a simulated run, from the ends and stops of its jobs.

Wait is completion time less running time; utilisation is allocated GPU time over what the
fleet had from the first submission to the last end; percentiles are nearest-rank.
"""

from collections.abc import Collection, Sequence
from math import ceil

from msgspec import Struct

from tenfold.model.ids import NodeId
from tenfold.model.job.job import WHOLE, Job, Slot, StopCause
from tenfold.model.reason import Reason
from tenfold.model.units import HOUR, SECOND
from tenfold.sim.run_state import idles_after_ms

End = tuple[Job, tuple[Slot, ...], int, int, int]
"""A job, its last slots, how long it had them, the time of all its runs, and when it was over."""
Stop = tuple[Job, tuple[Slot, ...], int, StopCause, int]
"""A job, its slots, how long it had them, why it stopped, and when."""
Resize = tuple[Job, tuple[Slot, ...], int, int]
"""A job, the slots that it had until then, for how long, and when it got others."""


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
    goodput: float
    """Share of the allocated time that was progress."""
    jain: float
    """Evenness over teams of how much longer jobs took than they ran: 1 is even."""
    resizes: int = 0
    """Times that running jobs went on with more GPUs or fewer, or elsewhere."""


class Meters:
    """Collects a record for each end, stop and resize; all else is summed when asked."""

    def __init__(self) -> None:
        self.ends: list[End] = []
        self.stops: list[Stop] = []
        self.resizes: list[Resize] = []
        self.refused_jobs: list[Job] = []
        self.refused_reasons: list[tuple[Reason, ...]] = []
        """Why, in the same order."""
        self.lost: list[tuple[int, NodeId]] = []
        """When nodes were lost, and when they returned."""
        self.returned: list[tuple[int, NodeId]] = []

    def summary(self, jobs: Sequence[Job], gpus: int) -> Summary:
        """Return the figures of the whole run."""
        return self.by_team(jobs, gpus)[0]

    def by_team(self, jobs: Sequence[Job], gpus: int) -> tuple[Summary, dict[str, Summary]]:
        """Return the figures of the whole run, and of each team in order of name.

        Where no job names a team there are none to tell apart.
        """
        tallies: dict[str, _Tally] = {}
        for job in jobs:
            tally = tallies.get(job.team)
            if tally is None:
                tally = tallies[job.team] = _Tally(job.submitted_ms)
            tally.jobs += 1
        for job, slots, ran, held, end in self.ends:
            tally, shape, jct = tallies[job.team], job.shape, end - job.submitted_ms
            milli = slots[0].gpus * WHOLE if len(slots) == 1 else 0
            tally.milli_ms += (milli or _milli(slots)) * ran
            tally.jcts.append(jct)
            tally.waits += jct - held
            useful_ms = job.duration_ms if job.terms is None else _useful_ms(job)
            tally.useful += (useful_ms or 0) * (shape.gpus * WHOLE or shape.milli)
            tally.slowdown += jct / held if held else 1.0
            tally.last = max(tally.last, end)
        for job, slots, ran, cause, _ in self.stops:
            tallies[job.team].add_stop(_milli(slots) * ran, cause)
        for job, slots, ran, _ in self.resizes:
            tallies[job.team].milli_ms += _milli(slots) * ran
            tallies[job.team].resizes += 1
        for job in self.refused_jobs:
            tallies[job.team].refused += 1
        for tally in tallies.values():
            tally.jcts.sort()  # Sorted parts make the sorting of the whole short.
        whole = _combined(tallies.values())
        teams = {team: tally.summary(gpus) for team, tally in sorted(tallies.items())}
        return whole.summary(gpus), {} if list(teams) == [""] else teams


class _Tally:
    """Running sums over the jobs of one team."""

    def __init__(self, first: int) -> None:
        self.first = first
        """Jobs come in order of submission."""
        self.last = first
        self.jobs = self.refused = self.waits = self.useful = self.milli_ms = 0
        self.preempted = self.failed_runs = self.resizes = 0
        self.jcts: list[int] = []
        self.slowdown = 0.0
        self.slowdown_by_team: list[float] = []

    def add_stop(self, milli_ms: int, cause: StopCause) -> None:
        self.milli_ms += milli_ms
        if cause == "node-lost":
            self.failed_runs += 1
        elif cause != "start-failed":
            self.preempted += 1

    def summary(self, gpus: int) -> Summary:
        jcts = sorted(self.jcts)
        makespan = self.last - self.first
        slowdown = self.slowdown_by_team or [1.0]
        return Summary(
            jobs=self.jobs,
            finished=len(jcts),
            refused=self.refused,
            avg_jct_s=_mean(sum(jcts), len(jcts)) / SECOND,
            p50_jct_s=_nearest(jcts, 0.50) / SECOND,
            p99_jct_s=_nearest(jcts, 0.99) / SECOND,
            avg_wait_s=_mean(self.waits, len(jcts)) / SECOND,
            makespan_s=makespan / SECOND,
            gpu_utilization=_mean(self.milli_ms, gpus * WHOLE * makespan),
            preemptions=self.preempted,
            failures=self.failed_runs,
            gpu_hours=self.milli_ms / WHOLE / HOUR,
            gpu_hours_lost=max(0, self.milli_ms - self.useful) / WHOLE / HOUR,
            goodput=min(1.0, self.useful / self.milli_ms) if self.milli_ms else 1.0,
            jain=sum(slowdown) ** 2 / (len(slowdown) * sum(value * value for value in slowdown)),
            resizes=self.resizes,
        )


def _combined(tallies: Collection[_Tally]) -> _Tally:
    """Return the sums over all teams."""
    whole = _Tally(min((tally.first for tally in tallies), default=0))
    for tally in tallies:
        whole.last = max(whole.last, tally.last)
        whole.jobs += tally.jobs
        whole.refused += tally.refused
        whole.waits += tally.waits
        whole.useful += tally.useful
        whole.milli_ms += tally.milli_ms
        whole.preempted += tally.preempted
        whole.failed_runs += tally.failed_runs
        whole.resizes += tally.resizes
        whole.jcts += tally.jcts
        if tally.jcts:
            whole.slowdown_by_team.append(tally.slowdown / len(tally.jcts))
    return whole


def requested_milli(job: Job) -> int:
    """Return what a job requests in thousandths of a GPU."""
    return job.shape.milli or job.shape.gpus * WHOLE


def _useful_ms(job: Job) -> int | None:
    """Return the useful time of a job: an idle session wastes its GPUs."""
    busy_ms = idles_after_ms(job)
    return job.duration_ms if busy_ms is None else busy_ms


def _milli(slots: Sequence[Slot]) -> int:
    if len(slots) == 1:
        return slots[0].milli or slots[0].gpus * WHOLE
    return sum(slot.milli or slot.gpus * WHOLE for slot in slots)


def _mean(total: float, count: float) -> float:
    return total / count if count else 0.0


def _nearest(ordered: Sequence[int], share: float) -> int:
    return ordered[max(0, ceil(share * len(ordered)) - 1)] if ordered else 0
