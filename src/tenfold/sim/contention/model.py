"""Contention: speeds of gangs by profile, and their checkpoints over time.

A checkpoint starts a fixed time after the previous one started and takes as long as its bytes
need at the rate of the tier, which changes with other jobs. All of this happens between events:
it moves the ends of jobs but creates no events.
"""

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from math import ceil, inf

from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, Slot
from tenfold.model.job.traffic import Traffic, WorkProfile
from tenfold.model.units import SECOND
from tenfold.physics.scaling import efficiency_at
from tenfold.sim.contention.solver import ContentionSolver

NEVER = 1 << 62


class _Save:
    """A checkpoint in progress: bytes left, rate, and since when."""

    __slots__ = ("left", "number", "rate", "since_ms")

    def __init__(self, size: float, now_ms: int) -> None:
        self.left = size
        self.rate = 0.0
        self.since_ms = now_ms
        self.number = 0


class ContentionModel:
    """Speeds of running jobs under shared uplinks, tiers and rack power."""

    def __init__(self, solver: ContentionSolver, profiles: Mapping[str, WorkProfile]) -> None:
        self._solver = solver
        self._profiles = profiles
        self._traffic: dict[JobId, Traffic] = {}
        self._scaling_gains: dict[JobId, float] = {}
        """Speed of each job on what it was given, over that on what it requested."""
        self._saves: dict[JobId, _Save] = {}
        self._heap: list[tuple[int, int, JobId, bool]] = []
        """(when, number, job, whether a save begins then or ends)."""
        self._save_starts: dict[JobId, int] = {}
        self._number = 0

    def start(self, job: Job, slots: Sequence[Slot], now_ms: int) -> dict[JobId, float]:
        """Add a job; return the changed speeds. A job without a profile uses nothing."""
        profile = self._profiles.get(job.profile)
        if profile is None:
            return {}
        traffic = self._traffic[job.id] = profile.traffic
        gang = [(slot.node, slot.milli / 1_000 or float(slot.gpus)) for slot in slots]
        self._scaling_gains[job.id] = _scaling_gain(profile, job, sum(gpus for _, gpus in gang))
        speeds = self._solver.start(job.id, gang, traffic)
        self._retime(now_ms)
        if traffic.checkpoint_every_ms:
            self._plan(job.id, now_ms + traffic.checkpoint_every_ms)
        return self._scaled(speeds)

    def end(self, job_id: JobId, now_ms: int) -> dict[JobId, float]:
        """Take a job away, with its save; return the speeds that changed."""
        if self._traffic.pop(job_id, None) is None:
            return {}
        self._saves.pop(job_id, None)
        self._save_starts.pop(job_id, None)
        del self._scaling_gains[job_id]
        speeds = self._solver.end(job_id)
        self._retime(now_ms)
        return self._scaled(speeds)

    def resize(self, job: Job, slots: Sequence[Slot], now_ms: int) -> dict[JobId, float]:
        """Move a job to other slots; return the changed speeds, its own included.

        It restarts there, so a checkpoint in progress is dropped.
        """
        return self.end(job.id, now_ms) | self.start(job, slots, now_ms)

    def due_ms(self) -> int:
        """Return when a save next begins or ends, or NEVER."""
        heap = self._heap
        while heap and not self._is_due(heap[0]):
            heappop(heap)
        return heap[0][0] if heap else NEVER

    def advance(self, now_ms: int) -> dict[JobId, float]:
        """Begin and end the saves that are due; return the speeds that changed."""
        speeds: dict[JobId, float] = {}
        while self.due_ms() <= now_ms:
            _, _, job_id, is_start = heappop(self._heap)
            traffic = self._traffic[job_id]
            if is_start:
                self._plan(job_id, now_ms + traffic.checkpoint_every_ms)
                if job_id in self._saves:
                    continue  # The last save is not done: skip this one.
                self._saves[job_id] = _Save(float(traffic.checkpoint_bytes), now_ms)
            else:
                del self._saves[job_id]
            speeds |= self._solver.burst(job_id, traffic.tier, is_start)
            self._retime(now_ms)
        return self._scaled(speeds)

    def _scaled(self, speeds: Mapping[JobId, float]) -> dict[JobId, float]:
        """Return speeds with what each job makes of the GPUs it was given."""
        return {job_id: speed * self._scaling_gains[job_id] for job_id, speed in speeds.items()}

    def _plan(self, job_id: JobId, at_ms: int) -> None:
        self._number += 1
        self._save_starts[job_id] = self._number
        heappush(self._heap, (at_ms, self._number, job_id, True))

    def _is_due(self, entry: tuple[int, int, JobId, bool]) -> bool:
        _, number, job_id, is_start = entry
        if is_start:
            return self._save_starts.get(job_id) == number
        save = self._saves.get(job_id)
        return save is not None and save.number == number

    def _retime(self, now_ms: int) -> None:
        """Move the ends of saves whose rate has changed."""
        for job_id, rate in self._solver.writes_changed.items():
            save = self._saves.get(job_id)
            if save is None:
                continue
            save.left = max(0.0, save.left - save.rate * (now_ms - save.since_ms) / SECOND)
            save.rate, save.since_ms = rate, now_ms
            self._number += 1
            save.number = self._number
            lasts_ms = save.left / rate * SECOND if rate else inf
            at_ms = NEVER if lasts_ms == inf else ceil(now_ms + lasts_ms)
            heappush(self._heap, (at_ms, save.number, job_id, False))


def _scaling_gain(profile: WorkProfile, job: Job, gpus: float) -> float:
    """Return the speed on these GPUs over that on the GPUs requested, by the scaling curve.

    A gang that takes whole nodes may hold more GPUs than it requested. Without a curve it
    makes nothing of them, unless it is elastic.
    """
    requested = job.shape.gpus
    if not requested or gpus == requested:
        return 1.0
    if not profile.scaling:
        return gpus / requested if job.terms is not None and job.terms.least_gpus else 1.0
    made = gpus * efficiency_at(profile.scaling, gpus)
    return made / (requested * efficiency_at(profile.scaling, requested))
