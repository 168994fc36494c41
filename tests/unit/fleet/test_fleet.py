"""The running fleet, one fact at a time."""

import pytest

from tenfold.fleet.check import check
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import StartJob, StopJob
from tenfold.model.events import (
    ActionOrdered,
    ActionRefused,
    JobCancelled,
    JobEnded,
    JobStarted,
    JobStopped,
    JobSubmitted,
    NodeCordoned,
    NodeJoined,
    NodeLeft,
    NodeLost,
    NodeReturned,
)
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Slot
from tenfold.model.reason import Reason
from tenfold.model.units import Millis
from tenfold.testing.builders import fleet, job, nodes

J0, N0 = JobId("job-0"), NodeId("n0")
WHY = Reason("gave-way", sentence="somebody goes first")


def started(gpus: float = 4) -> Fleet:
    made = fleet(nodes(2), job(0, gpus))
    slot = Slot(N0, int(gpus)) if gpus >= 1 else Slot(N0, 0, round(gpus * 1000), 3)
    made.apply(ActionOrdered(Millis(5), StartJob(J0, (slot,))))
    made.apply(JobStarted(Millis(7), J0))
    return made


def test_an_order_takes_room_before_the_start_is_known():
    made = fleet(nodes(2), job(0, 4))
    made.apply(ActionOrdered(Millis(5), StartJob(J0, (Slot(N0, 4),))))
    assert made.gpus_free[N0] == 4
    assert J0 in made.orders
    assert J0 not in made.pending
    check(made)


def test_an_end_gives_back_the_room_and_remembers_the_run():
    made = started()
    made.apply(JobEnded(Millis(107), J0))
    assert made.gpus_free[N0] == 8
    assert made.ended == 1
    assert made.history[-1].ran_ms == 100
    check(made)


def test_a_stopped_job_waits_again_with_its_past():
    made = started()
    made.apply(ActionOrdered(Millis(50), StopJob(J0, "preempted", WHY)))
    assert made.running[J0].stopping
    made.apply(JobStopped(Millis(57), J0, "preempted", Millis(40)))
    assert J0 in made.pending
    assert (made.past[J0].runs, made.past[J0].ran_ms, made.past[J0].progress_ms) == (1, 50, 40)
    check(made)


def test_the_runs_of_a_job_add_up():
    made = started()
    made.apply(JobStopped(Millis(57), J0, "preempted", Millis(40)))
    made.apply(ActionOrdered(Millis(60), StartJob(J0, (Slot(NodeId("n1"), 4),))))
    made.apply(JobStarted(Millis(60), J0))
    made.apply(JobEnded(Millis(90), J0))
    assert made.history[-1].ran_ms == 50 + 30
    assert not made.past


def test_a_refused_start_puts_the_job_back():
    made = fleet(nodes(2), job(0, 4))
    start = StartJob(J0, (Slot(N0, 4),))
    made.apply(ActionOrdered(Millis(5), start))
    made.apply(ActionRefused(Millis(5), start, Reason("node-down", sentence="node `n0` is down")))
    assert made.gpus_free[N0] == 8
    assert J0 in made.pending
    check(made)


def test_a_share_takes_a_device_and_the_last_share_gives_it_back():
    made = started(0.25)
    assert made.gpus_free[N0] == 7
    assert made.shares[N0] == ((3, 250),)
    made.apply(JobEnded(Millis(9), J0))
    assert made.gpus_free[N0] == 8
    assert N0 not in made.shares
    check(made)


def test_taking_more_than_a_node_has_stops_the_loop():
    made = fleet(nodes(1, gpus=2), job(0, 4))
    with pytest.raises(AssertionError, match="over-allocated by 2"):
        made.apply(ActionOrdered(Millis(5), StartJob(J0, (Slot(N0, 4),))))


def test_nodes_go_and_come_back():
    made = fleet(nodes(2))
    made.apply(NodeLost(Millis(1), N0, "xid"))
    assert made.states[N0] == "down"
    made.apply(NodeReturned(Millis(2), N0))
    made.apply(NodeCordoned(Millis(3), N0))
    assert made.states[N0] == "cordoned"


def test_a_cancelled_job_is_gone():
    made = fleet(nodes(2), job(0, 4))
    made.apply(JobCancelled(Millis(1), J0))
    assert not made.pending


def test_a_fork_goes_its_own_way():
    made = started()
    fork = made.fork()
    fork.apply(JobEnded(Millis(20), J0))
    fork.apply(JobSubmitted(Millis(21), job(1, 1)))
    assert J0 in made.running
    assert made.gpus_free[N0] == 4
    assert (made.version, fork.version) == (made.version, made.version + 2)
    check(made)
    check(fork)


def test_a_job_that_is_in_two_places_is_found():
    made = started()
    made.pending[J0] = made.running[J0].job
    with pytest.raises(AssertionError, match="both pending and running"):
        check(made)


def test_a_node_that_left_is_gone_and_may_join_as_another():
    made = fleet(nodes(2), job(0, 4))
    made.apply(NodeCordoned(Millis(5), N0))
    made.apply(NodeLeft(Millis(6), N0))
    assert list(made.nodes) == [NodeId("n1")]
    assert N0 not in made.states
    check(made)
    made.apply(NodeJoined(Millis(7), nodes(1)[0]))
    assert made.states[N0] == "up"
    check(made)


def test_a_node_that_a_job_holds_cannot_leave():
    made = started()
    with pytest.raises(AssertionError, match="in use"):
        made.apply(NodeLeft(Millis(9), N0))
