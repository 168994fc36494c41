"""A node that is lost again and again: in both worlds the job is started again each time.

`hostile/jobs/test_retries_end.py` checks it live, with real processes; there, as many losses with
another cause end the job. Here the count that both worlds share is compared.
"""

from tenfold.compose.simulation import SimRequest, simulate
from tenfold.engine.recording import Recording, events_of
from tenfold.fleet.failure_log import FailureLog
from tenfold.fleet.retries import LOSSES_MOST
from tenfold.live.executor import AttemptLost
from tenfold.live.failures import loss_of
from tenfold.model.events import Event, JobEnded, JobStopped
from tenfold.model.fault import Fault
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Job, Slot, shape_of
from tenfold.model.policy.policy import Policy
from tenfold.model.reason import Reason
from tenfold.model.units import MINUTE, Millis
from tenfold.testing.builders import nodes

LOSSES = LOSSES_MOST + 3
[NODE] = nodes(1)
JOB = Job(
    id=JobId("job-1"),
    shape=shape_of(1),
    submitted_ms=Millis(0),
    duration_ms=Millis(10 * MINUTE),
)


def simulated() -> list[Event]:
    kept = Recording()
    faults = [
        Fault(
            at_ms=Millis(number * 5 * MINUTE),
            until_ms=Millis(number * 5 * MINUTE + MINUTE),
            node_id=NODE.id,
        )
        for number in range(1, LOSSES + 1)
    ]
    request = SimRequest(nodes=(NODE,), jobs=(JOB,), policy=Policy(name="fifo"), faults=faults)
    simulate(request, journal=kept)
    return list(events_of(kept.lines))


def test_lost_nodes_use_up_no_retries_in_the_simulator():
    events = simulated()
    stops = [one for one in events if isinstance(one, JobStopped)]
    assert [one.cause for one in stops] == ["node-lost"] * LOSSES
    [ended] = [one for one in events if isinstance(one, JobEnded)]
    assert ended.status == "completed"


def test_lost_nodes_count_alike_in_both_worlds():
    """Replaying what either world records gives the same count: none."""
    log, slots = FailureLog(), (Slot(NodeId(NODE.id), 1),)
    for stop in [one for one in simulated() if isinstance(one, JobStopped)]:
        log.stopped(stop, JOB)
        observed = AttemptLost(stop.at_ms, JOB.id, 1, Reason("node-lost"))
        failure = loss_of(observed, slots, None, node_is_lost=False)
        live = JobStopped(stop.at_ms, JOB.id, "node-lost", Millis(0), failure=failure)
        log.stopped(live, JOB)
    assert log.crashes == {}
