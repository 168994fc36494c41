"""A fleet that is turned by hand, decision by decision."""

from tenfold.compose.policies import placing_decider
from tenfold.engine.loop import Decider
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import RefuseJob, StartJob
from tenfold.model.events import (
    ActionOrdered,
    Event,
    JobEnded,
    JobRefused,
    JobStarted,
    JobSubmitted,
    NodeJoined,
)
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, JobStatus
from tenfold.model.policy.policy import Policy, PolicyName
from tenfold.model.units import MINUTE, Millis
from tenfold.testing.builders import nodes


class Turns:
    """A fleet and a warm decider; every decision is compared with that of a fresh decider."""

    def __init__(self, name: PolicyName) -> None:
        self.name: PolicyName = name
        self.fleet, self.decider = Fleet(), self._made()
        self.news: list[Event] = []
        self.now = 0
        self.tell(*(NodeJoined(Millis(0), node) for node in nodes(2)))

    def _made(self) -> Decider:
        return placing_decider(Policy(name=self.name))

    def tell(self, *events: Event) -> None:
        self.fleet.apply_all(events)
        self.news += events

    def turn(self) -> list[str]:
        """Decide once, carry it out, and return what was started or refused."""
        self.now += MINUTE
        now = Millis(self.now)
        found = self.decider.decide(self.fleet, now, self.news)
        fresh = self._made().decide(self.fleet, now, None)
        assert list(found.actions) == list(fresh.actions)
        self.news = []
        said: list[str] = []
        for action in found.actions:
            self.tell(ActionOrdered(now, action))
            if isinstance(action, StartJob):
                self.tell(JobStarted(now, action.job_id))
                said.append(f"start {action.job_id}")
            elif isinstance(action, RefuseJob):
                self.tell(JobRefused(now, action.job_id, action.reasons))
                said.append(f"refuse {action.job_id}: {action.reasons[0].code}")
        return said

    def submit(self, *jobs: Job) -> None:
        self.tell(*(JobSubmitted(Millis(self.now), one) for one in jobs))

    def end(self, number: int, status: JobStatus = "completed") -> None:
        self.tell(JobEnded(Millis(self.now), JobId(f"job-{number}"), status))
