"""Simulate the fleet ahead with the real decider, with run times drawn from history.

Arrivals continue as in the recent past: the latest remembered submissions repeat, shifted by a
random part of their span. Every draw depends only on the seed and on names.
"""

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from msgspec.structs import replace

from tenfold.engine.loop import Decider
from tenfold.engine.loop import run as run_loop
from tenfold.fleet.fleet import HISTORY, Fleet, FleetView
from tenfold.model.actions import Action, RefuseJob, ResizeJob, StartJob, StopJob
from tenfold.model.events import (
    Event,
    JobEnded,
    JobRefused,
    JobResized,
    JobStarted,
    JobStopped,
    JobSubmitted,
)
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.units import HOUR, Millis
from tenfold.sim.seeded import seeded_fraction
from tenfold.study.eta.run_times import RunTimeModel

MOST_FACTS = 2_500
"""A simulation is cut off after so many events: bounded by work, not by time."""
ARRIVALS = 400
NEVER = 1 << 62


class SimulatedStart(NamedTuple):
    """When the job started in one simulation, or when it was cut off."""

    at_ms: int
    started: bool
    cut_off: bool
    """Whether it reached the limit on events before the job started."""


def simulate_start(
    fleet: Fleet,
    job_id: JobId,
    now_ms: Millis,
    decider: Decider,
    run_times: RunTimeModel,
    seed: int,
) -> SimulatedStart:
    """Return when a pending job starts with the run times and arrivals of one seed."""
    fork = fleet.fork()
    world = _World(fork, job_id, now_ms, run_times, seed)
    run_loop(world, fork, [decider])
    return SimulatedStart(world.now_ms, world.started, world.is_cut_off)


