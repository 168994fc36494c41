"""The simulated world: virtual time jumps from event to event, and actions have delays.

Submissions come from a list and everything else from a heap ordered by (time, number), so
that ties keep insertion order. The runs themselves are in `running_jobs`.
"""

from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop
from typing import TYPE_CHECKING

from tenfold.model.actions import Action, RefuseJob, ReserveStart, ResizeJob, StartJob, StopJob
from tenfold.model.events import (
    ActionRefused,
    Event,
    JobEnded,
    JobIdled,
    JobRefused,
    JobStarted,
    JobStopped,
    JobSubmitted,
    NodeLost,
    NodeReturned,
)
from tenfold.model.fault import Fault
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Job, JobStatus
from tenfold.model.reason import JobRef, NodeRef, Reason
from tenfold.model.units import Millis
from tenfold.sim.run_state import NEVER, arrivals, uses, work_at
from tenfold.sim.running_jobs import LimitReached, RunningJobs, TimedEvent
from tenfold.sim.seeded import seeded_fraction
from tenfold.sim.settings import SimSettings

if TYPE_CHECKING:
    from tenfold.sim.contention.model import ContentionModel

__all__ = ["SimSettings", "SimWorld"]


class SimWorld(RunningJobs):
    """What the scheduler does not control: arrivals, ends, faults and delays."""

    def __init__(
        self,
        jobs: Sequence[Job],
        *,
        settings: SimSettings | None = None,
        initial_events: Sequence[Event] = (),
        outages: Iterable[Fault] = (),
        contention: "ContentionModel | None" = None,
        release_ms: Mapping[JobId, Millis] | None = None,
    ) -> None:
        settings = settings or SimSettings()
        super().__init__(jobs, settings, contention)
        self.ends: Mapping[JobId, JobStatus] = {}
        """End status of jobs that do not complete; set before the run."""
        self.last_ms: int = NEVER - 1
        """The end of the simulation; set before the run."""
        self._jobs, self._times = arrivals(jobs, release_ms)
        self._next = 0
        self._next_ms: int = self._times[0]
        self._starts_at_once = settings.start_delay_ms == 0 and settings.start_failure_share == 0.0
        self._initial_events = initial_events
        self._outages = iter(outages)
        self._starting: dict[JobId, StartJob] = {}
        self._tries: dict[JobId, int] = {}
        """Delayed starts per job, so that a retry at the same time draws a new random number."""
        self._down: dict[NodeId, Millis] = {}
        self._push_next_outage()

    def wait(self, until_ms: Millis | None) -> tuple[Millis, Sequence[Event]] | None:
        """Advance to the next event time and return all events at that time."""
        if self._initial_events:
            events, self._initial_events = self._initial_events, ()
            return events[0].at_ms, events
        while self._unfinished:
            heap = self._heap
            now = self._next_ms
            if heap and heap[0][0] < now:
                now = heap[0][0]
            if self._contention is not None:
                now = self._advance(now, until_ms)
            if until_ms is not None and until_ms < now:
                return (until_ms, ()) if until_ms <= self.last_ms else None
            if now > self.last_ms:
                return None
            moment: Millis = now  # pyright: ignore[reportAssignmentType]
            events_now = self._events_at(moment)
            # An end that was moved leaves a stale heap entry, which is no event.
            if events_now or now == until_ms:
                return moment, events_now
        return None

    def _events_at(self, now: Millis) -> list[Event]:
        """Return all events at one time, in insertion order."""
        heap = self._heap
        events: list[Event] = []
        runs, ends = self._runs, self.ends
        while heap and heap[0][0] == now:
            _, number, entry = heappop(heap)
            if isinstance(entry, str):
                run = runs.get(entry)
                if run is not None and run.number == number:
                    self._end(run, now)
                    status = ends.get(entry, "completed") if ends else "completed"
                    events.append(JobEnded(now, entry, status))
            else:
                self._handle(entry, now, events)
        if self._next_ms == now:
            jobs, times, place = self._jobs, self._times, self._next
            while times[place] == now:
                events.append(JobSubmitted(now, jobs[place]))
                place += 1
            self._next = place
            self._next_ms = times[place]
        return events

    def carry_out(self, actions: Sequence[Action], now_ms: Millis) -> Sequence[Event]:
        """Apply actions; those without a delay complete at once. A reserved start needs nothing."""
        outcomes: list[Event] = []
        for action in actions:
            if type(action) is StartJob:
                if self._down and (reason := self._down_reason(action)):
                    outcomes.append(ActionRefused(now_ms, action, reason))
                elif self._starts_at_once:
                    self._begin(action, now_ms)
                    outcomes.append(JobStarted(now_ms, action.job_id))
                else:
                    self._start_with_delay(action, now_ms)
            elif type(action) is StopJob:
                self._stop(action, now_ms, outcomes)
            elif type(action) is ResizeJob:
                self._resize(action, now_ms, outcomes)
            elif type(action) is not ReserveStart:
                assert type(action) is RefuseJob
                self._unfinished -= 1
                self.meters.refused_jobs.append(self._by_id[action.job_id])
                self.meters.refused_reasons.append(action.reasons)
                outcomes.append(JobRefused(now_ms, action.job_id, action.reasons))
        return outcomes

    def work_ms(self, now_ms: Millis) -> dict[JobId, float]:
        """Return the completed work of each running job."""
        return {job_id: work_at(run, now_ms) for job_id, run in self._runs.items()}

    def _advance(self, now: int, until_ms: Millis | None) -> int:
        """Start and end checkpoints before the next event; they move the ends of jobs."""
        assert self._contention is not None
        while True:
            due_ms = self._contention.due_ms()
            limit_ms = now if until_ms is None else min(now, until_ms)
            if due_ms >= limit_ms or due_ms > self.last_ms:
                return now
            self._retime(self._contention.advance(due_ms), due_ms)
            now = min(self._next_ms, self._heap[0][0] if self._heap else NEVER)

    def _stop(self, action: StopJob, now: Millis, outcomes: list[Event]) -> None:
        run = self._runs.get(action.job_id)
        if run is None:
            reason = Reason("job-not-running", {"job": JobRef(action.job_id), "order": "stop"})
            outcomes.append(ActionRefused(now, action, reason))
        elif self._settings.stop_delay_ms:
            self._stopping[action.job_id] = action
            self._push(now + self._settings.stop_delay_ms, action)
        else:
            outcomes.append(self._stop_run(run, now, action.cause))

    def _resize(self, action: ResizeJob, now: Millis, outcomes: list[Event]) -> None:
        run = self._runs.get(action.job_id)
        if run is None:
            reason = Reason("job-not-running", {"job": JobRef(action.job_id), "order": "resize"})
            outcomes.append(ActionRefused(now, action, reason))
        elif run.job.terms is None:
            reason = Reason("job-not-elastic", {"job": JobRef(run.job.id, run.job.team)})
            outcomes.append(ActionRefused(now, action, reason))
        elif self._down and (reason := self._down_reason(action)):
            outcomes.append(ActionRefused(now, action, reason))
        elif self._settings.start_delay_ms:
            self._resizing[action.job_id] = action
            self._push(now + self._settings.start_delay_ms, action)
        else:
            outcomes.append(self._resize_run(action, now))

    def _start_with_delay(self, action: StartJob, now: int) -> None:
        self._starting[action.job_id] = action
        self._push(now + self._settings.start_delay_ms, action)

    def _handle(self, entry: TimedEvent, now: Millis, events: list[Event]) -> None:
        if isinstance(entry, StartJob):
            if self._starting.get(entry.job_id) is entry:
                del self._starting[entry.job_id]
                events.append(self._started(entry, now))
        elif isinstance(entry, StopJob):
            run = self._runs.get(entry.job_id)
            if run is not None and self._stopping.get(entry.job_id) is entry:
                events.append(self._stop_run(run, now, entry.cause))
        elif isinstance(entry, ResizeJob | JobIdled | LimitReached):
            self._handle_terms(entry, now, events)
        elif isinstance(entry, Fault):
            self._lose_node(entry, now, events)
            self._push_next_outage()
        else:
            assert isinstance(entry, NodeReturned)
            if self._down.get(entry.node_id) == now:
                del self._down[entry.node_id]
                self.meters.returned.append((now, entry.node_id))
                events.append(entry)

    def _handle_terms(
        self, entry: ResizeJob | JobIdled | LimitReached, now: Millis, events: list[Event]
    ) -> None:
        if isinstance(entry, LimitReached):
            if self._is_over_limit(entry, now):
                self._end(self._runs[entry.job_id], now)
                events.append(JobEnded(now, entry.job_id, "timeout"))
        elif isinstance(entry, ResizeJob):
            if self._resizing.get(entry.job_id) is entry:
                events.append(self._resize_run(entry, now))
        elif self._idles.get(entry.job_id) is entry:
            del self._idles[entry.job_id]
            events.append(entry)

    def _started(self, action: StartJob, now: Millis) -> Event:
        job_id, share = action.job_id, self._settings.start_failure_share
        tries = self._tries[job_id] = self._tries.get(job_id, 0) + 1
        if share and seeded_fraction(self._settings.seed, "start", job_id, tries) < share:
            work, held = self._progress.get(job_id, (0.0, 0))
            self._progress[job_id] = (work, held)
            return JobStopped(now, job_id, "start-failed", Millis(int(work)))
        self._begin(action, now)
        return JobStarted(now, job_id)

    def _lose_node(self, outage: Fault, now: Millis, events: list[Event]) -> None:
        """Take a node down: first the event, then the gangs it stops."""
        node_id = outage.node_id
        known = self._down.get(node_id)
        if known is None or outage.until_ms > known:
            self._down[node_id] = outage.until_ms
            self._push(outage.until_ms, NodeReturned(outage.until_ms, node_id))
        if known is not None:
            return
        self.meters.lost.append((now, node_id))
        events.append(NodeLost(now, node_id, outage.cause))
        for action in [a for a in self._starting.values() if uses(a.slots, node_id)]:
            del self._starting[action.job_id]
            work, held = self._progress.get(action.job_id, (0.0, 0))
            self._progress[action.job_id] = (work, held)
            events.append(JobStopped(now, action.job_id, "node-lost", Millis(int(work))))
        for run in [run for run in self._runs.values() if uses(run.slots, node_id)]:
            events.append(self._interrupt(run, now, "node-lost", saved=False))
        for action in [a for a in self._resizing.values() if uses(a.slots, node_id)]:
            del self._resizing[action.job_id]
            reason = Reason("node-down", {"node": NodeRef(node_id)})
            events.append(ActionRefused(now, action, reason))

    def _push_next_outage(self) -> None:
        """Keep one future outage in the heap, so that sampling stays lazy."""
        outage = next(self._outages, None)
        if outage is not None:
            self._push(outage.at_ms, outage)

    def _down_reason(self, action: StartJob | ResizeJob) -> Reason | None:
        lost = [slot.node for slot in action.slots if slot.node in self._down]
        return Reason("node-down", {"node": NodeRef(lost[0])}) if lost else None
