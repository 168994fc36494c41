"""Running jobs of the simulated world: start, resize, stop, end and checkpoints.

A run that changes (resized, slowed by contention) leaves its old end in the heap; the number
marks the valid one. Jobs without terms skip all work for terms.
"""

from collections.abc import Mapping, Sequence
from heapq import heappush
from math import ceil
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from tenfold.model.actions import ResizeJob, StartJob, StopJob
from tenfold.model.events import JobEnded, JobIdled, JobResized, JobStopped, NodeReturned
from tenfold.model.fault import Fault
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, StopCause, own_speed
from tenfold.model.units import Millis
from tenfold.sim.measure.meters import Meters
from tenfold.sim.run_state import RunState, idles_after_ms, reaches_ms, work_at
from tenfold.sim.settings import SimSettings

if TYPE_CHECKING:
    from tenfold.sim.contention.model import ContentionModel


class LimitReached(Struct, frozen=True, eq=False):
    """The time limit of a run."""

    job_id: JobId


TimedEvent = StartJob | StopJob | ResizeJob | JobIdled | LimitReached | Fault | NodeReturned
HeapEntry = JobId | TimedEvent
"""What the heap holds: an end, an order whose delay is over, a session that idles, a time limit,
a node that fails or returns."""


class RunningJobs:
    """Running jobs, their progress and when they end."""

    def __init__(
        self,
        jobs: Sequence[Job],
        settings: SimSettings,
        contention: "ContentionModel | None",
    ) -> None:
        self.meters = Meters()
        self._settings = settings
        self._contention = contention
        self._by_id: dict[JobId, Job] = {job.id: job for job in jobs}
        self._unfinished = len(jobs)
        self._heap: list[tuple[int, int, HeapEntry]] = []
        self._number = 0
        self._runs: dict[JobId, RunState] = {}
        self._stopping: dict[JobId, StopJob] = {}
        """Stops in progress: one that a node failure made obsolete must not hit the next run."""
        self._resizing: dict[JobId, ResizeJob] = {}
        self._slots_since: dict[JobId, int] = {}
        """When resized runs got their current slots."""
        self._idles: dict[JobId, JobIdled] = {}
        """Sessions that will become idle; a run that changes leaves a stale entry in the heap."""
        self._limits: dict[JobId, LimitReached] = {}
        """Time limits that runs may reach; a run that ended leaves a stale entry in the heap."""
        self._progress: dict[JobId, tuple[float, int]] = {}
        """Saved work and time held so far, of jobs that ran before or were resized."""

    def _push(self, at_ms: int, entry: HeapEntry) -> int:
        self._number += 1
        heappush(self._heap, (at_ms, self._number, entry))
        return self._number

    def _begin(self, action: StartJob, now: int) -> None:
        job_id = action.job_id
        job = self._by_id[job_id]
        duration = job.duration_ms
        assert duration is not None, f"job `{job_id}` has no duration to simulate"
        self._number = number = self._number + 1
        if self._progress and (progress := self._progress.get(job_id)):
            work, since = progress[0], now + self._settings.restart_cost_ms
            heappush(self._heap, (ceil(since + duration - work), number, job_id))
            self._runs[job_id] = RunState(job, action.slots, number, now, since, work, 1.0)
        else:
            heappush(self._heap, (now + duration, number, job_id))
            self._runs[job_id] = RunState(job, action.slots, number, now, now, 0.0, 1.0)
        if job.limit_ms is not None:
            self._schedule_limit(self._runs[job_id], now)
        if job.terms is not None:
            self._apply_terms(self._runs[job_id], now)
        if self._contention is not None:
            self._retime(self._contention.start(job, action.slots, now), now)

    def _apply_terms(self, run: RunState, now: int) -> None:
        """Apply the speed and the idle time from the terms of a job."""
        job_id = run.job.id
        self._retime({job_id: own_speed(run.job, run.slots)}, now)
        if idles_after_ms(run.job) is not None:
            self._schedule_idle(self._runs[job_id])

    def _schedule_idle(self, run: RunState) -> None:
        busy_ms = idles_after_ms(run.job)
        assert busy_ms is not None, f"job `{run.job.id}` is in use to its end"
        at_ms = Millis(reaches_ms(run, busy_ms))
        idled = self._idles[run.job.id] = JobIdled(at_ms, run.job.id, at_ms)
        self._push(at_ms, idled)

    def _schedule_limit(self, run: RunState, now: int) -> None:
        """Schedule the time limit of an attempt that begins now, unless it cannot reach it."""
        job = run.job
        assert job.limit_ms is not None, f"job `{job.id}` has no time limit"
        at_ms = now + job.limit_ms
        is_steady = job.terms is None and self._contention is None
        if is_steady and reaches_ms(run, job.duration_ms or 0) <= at_ms:
            return
        limit = self._limits[job.id] = LimitReached(job.id)
        self._push(at_ms, limit)

    def _is_over_limit(self, entry: LimitReached, now: int) -> bool:
        """Return whether a run reaches its time limit now, with work left to do."""
        run = self._runs.get(entry.job_id)
        if run is None or self._limits.get(entry.job_id) is not entry:
            return False
        del self._limits[entry.job_id]
        # A run that is being stopped ends as stopped, and one whose work is done completes.
        is_done = work_at(run, now) >= (run.job.duration_ms or 0)
        return entry.job_id not in self._stopping and not is_done

    def _end(self, run: RunState, now: int) -> None:
        job = run.job
        del self._runs[job.id]
        if self._limits:
            self._limits.pop(job.id, None)
        held = now - run.started_ms
        ran = held if job.terms is None else self._clear_plans(run, now)
        if self._progress and (progress := self._progress.pop(job.id, None)):
            held += progress[1]
        self._unfinished -= 1
        self.meters.ends.append((job, run.slots, ran, held, now))
        if self._contention is not None:
            self._retime(self._contention.end(job.id, now), now)

    def _stop_run(self, run: RunState, now: Millis, cause: StopCause) -> JobEnded | JobStopped:
        """Stop a run on request; an idle session ends."""
        if cause == "idle":
            self._end(run, now)
            return JobEnded(now, run.job.id, "cancelled")
        return self._interrupt(run, now, cause, saved=True)

    def _interrupt(
        self, run: RunState, now: Millis, cause: StopCause, *, saved: bool
    ) -> JobStopped:
        """Remove a run from its slots; without notice, work since the checkpoint is lost."""
        job, every = run.job, self._settings.checkpoint_every_ms
        del self._runs[job.id]
        self._limits.pop(job.id, None)
        self._stopping.pop(job.id, None)
        ran = held_now = now - run.started_ms
        if job.terms is not None:
            ran = self._clear_plans(run, now)
            if job.terms.checkpoint_every_ms is not None:
                saved, every = False, job.terms.checkpoint_every_ms
        before, held = self._progress.get(job.id, (0.0, 0))
        work = max(before, work_at(run, now))
        if not saved:
            work = max(before, work // every * every) if every else before
        self._progress[job.id] = (work, held + held_now)
        self.meters.stops.append((job, run.slots, ran, cause, now))
        if self._contention is not None:
            self._retime(self._contention.end(job.id, now), now)
        return JobStopped(now, job.id, cause, Millis(int(work)))

    def _clear_plans(self, run: RunState, now: int) -> int:
        """Clear the plans of an ended run; return how long it had its slots."""
        job_id = run.job.id
        self._resizing.pop(job_id, None)
        self._idles.pop(job_id, None)
        return now - self._slots_since.pop(job_id, run.started_ms)

    def _resize_run(self, action: ResizeJob, now: Millis) -> JobResized:
        """Continue a run on other slots with all of its work: a resize saves."""
        job_id, slots = action.job_id, action.slots
        run = self._runs[job_id]
        job, work = run.job, min(work_at(run, now), float(run.job.duration_ms or 0))
        self._resizing.pop(job_id, None)
        self.meters.resizes.append(
            (job, run.slots, now - self._slots_since.get(job_id, run.started_ms), now)
        )
        self._slots_since[job_id] = now
        self._progress[job_id] = (work, self._progress.get(job_id, (0.0, 0))[1])
        is_moved = set(slots) != set(run.slots)
        since = now + self._settings.restart_cost_ms if is_moved else max(now, run.since_ms)
        speed, other_speeds = own_speed(job, slots), dict[JobId, float]()
        if self._contention is not None:
            other_speeds = self._contention.resize(job, slots, now)
            speed = other_speeds.pop(job_id, speed)
        self._reschedule(replace(run, slots=slots, since_ms=since, work_ms=work, speed=speed))
        if job.limit_ms is not None:
            # A resize is a new attempt, and the limit is one of attempts.
            self._schedule_limit(self._runs[job_id], now)
        self._retime(other_speeds, now)
        return JobResized(now, job_id)

    def _retime(self, speeds: Mapping[JobId, float], now: int) -> None:
        """Move the ends of runs whose speed has changed."""
        for job_id, speed in speeds.items():
            run = self._runs[job_id]
            if run.speed == speed:
                continue
            work, since = work_at(run, now), max(now, run.since_ms)
            self._reschedule(replace(run, since_ms=since, work_ms=work, speed=speed))

    def _reschedule(self, run: RunState) -> None:
        """Replace a changed run and schedule its end again."""
        job_id, duration = run.job.id, run.job.duration_ms
        assert duration is not None, f"job `{job_id}` has no duration to simulate"
        number = self._push(reaches_ms(run, duration), job_id)
        self._runs[job_id] = run = replace(run, number=number)
        if self._idles and job_id in self._idles:
            self._schedule_idle(run)
