"""Jobs that come after others, under policies that know nothing of it."""

import pytest
from msgspec.structs import replace

from tenfold.compose.policies import placing_decider
from tenfold.decide.place.dependency_gate import DependencyGate
from tenfold.engine.loop import Decider
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import RefuseJob, StartJob
from tenfold.model.events import (
    ActionOrdered,
    Event,
    JobCancelled,
    JobEnded,
    JobRefused,
    JobStarted,
    JobSubmitted,
    NodeJoined,
)
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, JobStatus
from tenfold.model.job.terms import Terms
from tenfold.model.policy.policy import Policy, PolicyName
from tenfold.model.units import MINUTE, Millis
from tenfold.testing.builders import job, nodes

NAMES: tuple[PolicyName, ...] = ("fifo", "las", "tenfold", "fair", "slurm", "srtf")


class FairShareOrder:
    """A fleet and a warm decider, turned by hand; every decision is compared with a fresh one's."""

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


def one(number: int, *after: int) -> Job:
    terms = Terms(after=tuple(JobId(f"job-{each}") for each in after)) if after else None
    return replace(job(number, 1), terms=terms, duration_ms=Millis(60_000))


@pytest.fixture(params=NAMES)
def turns(request: pytest.FixtureRequest) -> FairShareOrder:
    return FairShareOrder(request.param)


def test_a_job_starts_when_the_last_of_those_before_it_has_completed(turns: FairShareOrder):
    turns.submit(one(1), one(2), one(3, 1, 2), one(4))
    assert sorted(turns.turn()) == ["start job-1", "start job-2", "start job-4"]
    turns.end(1)
    assert turns.turn() == []
    turns.end(2)
    assert turns.turn() == ["start job-3"]
    turns.submit(one(5))
    assert turns.turn() == ["start job-5"]


def test_a_job_after_one_that_failed_is_refused_and_so_is_the_next(turns: FairShareOrder):
    turns.submit(one(1), one(2, 1), one(3, 2))
    turns.turn()
    turns.end(1, "failed")
    assert turns.turn() == ["refuse job-2: dependency-failed"]
    assert turns.turn() == ["refuse job-3: dependency-failed"]
    assert turns.turn() == []


def test_a_job_that_is_kept_back_can_be_taken_back(turns: FairShareOrder):
    turns.submit(one(1), one(2, 1))
    turns.turn()
    turns.tell(JobCancelled(Millis(2), JobId("job-2")))
    turns.end(1)
    assert turns.turn() == []
    turns.submit(one(3))
    assert turns.turn() == ["start job-3"]


def test_one_that_was_over_before_is_not_waited_for(turns: FairShareOrder):
    turns.submit(one(2, 1))
    assert turns.turn() == ["start job-2"]


def test_governed_teams_have_it_among_their_own_rules():
    assert not isinstance(placing_decider(Policy(name="governed")), DependencyGate)
    assert not isinstance(placing_decider(Policy(), has_gates=False), DependencyGate)
