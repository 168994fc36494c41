"""The simulated world: time jumps from fact to fact, and hands take time.

Submissions come from a list and everything else from a heap ordered by (time, number), so
that ties keep the order in which they were made. A run that changes (stopped, slowed by a
neighbour) leaves its old end in the heap; the number tells a stale end from a true one.
"""

from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from math import ceil
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from tenfold.model.actions import Action, RefuseJob, StartJob, StopJob
from tenfold.model.events import (
    ActionRefused,
    Event,
    JobEnded,
    JobRefused,
    JobStarted,
    JobStopped,
    JobSubmitted,
    NodeLost,
    NodeReturned,
)
from tenfold.model.fault import Fault
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job import Job, Slot, StopCause
from tenfold.model.reason import Reason
from tenfold.model.units import HOUR, Millis
from tenfold.sim.chance import fraction
from tenfold.sim.meters import Meters

if TYPE_CHECKING:
    from tenfold.sim.neighbourhood import Neighbourhood

NEVER = 1 << 62


class SimSettings(Struct, frozen=True, kw_only=True):
    """How the simulated hands behave. The defaults are those of published replays."""

    restart_cost_ms: Millis = Millis(0)
    """What each run but the first pays before it goes on; a failed start counts as a run."""
    checkpoint_every_ms: Millis = Millis(HOUR)
    """Work since the last checkpoint is lost with a node; a preempted job saves on notice."""
    start_delay_ms: Millis = Millis(0)
    stop_delay_ms: Millis = Millis(0)
    start_failure_share: float = 0.0
    """Share of starts that fail after their delay; the job waits again."""
    seed: int = 0


class _Run(Struct, frozen=True, gc=False):
    job: Job
    slots: tuple[Slot, ...]
    number: int
    started_ms: int
    since_ms: int
    """When `work_ms` and `speed` held; the future while a restart is being paid."""
    work_ms: float
    speed: float


_Due = JobId | StartJob | StopJob | Fault | NodeReturned
"""What the heap holds: an end, an order whose delay is over, a node that fails or returns."""


