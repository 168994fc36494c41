"""The books as one cycle leaves them: what the decider itself says about every waiting job.

A fresh scheduling pass is made over the view, so that a reason is read where the decision was
made and not worked out a second time. What is asked afterwards leaves these books as they are.
"""

from collections.abc import Mapping

from msgspec import Struct

from tenfold.decide.place.queue.pending_queues import Class
from tenfold.decide.place.scheduling_pass import SchedulingPass
from tenfold.decide.place.state.scheduler_state import Books, Promised
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
    """The decider starts it in this very cycle."""

    slots: Slots


class Never(Struct, frozen=True):
    """The decider refuses it: it can never start."""

    reasons: tuple[Reason, ...]


class HeldBack(Struct, frozen=True):
    """Its own terms keep it out of the lines."""

    reason: Reason


class Kept(Struct, frozen=True):
    """Nodes are kept for it."""

    promised: Promised


class InLine(Struct, frozen=True):
    """It waits in a class, or alone where it is to be repaired."""

    cls: Class
    is_repair: bool = False


Fate = Starts | Never | HeldBack | Kept | InLine


class Settled:
    """One moment, decided."""

    def __init__(self, view: FleetView, govern: GovernanceRules, now_ms: Millis) -> None:
        self.view = view
        self.govern = govern
        self.now_ms = now_ms
        self.books = Books(govern, view, now_ms)
        this = SchedulingPass(self.books, view, now_ms)
        this.admit(sorted(view.pending.values(), key=_arrival))
        self.decision: Decision = this.run()
        self._starts: dict[JobId, Slots] = {}
        self._refused: dict[JobId, tuple[Reason, ...]] = {}
        self.stops: list[StopJob] = []
        """Stops that the cycle orders: room that is being made."""
        for action in self.decision.actions:
            if isinstance(action, StartJob):
                self._starts[action.job_id] = action.slots
            elif isinstance(action, RefuseJob):
                self._refused[action.job_id] = action.reasons
            elif isinstance(action, StopJob):
                self.stops.append(action)
        self.held_back: Mapping[JobId, Reason] = self.books.admission.held_back(view)
        """Jobs that their own terms keep out of the lines, and by what."""
        self._repairs = {cls.line[0][2].id: cls for cls in self.books.repairs if cls.line}

    def fate(self, job: Job) -> Fate:
        """Return what the cycle made of a waiting job."""
        assert job.id in self.view.pending, f"job `{job.id}` does not wait"
        job_id = job.id
        if (slots := self._starts.get(job_id)) is not None:
            return Starts(slots)
        if (reasons := self._refused.get(job_id)) is not None:
            return Never(reasons)
        if (reason := self.held_back.get(job_id)) is not None:
            return HeldBack(reason)
        if (promised := self.books.promised.get(job_id)) is not None:
            return Kept(promised)
        if (repair := self._repairs.get(job_id)) is not None:
            return InLine(repair, is_repair=True)
        return InLine(self.class_of(job))

    def is_refused(self, job: Job) -> bool:
        """Return whether the cycle turns a job away."""
        return job.id in self._refused

    def class_of(self, job: Job) -> Class:
        """Return the class that a job waits in, or would."""
        books = self.books
        team = books.tree.team(job.team)
        cls = books.lines.get(team, job.priority, job.shape, books.trait(job))
        return cls or books.class_of(job)

    def ahead(self, job: Job) -> int:
        """Return how many jobs of its own class go before a job."""
        mine = (job.submitted_ms, job.seq)
        return sum(place[:2] < mine for place in self.class_of(job).line)


def _arrival(job: Job) -> tuple[int, int]:
    return job.submitted_ms, job.seq
