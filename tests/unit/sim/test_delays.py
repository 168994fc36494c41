"""Simulated hands that take time: what is under way when a node is lost or a start fails."""

from tenfold.compose.simulation import SimRequest, simulate
from tenfold.model.actions import StartJob, StopJob
from tenfold.model.events import Event, JobEnded, JobStarted, JobStopped, NodeLost, NodeReturned
from tenfold.model.fault import Fault
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Slot
from tenfold.model.policy.policy import Policy
from tenfold.model.reason import Reason
from tenfold.model.units import MINUTE, SECOND, Millis
from tenfold.sim.world import SimSettings, SimWorld
from tenfold.testing.builders import job, nodes

NODE, JOB = NodeId("n0"), JobId("job-0")
START = StartJob(JOB, (Slot(NODE, 8),))


def next_fact(world: SimWorld) -> Event:
    turn = world.wait(None)
    assert turn is not None
    [fact] = turn[1]
    return fact


def test_a_stop_that_a_lost_node_forestalled_does_not_hit_the_next_run():
    world = SimWorld(
        [job(0, 8, runs_s=600)],
        settings=SimSettings(stop_delay_ms=Millis(MINUTE)),
        outages=[Fault(Millis(10 * SECOND), NODE, Millis(20 * SECOND))],
    )
    world.wait(None)
    world.carry_out([START], Millis(0))
    world.carry_out([StopJob(JOB, "preempted", Reason("gave-way", sentence=""))], Millis(0))
    turn = world.wait(None)
    assert turn is not None
    assert [type(fact) for fact in turn[1]] == [NodeLost, JobStopped]
    assert isinstance(next_fact(world), NodeReturned)
    assert [type(one) for one in world.carry_out([START], Millis(20 * SECOND))] == [JobStarted]
    assert isinstance(next_fact(world), JobEnded)


def test_a_start_that_failed_may_succeed_at_the_same_moment():
    settings = SimSettings(start_failure_share=0.9, seed=1)
    jobs = [job(number, 8, runs_s=60) for number in range(20)]
    request = SimRequest(nodes=nodes(2), jobs=jobs, policy=Policy(name="fifo"), settings=settings)
    assert simulate(request).summary.finished == 20