class SimWorld:
    """Everything a simulated fleet cannot decide: arrivals, ends, faults, delays."""

    def __init__(
        self,
        jobs: Sequence[Job],
        *,
        settings: SimSettings | None = None,
        before: Sequence[Event] = (),
        outages: Iterable[Fault] = (),
        neighbours: "Neighbourhood | None" = None,
        release_ms: Mapping[JobId, Millis] | None = None,
    ) -> None:
        self.meters = Meters()
        self._jobs, self._times = _arrivals(jobs, release_ms)
        self._next = 0
        self._next_ms: int = self._times[0]
        self._by_id: dict[JobId, Job] = {job.id: job for job in jobs}
        self._settings = settings = settings or SimSettings()
        self._simple = settings.start_delay_ms == 0 and settings.start_failure_share == 0.0
        self._before = before
        self._outages = iter(outages)
        self._neighbours = neighbours
        self._heap: list[tuple[int, int, _Due]] = []
        self._number = 0
        self._runs: dict[JobId, _Run] = {}
        self._starting: dict[JobId, StartJob] = {}
        self._stopping: dict[JobId, StopJob] = {}
        """Stops under way: one that a lost node has forestalled must not hit the next run."""
        self._tries: dict[JobId, int] = {}
        """Starts that had a delay, so that a failed one may do better at the same moment."""
        self._progress: dict[JobId, tuple[float, int]] = {}
        """Work saved and time held so far, of jobs that ran before."""
        self._down: dict[NodeId, Millis] = {}
        self._unfinished = len(jobs)
        self._queue_outage()

    def wait(self, until_ms: Millis | None) -> tuple[Millis, Sequence[Event]] | None:
        """Jump to the next moment and return all of its facts."""
        if self._before:
            joined, self._before = self._before, ()
            return joined[0].at_ms, joined
        while self._unfinished:
            heap = self._heap
            now = self._next_ms
            if heap and heap[0][0] < now:
                now = heap[0][0]
            if self._neighbours is not None:
                now = self._advance(now, until_ms)
            if until_ms is not None and until_ms < now:
                return until_ms, ()
            if now == NEVER:
                return None
            moment: Millis = now  # pyright: ignore[reportAssignmentType]
            facts = self._facts(moment)
            # An end that was moved leaves its old place behind, which is no fact.
            if facts or now == until_ms:
                return moment, facts
        return None

    def _facts(self, now: Millis) -> list[Event]:
        """Return all that happens at one moment, in the order in which it was made."""
        heap = self._heap
        events: list[Event] = []
        while heap and heap[0][0] == now:
            _, number, what = heappop(heap)
            if isinstance(what, str):
                run = self._runs.get(what)
                if run is not None and run.number == number:
                    self._end(run, now)
                    events.append(JobEnded(now, what))
            else:
                self._happen(what, now, events)
        if self._next_ms == now:
            jobs, times, place = self._jobs, self._times, self._next
            while times[place] == now:
                events.append(JobSubmitted(now, jobs[place]))
                place += 1
            self._next = place
            self._next_ms = times[place]
        return events

    def carry_out(self, actions: Sequence[Action], now_ms: Millis) -> Sequence[Event]:
        """Start actions; starts and stops without a delay are over at once."""
        outcomes: list[Event] = []
        for action in actions:
            if type(action) is StartJob:
                if self._down and (gone := self._gone(action)):
                    outcomes.append(ActionRefused(now_ms, action, gone))
                elif self._simple:
                    self._begin(action, now_ms)
                    outcomes.append(JobStarted(now_ms, action.job_id))
                else:
                    self._start_later(action, now_ms)
            elif type(action) is StopJob:
                self._stop(action, now_ms, outcomes)
            else:
                assert type(action) is RefuseJob
                self._unfinished -= 1
                self.meters.turned_away.append(self._by_id[action.job_id])
                outcomes.append(JobRefused(now_ms, action.job_id, action.reasons))
        return outcomes

    def _advance(self, now: int, until_ms: Millis | None) -> int:
        """Let saves begin and end before the next fact; they move the ends of jobs."""
        assert self._neighbours is not None
        while True:
            due_ms = self._neighbours.due_ms()
            limit_ms = now if until_ms is None else min(now, until_ms)
            if due_ms >= limit_ms:
                return now
            self._retime(self._neighbours.advance(due_ms), due_ms)
            now = min(self._next_ms, self._heap[0][0] if self._heap else NEVER)

    def _push(self, at_ms: int, what: _Due) -> int:
        self._number += 1
        heappush(self._heap, (at_ms, self._number, what))
        return self._number

    def _begin(self, action: StartJob, now: int) -> None:
        job_id = action.job_id
        job = self._by_id[job_id]
        duration = job.duration_ms
        assert duration is not None, f"job `{job_id}` has no duration to simulate"
        self._number = number = self._number + 1
        if self._progress and (behind := self._progress.get(job_id)):
            work, since = behind[0], now + self._settings.restart_cost_ms
            heappush(self._heap, (ceil(since + duration - work), number, job_id))
            self._runs[job_id] = _Run(job, action.slots, number, now, since, work, 1.0)
        else:
            heappush(self._heap, (now + duration, number, job_id))
            self._runs[job_id] = _Run(job, action.slots, number, now, now, 0.0, 1.0)
        if self._neighbours is not None:
            self._retime(self._neighbours.start(job, action.slots, now), now)

    def _end(self, run: _Run, now: int) -> None:
        job = run.job
        del self._runs[job.id]
        held = now - run.started_ms
        if self._progress and (behind := self._progress.pop(job.id, None)):
            held += behind[1]
        self._unfinished -= 1
        self.meters.ends.append((job, run.slots, now - run.started_ms, held, now))
        if self._neighbours is not None:
            self._retime(self._neighbours.end(job.id, now), now)

    def _stop(self, action: StopJob, now: Millis, outcomes: list[Event]) -> None:
        run = self._runs.get(action.job_id)
        if run is None:
            reason = Reason("job-not-running", f"job `{action.job_id}` was over before its stop")
            outcomes.append(ActionRefused(now, action, reason))
        elif self._settings.stop_delay_ms:
            self._stopping[action.job_id] = action
            self._push(now + self._settings.stop_delay_ms, action)
        else:
            outcomes.append(self._halt(run, now, action.cause, saved=True))

    def _halt(self, run: _Run, now: Millis, cause: StopCause, *, saved: bool) -> JobStopped:
        """Take a run off its slots; without notice the work since its checkpoint is lost."""
        job = run.job
        del self._runs[job.id]
        self._stopping.pop(job.id, None)
        before, held = self._progress.get(job.id, (0.0, 0))
        work = max(before, _work(run, now))
        if not saved:
            every = self._settings.checkpoint_every_ms
            work = max(before, work // every * every) if every else before
        self._progress[job.id] = (work, held + now - run.started_ms)
        self.meters.stops.append((job, run.slots, now - run.started_ms, cause, now))
        if self._neighbours is not None:
            self._retime(self._neighbours.end(job.id, now), now)
        return JobStopped(now, job.id, cause, Millis(int(work)))

    def _retime(self, speeds: Mapping[JobId, float], now: int) -> None:
        """Move the ends of runs whose speed has changed."""
        for job_id, speed in speeds.items():
            run = self._runs[job_id]
            if run.speed == speed:
                continue
            duration = run.job.duration_ms
            assert duration is not None
            work, since = _work(run, now), max(now, run.since_ms)
            number = self._push(ceil(since + (duration - work) / speed), job_id)
            self._runs[job_id] = replace(
                run, number=number, since_ms=since, work_ms=work, speed=speed
            )

    def _start_later(self, action: StartJob, now: int) -> None:
        self._starting[action.job_id] = action
        self._push(now + self._settings.start_delay_ms, action)

    def _happen(
        self, what: StartJob | StopJob | Fault | NodeReturned, now: Millis, events: list[Event]
    ) -> None:
        if isinstance(what, StartJob):
            if self._starting.get(what.job_id) is what:
                del self._starting[what.job_id]
                events.append(self._started(what, now))
        elif isinstance(what, StopJob):
            run = self._runs.get(what.job_id)
            if run is not None and self._stopping.get(what.job_id) is what:
                events.append(self._halt(run, now, what.cause, saved=True))
        elif isinstance(what, Fault):
            self._lose(what, now, events)
            self._queue_outage()
        else:
            assert isinstance(what, NodeReturned)
            if self._down.get(what.node_id) == now:
                del self._down[what.node_id]
                self.meters.returned.append((now, what.node_id))
                events.append(what)

    def _started(self, action: StartJob, now: Millis) -> Event:
        job_id, share = action.job_id, self._settings.start_failure_share
        tries = self._tries[job_id] = self._tries.get(job_id, 0) + 1
        if share and fraction(self._settings.seed, "start", job_id, tries) < share:
            work, held = self._progress.get(job_id, (0.0, 0))
            self._progress[job_id] = (work, held)
            return JobStopped(now, job_id, "start-failed", Millis(int(work)))
        self._begin(action, now)
        return JobStarted(now, job_id)

    def _lose(self, outage: Fault, now: Millis, events: list[Event]) -> None:
        """A node goes: first the fact, then the gangs it breaks."""
        node_id = outage.node_id
        known = self._down.get(node_id)
        if known is None or outage.until_ms > known:
            self._down[node_id] = outage.until_ms
            self._push(outage.until_ms, NodeReturned(outage.until_ms, node_id))
        if known is not None:
            return
        self.meters.lost.append((now, node_id))
        events.append(NodeLost(now, node_id, outage.cause))
        for action in [a for a in self._starting.values() if _uses(a.slots, node_id)]:
            del self._starting[action.job_id]
            work, held = self._progress.get(action.job_id, (0.0, 0))
            self._progress[action.job_id] = (work, held)
            events.append(JobStopped(now, action.job_id, "node-lost", Millis(int(work))))
        for run in [run for run in self._runs.values() if _uses(run.slots, node_id)]:
            events.append(self._halt(run, now, "node-lost", saved=False))

    def _queue_outage(self) -> None:
        """Keep one coming outage in the heap, so that a long law of failures stays lazy."""
        outage = next(self._outages, None)
        if outage is not None:
            self._push(outage.at_ms, outage)

    def _gone(self, action: StartJob) -> Reason | None:
        lost = [slot.node for slot in action.slots if slot.node in self._down]
        return Reason("node-down", f"node `{lost[0]}` is down") if lost else None


def _arrivals(
    jobs: Sequence[Job], release_ms: Mapping[JobId, Millis] | None
) -> tuple[Sequence[Job], list[int]]:
    """Return jobs in the order in which they come, and when, with an end that never comes."""
    if release_ms:
        times = {job.id: release_ms.get(job.id, job.submitted_ms) for job in jobs}
        jobs = sorted(jobs, key=lambda job: times[job.id])
        return jobs, [*(times[job.id] for job in jobs), NEVER]
    return jobs, [*(job.submitted_ms for job in jobs), NEVER]


def _work(run: _Run, now: int) -> float:
    return run.work_ms + max(0, now - run.since_ms) * run.speed


def _uses(slots: Sequence[Slot], node_id: NodeId) -> bool:
    return any(slot.node == node_id for slot in slots)
