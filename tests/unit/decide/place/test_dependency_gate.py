"""Jobs that come after others, under policies that know nothing of it."""

import pytest
from msgspec.structs import replace

from rigs.turns import Turns
from tenfold.compose.policies import placing_decider
from tenfold.decide.place.dependency_gate import DependencyGate
from tenfold.model.events import (
    JobCancelled,
)
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.job.terms import Terms
from tenfold.model.policy.policy import Policy, PolicyName
from tenfold.model.units import Millis
from tenfold.testing.builders import job

NAMES: tuple[PolicyName, ...] = ("fifo", "las", "tenfold", "fair", "slurm", "srtf")


def one(number: int, *after: int) -> Job:
    terms = Terms(after=tuple(JobId(f"job-{each}") for each in after)) if after else None
    return replace(job(number, 1), terms=terms, duration_ms=Millis(60_000))


@pytest.fixture(params=NAMES)
def turns(request: pytest.FixtureRequest) -> Turns:
    return Turns(request.param)


def test_a_job_starts_when_the_last_of_those_before_it_has_completed(turns: Turns):
    turns.submit(one(1), one(2), one(3, 1, 2), one(4))
    assert sorted(turns.turn()) == ["start job-1", "start job-2", "start job-4"]
    turns.end(1)
    assert turns.turn() == []
    turns.end(2)
    assert turns.turn() == ["start job-3"]
    turns.submit(one(5))
    assert turns.turn() == ["start job-5"]


def test_a_job_after_one_that_failed_is_refused_and_so_is_the_next(turns: Turns):
    turns.submit(one(1), one(2, 1), one(3, 2))
    turns.turn()
    turns.end(1, "failed")
    assert turns.turn() == ["refuse job-2: dependency-failed"]
    assert turns.turn() == ["refuse job-3: dependency-failed"]
    assert turns.turn() == []


def test_a_job_that_is_kept_back_can_be_taken_back(turns: Turns):
    turns.submit(one(1), one(2, 1))
    turns.turn()
    turns.tell(JobCancelled(Millis(2), JobId("job-2")))
    turns.end(1)
    assert turns.turn() == []
    turns.submit(one(3))
    assert turns.turn() == ["start job-3"]


def test_one_that_was_over_before_is_not_waited_for(turns: Turns):
    turns.submit(one(2, 1))
    assert turns.turn() == ["start job-2"]


def member(number: int, most: int = 2) -> Job:
    terms = Terms(array="sweep", array_most=most, array_most_always=True)
    return replace(job(number, 1), terms=terms, duration_ms=Millis(60_000))


def test_no_more_members_of_an_array_run_than_its_limit(turns: Turns):
    turns.submit(*(member(number) for number in range(1, 6)))
    assert sorted(turns.turn()) == ["start job-1", "start job-2"]
    assert turns.turn() == []
    turns.end(2)
    assert turns.turn() == ["start job-3"]
    turns.end(1)
    turns.end(3, "failed")
    assert sorted(turns.turn()) == ["start job-4", "start job-5"]


def test_arrays_of_earlier_versions_are_not_limited(turns: Turns):
    limited = (member(1), member(2), member(3))
    terms = Terms(array="sweep", array_most=2)
    turns.submit(*(replace(one, terms=terms) for one in limited))
    assert sorted(turns.turn()) == ["start job-1", "start job-2", "start job-3"]


def test_a_member_that_is_cancelled_lets_the_next_one_start(turns: Turns):
    turns.submit(member(1, 1), member(2, 1), member(3, 1), one(4))
    assert sorted(turns.turn()) == ["start job-1", "start job-4"]
    turns.tell(JobCancelled(Millis(2), JobId("job-2")))
    turns.end(1)
    assert turns.turn() == ["start job-3"]


def test_a_job_after_the_end_of_one_that_failed_starts(turns: Turns):
    later = replace(job(2, 1), terms=Terms(after_any=(JobId("job-1"),)))
    turns.submit(one(1), replace(later, duration_ms=Millis(60_000)))
    assert turns.turn() == ["start job-1"]
    turns.end(1, "failed")
    assert turns.turn() == ["start job-2"]


def test_governed_teams_have_it_among_their_own_rules():
    assert not isinstance(placing_decider(Policy(name="governed")), DependencyGate)
    assert not isinstance(placing_decider(Policy(), has_gates=False), DependencyGate)
