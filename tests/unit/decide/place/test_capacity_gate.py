"""Jobs that no node can run yet wait for nodes to join, where they allow it."""

import pytest
from msgspec.structs import replace

from rigs.turns import Turns
from tenfold.model.events import (
    JobCancelled,
    JobEnded,
    NodeJoined,
)
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, shape_of
from tenfold.model.job.terms import Terms
from tenfold.model.policy.policy import PolicyName
from tenfold.model.units import Millis
from tenfold.testing.builders import job, nodes

NAMES: tuple[PolicyName, ...] = ("fifo", "las", "tenfold", "fair", "slurm", "srtf", "governed")


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
