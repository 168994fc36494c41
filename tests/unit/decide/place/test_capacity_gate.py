"""Jobs that no node can run yet wait for nodes to join, where they allow it."""

import pytest
from msgspec.structs import replace

from tenfold.compose.policies import placing_decider
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
from tenfold.model.job.job import Job, shape_of
from tenfold.model.job.terms import Terms
from tenfold.model.policy.policy import Policy, PolicyName
from tenfold.model.units import MINUTE, Millis
from tenfold.testing.builders import job, nodes

NAMES: tuple[PolicyName, ...] = ("fifo", "las", "tenfold", "fair", "slurm", "srtf", "governed")


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


def one(number: int, gpus: int = 1, *, per_node: int | None = None, waits: bool = False) -> Job:
    made = replace(job(number, gpus), shape=shape_of(gpus, gpus_per_node=per_node))
    terms = Terms(allow_pending=True) if waits else None
    return replace(made, terms=terms, duration_ms=Millis(60_000))


@pytest.fixture(params=NAMES)
def turns(request: pytest.FixtureRequest) -> Turns:
    return Turns(request.param)


def test_a_job_that_allows_it_waits_until_a_node_joins_that_can_run_it(turns: Turns):
    turns.submit(one(1, 16, per_node=16, waits=True), one(2))
    assert turns.turn() == ["start job-2"]
    turns.submit(one(3))
    assert turns.turn() == ["start job-3"]
    turns.tell(JobEnded(Millis(turns.now), JobId("job-2"), "completed"))
    assert turns.turn() == []
    turns.tell(*(NodeJoined(Millis(turns.now), node) for node in nodes(1, name="small")))
    assert turns.turn() == []
    turns.tell(*(NodeJoined(Millis(turns.now), node) for node in nodes(1, gpus=16, name="big")))
    assert turns.turn() == ["start job-1"]


def test_a_job_that_does_not_is_refused_beside_it(turns: Turns):
    turns.submit(one(1, 64, waits=True), one(2, 64))
    assert turns.turn() == ["refuse job-2: larger-than-the-fleet"]
    assert turns.turn() == []
    assert JobId("job-1") in turns.fleet.pending


def test_a_job_that_waits_for_nodes_can_be_cancelled(turns: Turns):
    turns.submit(one(1, 64, waits=True))
    assert turns.turn() == []
    turns.tell(JobCancelled(Millis(2), JobId("job-1")))
    turns.submit(one(2))
    assert turns.turn() == ["start job-2"]
    turns.tell(JobEnded(Millis(turns.now), JobId("job-2"), "completed"))
    turns.submit(one(3, 16))
    assert turns.turn() == ["start job-3"]


def test_more_nodes_do_not_help_a_job_whose_dependency_failed():
    turns = Turns("governed")
    terms = Terms(allow_pending=True, after=(JobId("job-1"),))
    turns.submit(one(1), replace(one(2), terms=terms))
    turns.turn()
    turns.tell(JobEnded(Millis(turns.now), JobId("job-1"), "failed"))
    assert turns.turn() == ["refuse job-2: dependency-failed"]
