"""Two fleets have one digest if and only if they hold the same."""

from collections.abc import Callable

import pytest

from tenfold.engine.digest import fleet_digest
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import ReserveStart, StartJob, StopJob
from tenfold.model.events import (
    ActionOrdered,
    JobEnded,
    JobIdled,
    JobStarted,
    JobSubmitted,
    NodeJoined,
)
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Job, JobStatus, Slot, shape_of
from tenfold.model.job.terms import Terms
from tenfold.model.reason import Reason
from tenfold.model.units import Millis
from tenfold.testing.builders import nodes

AT = Millis(5)
ON = (Slot(NodeId("n0"), 8),)
Change = Callable[[Fleet], None]


def a_fleet() -> Fleet:
    """One job that runs, one that waits, and one that comes after the first."""
    fleet = Fleet()
    fleet.apply_all([NodeJoined(Millis(0), node) for node in nodes(2)])
    after = Terms(after=(JobId("runs"),))
    for seq, (name, terms) in enumerate((("runs", None), ("waits", None), ("then", after))):
        job = Job(id=JobId(name), shape=shape_of(8), submitted_ms=Millis(0), seq=seq, terms=terms)
        fleet.apply(JobSubmitted(Millis(0), job))
    fleet.apply(ActionOrdered(Millis(0), StartJob(JobId("runs"), ON)))
    fleet.apply(JobStarted(Millis(0), JobId("runs")))
    return fleet


def promised(start_ms: int) -> Change:
    order = ReserveStart(JobId("waits"), ON, Millis(start_ms), AT)
    return lambda fleet: fleet.apply(ActionOrdered(AT, order))


def idled(since_ms: int) -> Change:
    return lambda fleet: fleet.apply(JobIdled(AT, JobId("runs"), Millis(since_ms)))


def stopped(at_ms: int) -> Change:
    order = StopJob(JobId("runs"), "preempted", Reason("outranked", sentence=""))
    return lambda fleet: fleet.apply(ActionOrdered(Millis(at_ms), order))


def ended(status: JobStatus) -> Change:
    return lambda fleet: fleet.apply(JobEnded(AT, JobId("runs"), status))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (promised(9), promised(10)),
        (idled(1), idled(2)),
        (stopped(3), stopped(4)),
        (ended("completed"), ended("failed")),
    ],
    ids=["promises", "idle", "evictions", "fates"],
)
def test_fleets_that_differ_in_one_thing_have_different_digests(one: Change, other: Change):
    first, second, again = a_fleet(), a_fleet(), a_fleet()
    one(first)
    other(second)
    one(again)
    assert fleet_digest(first) != fleet_digest(second)
    assert fleet_digest(first) == fleet_digest(again)


def test_a_fate_counts_even_where_history_has_forgotten_the_job():
    first, second = a_fleet(), a_fleet()
    ended("completed")(first)
    ended("failed")(second)
    first.history.clear()
    second.history.clear()
    assert fleet_digest(first) != fleet_digest(second)
