"""The classic orders: remaining time, remaining work, attained service, deadlines, fair share.

Orders that read `duration_ms` use what only a replay knows; they are baselines, and reproduce
published results.
"""

from collections.abc import Iterable, Sequence

from tenfold.decide.place.ranked.ranking import ALIKE, NEVER, Family, Group, RankedAllocation
from tenfold.fleet.fleet import FleetView
from tenfold.model.job.job import WHOLE, Job, PriorRuns
from tenfold.model.units import SECOND, Millis

NO_GPUS_MILLI = WHOLE // 8
"""The weight of a job without GPUs."""
UNCHANGED: dict[Family, None] = {}
LAS_LIMITS_GPU_S = (3_250, 7_200)
"""Tiresias' three queues, in GPU-seconds of attained service."""


class BaseOrder:
    """Defaults of most orders: one family, one level, nothing learned."""

    preempts = False
    live = False
    tracks_allocations = False
    bounds: Sequence[int] = (0,)

    def begin(self, view: FleetView) -> None:
        """Keep no state."""

    def key(self, job: Job, past: PriorRuns) -> int:
        """First come, first served."""
        return job.submitted_ms

    def family(self, job: Job) -> Family:
        """All jobs are in one family."""
        return ALIKE

    def weight(self, job: Job) -> int:
        """Service is time."""
        return 1

    def rank(self, group: Group) -> float:
        """The head's key."""
        return group.jobs[0][0]

    def bucket_rank(self, family: Family, level: int) -> float:
        """Allocations are never preempted."""
        return 0.0

    def allocation_rank(self, allocation: RankedAllocation, now_ms: Millis) -> float:
        """Time does not change that."""
        return 0.0

    def level_changed(self, job: Job, family: Family, before: int, after: int) -> None:
        """Levels are not learned from."""

    def held(self, allocation: RankedAllocation, sign: int) -> None:
        """Allocations do not matter."""

    def ended(self, view: FleetView, allocation: RankedAllocation) -> None:
        """Ended jobs do not matter."""

    def changed(self, view: FleetView) -> Iterable[Family] | None:
        """Ranks never change."""
        return UNCHANGED


class ShortestRemaining(BaseOrder):
    """Least remaining time first (SRTF), or least remaining GPU time (SRSF)."""

    preempts = True
    live = True

    def __init__(self, *, by_gpus: bool, restart_cost_ms: int = 0) -> None:
        self._by_gpus = by_gpus
        self._restart_cost_ms = restart_cost_ms

    def key(self, job: Job, past: PriorRuns) -> int:
        """Return its remaining time, times its GPUs for SRSF."""
        left = (job.duration_ms or 0) - past.progress_ms
        return left * weight_milli(job) if self._by_gpus else left

    def allocation_rank(self, allocation: RankedAllocation, now_ms: Millis) -> float:
        """Return the remaining time of a running job now."""
        job, before = allocation.job, allocation.before
        resumed_ms = allocation.started_ms + (self._restart_cost_ms if before.runs else 0)
        done = before.progress_ms + max(0, now_ms - resumed_ms)
        left = (job.duration_ms or 0) - done
        return left * weight_milli(job) if self._by_gpus else left


class LeastAttained(BaseOrder):
    """Least attained service first, in a few queues; running jobs first within each."""

    preempts = True

    def __init__(self, limits_gpu_s: Sequence[float] = LAS_LIMITS_GPU_S) -> None:
        self.bounds = (0, *(round(limit * SECOND * WHOLE) for limit in limits_gpu_s))

    def weight(self, job: Job) -> int:
        """Service is GPU time."""
        return weight_milli(job)

    def rank(self, group: Group) -> float:
        """Return the queue."""
        return group.level

    def bucket_rank(self, family: Family, level: int) -> float:
        """Return the queue, ahead of pending jobs in it."""
        return level - 0.5


class EarliestDeadline(BaseOrder):
    """Earliest deadline first; jobs without one come last, in order of arrival."""

    def key(self, job: Job, past: PriorRuns) -> int:
        """Return the deadline."""
        return NEVER if job.deadline_ms is None else job.deadline_ms


class FairShare(BaseOrder):
    """The team with the fewest GPUs goes first; first come, first served within a team."""

    tracks_allocations = True

    def __init__(self) -> None:
        self._held: dict[Family, int] = {}
        self._touched: dict[Family, None] = {}

    def begin(self, view: FleetView) -> None:
        """Reset usage; allocations are reported again."""
        self._held, self._touched = {}, {}

    def family(self, job: Job) -> Family:
        """One family for each team."""
        return (0, job.team, 0, 0)

    def rank(self, group: Group) -> float:
        """Return what the team would hold with its head running."""
        held = self._held.get(group.family, 0)
        return held + weight_milli(group.jobs[0][3])

    def held(self, allocation: RankedAllocation, sign: int) -> None:
        """Count what a team holds."""
        team = self.family(allocation.job)
        self._held[team] = self._held.get(team, 0) + sign * weight_milli(allocation.job)
        self._touched[team] = None

    def changed(self, view: FleetView) -> Iterable[Family] | None:
        """Return the teams whose usage changed."""
        touched, self._touched = self._touched, {}
        return touched


def weight_milli(job: Job) -> int:
    """Return a job's GPUs in thousandths; a job without any counts as an eighth of one."""
    shape = job.shape
    return shape.milli or shape.gpus * WHOLE or NO_GPUS_MILLI
