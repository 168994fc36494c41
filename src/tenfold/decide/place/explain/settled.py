"""The scheduler state after one cycle: what the policy itself decided for every pending job.

A new scheduling pass runs over the view, so a reason is read where the decision was made rather
than computed a second time. Later questions do not change this state.
"""

from collections.abc import Mapping

from msgspec import Struct

from tenfold.decide.place.queue.pending_queues import JobClass
from tenfold.decide.place.scheduling_pass import SchedulingPass
from tenfold.decide.place.state.scheduler_state import ReservedGang, SchedulerState
from tenfold.fleet.capacity import Slots
from tenfold.fleet.fleet import FleetView
from tenfold.model.actions import RefuseJob, StartJob, StopJob
from tenfold.model.decision import Decision
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.reason import Reason
from tenfold.model.units import Millis


class Starts(Struct, frozen=True):
    """The policy starts it in this cycle."""

    slots: Slots


class Refused(Struct, frozen=True):
    """The policy refuses it: it can never start."""

    reasons: tuple[Reason, ...]


class HeldBack(Struct, frozen=True):
    """Its own terms hold it back from the queue."""

    reason: Reason


class Reserved(Struct, frozen=True):
    """It has reserved nodes."""

    reserved: ReservedGang


class Queued(Struct, frozen=True):
    """It is queued in a class, or alone as a repair."""

    job_class: JobClass
    is_repair: bool = False


JobOutcome = Starts | Refused | HeldBack | Reserved | Queued


class Settled:
    """One moment, decided."""

    def __init__(self, view: FleetView, govern: GovernanceRules, now_ms: Millis) -> None:
        self.view = view
        self.govern = govern
        self.now_ms = now_ms
        self.state = SchedulerState(govern, view, now_ms)
        scheduling_pass = SchedulingPass(self.state, view, now_ms)
        scheduling_pass.admit(view.pending.values())
        self.decision: Decision = scheduling_pass.run()
        self._starts: dict[JobId, Slots] = {}
        self._refused: dict[JobId, tuple[Reason, ...]] = {}
        self.stops: list[StopJob] = []
        """Stops ordered in this cycle: capacity that is being released."""
        for action in self.decision.actions:
            if isinstance(action, StartJob):
                self._starts[action.job_id] = action.slots
            elif isinstance(action, RefuseJob):
                self._refused[action.job_id] = action.reasons
            elif isinstance(action, StopJob):
                self.stops.append(action)
        self.held_back: Mapping[JobId, Reason] = self.state.admission.held_back(view)
        """Jobs that their own terms hold back from the queue, and why."""
        self._repairs = {
            job_class.queue[0][2].id: job_class
            for job_class in self.state.repairs
            if job_class.queue
        }

    def outcome(self, job: Job) -> JobOutcome:
        """Return what the cycle decided for a pending job."""
        assert job.id in self.view.pending, f"job `{job.id}` is not pending"
        job_id = job.id
        if (slots := self._starts.get(job_id)) is not None:
            return Starts(slots)
        if (reasons := self._refused.get(job_id)) is not None:
            return Refused(reasons)
        if (reason := self.held_back.get(job_id)) is not None:
            return HeldBack(reason)
        if (reserved := self.state.reserved.get(job_id)) is not None:
            return Reserved(reserved)
        if (repair := self._repairs.get(job_id)) is not None:
            return Queued(repair, is_repair=True)
        return Queued(self.class_of(job))

    def is_pending_after(self, job_id: JobId) -> bool:
        """Return whether a pending job does not start in this cycle."""
        return job_id in self.view.pending and job_id not in self._starts

    def is_refused(self, job: Job) -> bool:
        """Return whether the cycle refuses a job."""
        return job.id in self._refused

    def class_of(self, job: Job) -> JobClass:
        """Return the class a job is queued in, or would be."""
        state = self.state
        job = state.residency.apply(job)
        team = state.tree.team(job.team)
        job_class = state.queues.get(team, job.priority, job.shape, state.trait(job))
        return job_class or state.class_of(job)

    def ahead(self, job: Job) -> int:
        """Return how many jobs of its own class are ahead of a job."""
        mine = (job.submitted_ms, job.seq)
        return sum(place[:2] < mine for place in self.class_of(job).queue)