class _World:
    """Future job ends and arrivals; actions take no time."""

    def __init__(
        self, view: FleetView, job_id: JobId, now_ms: Millis, run_times: RunTimeModel, seed: int
    ) -> None:
        self.now_ms: Millis = now_ms
        self.started = False
        self._job_id, self._run_times, self._seed = job_id, run_times, seed
        self._left = MOST_FACTS
        self._jobs: dict[JobId, Job] = dict(view.pending)
        self._served: dict[JobId, int] = {each: past.ran_ms for each, past in view.past.items()}
        self._run_ms: dict[JobId, int] = {}
        """Total run time of each job, once drawn."""
        self._runs: dict[JobId, tuple[int, int]] = {}
        """(start time, number of its end event in the heap)."""
        self._heap: list[tuple[int, int, JobId]] = []
        self._number = 0
        self._arrivals = _arrivals(view, now_ms, seed)
        self._next = 0
        self._first: list[Event] | None = self._adopt_running(view, now_ms)

    @property
    def is_cut_off(self) -> bool:
        """Whether the limit on events was reached before the job started."""
        return not self.started and self._left <= 0

    def _adopt_running(self, view: FleetView, now_ms: Millis) -> list[Event]:
        """Adopt running jobs, and complete pending actions at once."""
        events: list[Event] = []
        for job_id, run in view.running.items():
            self._jobs[job_id] = run.job
            if run.stopping:
                events.append(JobStopped(now_ms, job_id, "preempted", Millis(0)))
                self._served[job_id] = self._served.get(job_id, 0) + now_ms - run.started_ms
                continue
            if run.becoming is not None:
                events.append(JobResized(now_ms, job_id))
            self._run(run.job, run.started_ms, now_ms)
        for job_id, order in view.orders.items():
            self._jobs[job_id] = order.job
            events.append(JobStarted(now_ms, job_id))
            self._run(order.job, now_ms, now_ms)
        return events

    def wait(self, until_ms: Millis | None) -> tuple[Millis, Sequence[Event]] | None:
        """Jump to the next end or arrival; stop once the job runs or the event limit is reached."""
        if self._first is not None:
            first, self._first = self._first, None
            return self.now_ms, first
        while not self.started and self._left > 0:
            arrival_ms = self._arrival_ms()
            next_ms = min(arrival_ms, self._heap[0][0] if self._heap else NEVER)
            if until_ms is not None and until_ms < next_ms:
                next_ms = until_ms
            if next_ms == NEVER:
                return None
            events = self._facts(Millis(next_ms))
            self._left -= 1 + len(events)
            if events or next_ms == until_ms:
                self.now_ms = Millis(next_ms)
                return self.now_ms, events
        return None

    def carry_out(self, actions: Sequence[Action], now_ms: Millis) -> Sequence[Event]:
        """Carry out actions immediately."""
        outcomes: list[Event] = []
        for action in actions:
            if isinstance(action, StartJob):
                outcomes.append(JobStarted(now_ms, action.job_id))
                self._run(self._jobs[action.job_id], now_ms, now_ms)
                self.started = self.started or action.job_id == self._job_id
            elif isinstance(action, StopJob):
                since_ms, _ = self._runs.pop(action.job_id)
                served = self._served.get(action.job_id, 0) + now_ms - since_ms
                self._served[action.job_id] = served
                outcomes.append(JobStopped(now_ms, action.job_id, action.cause, Millis(served)))
            elif isinstance(action, RefuseJob):
                outcomes.append(JobRefused(now_ms, action.job_id, action.reasons))
            elif isinstance(action, ResizeJob):
                outcomes.append(JobResized(now_ms, action.job_id))
        self._left -= len(outcomes)
        return outcomes

    def _facts(self, now_ms: Millis) -> list[Event]:
        events: list[Event] = []
        heap = self._heap
        while heap and heap[0][0] == now_ms:
            _, number, job_id = heappop(heap)
            if (run := self._runs.get(job_id)) and run[1] == number:
                del self._runs[job_id]
                events.append(JobEnded(now_ms, job_id))
        while self._arrival_ms() == now_ms:
            _, like = self._arrivals.jobs[self._next % len(self._arrivals.jobs)]
            self._next += 1
            name = JobId(f"{like.id}+{self._next}")
            job = replace(like, id=name, submitted_ms=now_ms, seq=self._arrivals.seq + self._next)
            self._jobs[name] = job
            events.append(JobSubmitted(now_ms, job))
        return events

    def _arrival_ms(self) -> int:
        arrivals = self._arrivals
        if not arrivals.jobs:
            return NEVER
        rounds, place = divmod(self._next, len(arrivals.jobs))
        return arrivals.jobs[place][0] + rounds * arrivals.span_ms

    def _run(self, job: Job, since_ms: int, now_ms: int) -> None:
        served = self._served.get(job.id, 0)
        run_ms = self._run_ms.get(job.id)
        if run_ms is None:
            run_ms = self._drawn(job, served + now_ms - since_ms)
            self._run_ms[job.id] = run_ms
        self._number += 1
        self._runs[job.id] = (since_ms, self._number)
        end_ms = since_ms + run_ms - served
        if job.limit_ms is not None:
            end_ms = min(end_ms, since_ms + job.limit_ms)
        if end_ms < NEVER:
            heappush(self._heap, (max(now_ms + 1, end_ms), self._number, job.id))

    def _drawn(self, job: Job, ran_ms: int) -> int:
        """Return how long a job runs in all; without enough history, until its time limit."""
        if not self._run_times.is_known:
            return 2 * NEVER
        return self._run_times.draw(job, ran_ms, seeded_fraction(self._seed, "length", job.id))


class _Arrivals(NamedTuple):
    """Future arrivals with their times; they repeat after `span_ms`."""

    jobs: list[tuple[int, Job]]
    span_ms: int
    seq: int


def _arrivals(view: FleetView, now_ms: int, seed: int) -> _Arrivals:
    """Return recent arrivals, rotated within their span by a random part of it."""
    jobs = [ended.job for ended in view.history]
    jobs += [run.job for run in view.running.values()]
    jobs += list(view.pending.values())
    # Jobs submitted before the oldest remembered end are only partly known.
    since_ms = view.history[0].ended_ms if len(view.history) >= HISTORY else -NEVER
    # A copy would depend on the original's dependencies, which have ended or are not its own.
    jobs = [job for job in jobs if since_ms <= job.submitted_ms <= now_ms and job.terms is None]
    jobs.sort(key=lambda job: (job.submitted_ms, job.seq))
    seq = max((job.seq for job in jobs), default=0)
    jobs = jobs[-ARRIVALS:]
    if not jobs:
        return _Arrivals([], HOUR, 0)
    begin_ms = jobs[0].submitted_ms
    span_ms = max(HOUR, now_ms - begin_ms)
    shift_ms = int(span_ms * seeded_fraction(seed, "arrivals"))
    times = [((job.submitted_ms - begin_ms + shift_ms) % span_ms, job) for job in jobs]
    times.sort(key=lambda each: (each[0], each[1].seq))
    return _Arrivals([(now_ms + 1 + after, job) for after, job in times], span_ms, seq)
