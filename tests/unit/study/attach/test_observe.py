"""Readings of a Slurm cluster as events: what is new is added once, in an order that fits."""

from collections.abc import Sequence
from math import inf

import pytest
from msgspec.structs import replace

from tenfold.compose.fleet import load_facts
from tenfold.files.slurm.settings import PartitionState, SlurmSettings
from tenfold.fleet.fleet import Fleet
from tenfold.model.events import (
    ActionOrdered,
    Event,
    JobCancelled,
    JobChanged,
    JobEnded,
    JobHeld,
    JobReleased,
    JobStarted,
    JobStopped,
    JobSubmitted,
    NodeCordoned,
    NodeJoined,
    NodeLost,
    NodeReturned,
)
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, PoolId, SiteId
from tenfold.model.job.recorded import RecordedJob, RecordedNode
from tenfold.study.attach.observe import DEFERRED_MOST, Observer, Reading, remembered
from tenfold.study.attach.records import ClusterTerms

TERMS = ClusterTerms(catalogue=load_facts(None))
NODE = RecordedNode(name="n1", gpu_type="h100", gpus=8, cpus=16)
NODES = (NODE, replace(NODE, name="n2"))
SETTINGS = SlurmSettings(partitions=(PartitionState(name="all"),))


def job(name: str, **fields: object) -> RecordedJob:
    """Return a pending job of 8 GPUs; a start makes it run on n1."""
    base = RecordedJob(
        id=name,
        user="ann",
        account="vision",
        partition="all",
        state="pending",
        submitted_s=1_000,
        eligible_s=1_000,
        gpus=8,
        gpus_asked=8,
        cpus=2,
    )
    one = replace(base, **fields)
    if one.started_s is not None and not one.node_names:
        one = replace(
            one, node_names=("n1",), state="running" if one.state == "pending" else one.state
        )
    return one


def ended(name: str, start: float, end: float, state: str = "completed") -> RecordedJob:
    """Return a run that is over."""
    return job(name, started_s=start, ended_s=end, state=state, exit_code=0)


def reading(
    now_s: float,
    *queue: RecordedJob,
    accounting: Sequence[RecordedJob] = (),
    nodes: tuple[RecordedNode, ...] = NODES,
) -> Reading:
    """Return a reading of two nodes."""
    joining = {
        one.name: Node(
            id=NodeId(one.name),
            pool=PoolId("h100"),
            site=SiteId("main"),
            accelerator="h100",
            gpus=one.gpus,
            cpus_milli=one.cpus * 1_000,
        )
        for one in nodes
    }
    return Reading(
        now_s=now_s,
        nodes=nodes,
        joining=joining,
        queue=queue,
        accounting=tuple(accounting),
        settings=SETTINGS,
        terms=TERMS,
    )


@pytest.fixture
def observer() -> Observer:
    """An observer of a cluster that was never read."""
    fleet = Fleet()
    return Observer(fleet, remembered(fleet, {}, 0))


def kinds(events: Sequence[Event]) -> list[type]:
    """Return the kinds of events."""
    return [type(event) for event in events]


def test_a_first_reading_joins_the_nodes_before_the_jobs_that_ran_on_them(
    observer: Observer,
) -> None:
    found = observer.events(reading(2_000, accounting=[ended("1", 1_010, 1_020)]))
    assert kinds(found) == [
        NodeJoined,
        NodeJoined,
        JobSubmitted,
        ActionOrdered,
        JobStarted,
        JobEnded,
    ]
    assert [event.at_ms // 1_000 for event in found] == [1_000, 1_000, 1_000, 1_010, 1_010, 1_020]


def test_the_same_reading_twice_adds_nothing(observer: Observer) -> None:
    same = reading(
        2_000, job("2"), job("3", started_s=1_500.0), accounting=[ended("1", 1_010, 1_020)]
    )
    observer.events(same)
    assert observer.events(same) == []


def test_a_restart_goes_on_from_the_fleet(observer: Observer) -> None:
    same = reading(
        2_000,
        job("2", is_held=True),
        job("3", started_s=1_500.0),
        accounting=[ended("1", 1_010, 1_020)],
    )
    observer.events(same)
    holds = observer.memory.holds
    again = Observer(observer.fleet, remembered(observer.fleet, holds, observer.memory.seq))
    assert again.events(same) == []


def test_a_job_that_came_and_ended_between_two_readings_is_in_accounting(
    observer: Observer,
) -> None:
    observer.events(reading(1_500))
    late = replace(ended("7", 1_510, 1_512, "failed"), submitted_s=1_505.0, exit_code=3)
    found = observer.events(reading(1_520, accounting=[late]))
    assert kinds(found) == [JobSubmitted, ActionOrdered, JobStarted, JobEnded]
    last = found[-1]
    assert isinstance(last, JobEnded)
    assert (last.status, last.exit_code, last.at_ms) == ("failed", 3, 1_512_000)


def test_gpus_pass_from_one_job_to_the_next_within_a_second(observer: Observer) -> None:
    observer.events(reading(1_100, job("1", started_s=1_050.0), job("2")))
    found = observer.events(
        reading(1_200, job("2", started_s=1_150.0), accounting=[ended("1", 1_050, 1_150)])
    )
    assert kinds(found) == [JobEnded, ActionOrdered, JobStarted]


def test_a_start_waits_for_accounting_that_is_late_and_is_then_recorded_with_less(
    observer: Observer,
) -> None:
    first = job("1", started_s=1_050.0)
    observer.events(reading(1_100, first, job("2")))
    both = (first, job("2", started_s=1_150.0))
    for time in range(DEFERRED_MOST - 1):
        assert observer.events(reading(1_200.0 + time, *both)) == []
    found = observer.events(reading(1_300, *both))
    assert kinds(found) == [JobChanged, ActionOrdered, JobStarted]
    assert observer.memory.clipped == 1
    assert observer.fleet.gpus_free[NodeId("n1")] == 0


def test_a_requeued_job_stops_and_waits_again(observer: Observer) -> None:
    observer.events(reading(1_100, job("1", started_s=1_050.0)))
    again = job("1", submitted_s=1_200.0, eligible_s=1_200.0, restarts=1)
    found = observer.events(
        reading(1_210, again, accounting=[ended("1", 1_050, 1_200, "node_fail")])
    )
    assert kinds(found) == [JobStopped]
    stop = found[0]
    assert isinstance(stop, JobStopped)
    assert stop.cause == "node-lost"
    assert JobId("1") in observer.fleet.pending


def test_a_hold_is_an_event_with_its_reason_and_so_is_its_end(observer: Observer) -> None:
    found = observer.events(reading(1_100, job("1", is_held=True)))
    held = found[-1]
    assert isinstance(held, JobHeld)
    assert (held.reason.code, held.at_ms) == ("held-in-slurm", 1_000_000)
    found = observer.events(reading(1_200, job("1", eligible_s=1_150.0)))
    assert kinds(found) == [JobReleased]
    assert found[0].at_ms == 1_150_000


def test_a_changed_limit_is_an_event(observer: Observer) -> None:
    observer.events(reading(1_100, job("1", limit_s=60.0)))
    found = observer.events(reading(1_200, job("1", limit_s=120.0)))
    assert kinds(found) == [JobChanged]
    assert observer.fleet.pending[JobId("1")].limit_ms == 120_000


def test_a_pending_job_that_was_cancelled_names_who_did_it(observer: Observer) -> None:
    observer.events(reading(1_100, job("1")))
    gone = job("1", state="cancelled", ended_s=1_150.0, cancelled_by="ben")
    found = observer.events(reading(1_200, accounting=[gone]))
    assert found == [JobCancelled(found[0].at_ms, JobId("1"), "ben")]
    assert found[0].at_ms == 1_150_000


def test_a_job_that_is_nowhere_ends_without_a_result(observer: Observer) -> None:
    observer.events(reading(1_100, job("1", started_s=1_050.0)))
    assert observer.missing(reading(1_200)) == [JobId("1")]
    assert observer.events(reading(1_200)) == []
    found = observer.events(reading(1_300))
    assert kinds(found) == [JobEnded]
    last = found[0]
    assert isinstance(last, JobEnded)
    assert last.status == "failed"
    assert last.failure
    assert last.failure.reason
    assert last.failure.reason.code == "end-not-seen"


def test_a_job_that_is_nowhere_ends_once_accounting_had_time_to_show_it(observer: Observer) -> None:
    observer.events(reading(1_100, job("1", started_s=1_050.0)))
    for now_s, lag_s in ((1_200, 120.0), (1_250, inf), (1_319, 120.0), (1_400, inf)):
        late = replace(reading(now_s), accounting_lag_s=lag_s)
        assert observer.events(late) == []
    found = observer.events(replace(reading(1_401), accounting_lag_s=120.0))
    assert kinds(found) == [JobEnded]


def test_nodes_drain_are_lost_and_return(observer: Observer) -> None:
    observer.events(reading(1_000))
    drained = replace(NODE, why_unusable="drained: bad")
    lost = replace(NODES[1], why_unusable="down", is_lost=True)
    found = observer.events(reading(1_100, nodes=(drained, lost)))
    assert kinds(found) == [NodeCordoned, NodeLost]
    assert kinds(observer.events(reading(1_200))) == [NodeReturned, NodeReturned]


def test_a_node_that_joins_or_left_is_known(observer: Observer) -> None:
    observer.events(reading(1_000))
    more = (*NODES, replace(NODE, name="n3"))
    assert kinds(observer.events(reading(1_100, nodes=more))) == [NodeJoined]
    assert kinds(observer.events(reading(1_200))) == [NodeLost]


def test_a_run_on_a_node_that_is_gone_is_kept(observer: Observer) -> None:
    old = replace(ended("1", 1_010, 1_020), node_names=("old",))
    found = observer.events(reading(2_000, accounting=[old]))
    assert NodeId("old") in observer.fleet.nodes
    assert kinds(found)[-1] is NodeLost


def test_an_uneven_allocation_holds_what_the_queue_says_of_each_node(observer: Observer) -> None:
    wide = job(
        "1",
        started_s=1_050.0,
        node_names=("n1", "n2"),
        node_gpus=(5, 3),
        nodes=2,
        cpus=16.0,
    )
    observer.events(reading(1_100, wide))
    assert observer.fleet.gpus_free == {NodeId("n1"): 3, NodeId("n2"): 5}


def test_members_of_an_array_wait_for_its_limit(observer: Observer) -> None:
    members = [job(f"5_{number}", at_once_max=1) for number in (1, 2)]
    found = observer.events(reading(1_100, job("5_0", started_s=1_050.0, at_once_max=1), *members))
    reasons = [event.reason.code for event in found if isinstance(event, JobHeld)]
    assert reasons == ["array-full", "array-full"]


def test_an_array_that_was_cancelled_as_a_whole_is_each_of_its_members(
    observer: Observer,
) -> None:
    observer.events(reading(1_100, job("5_0"), job("5_1")))
    gone = job("5_[0-1]", state="cancelled", ended_s=1_150.0, cancelled_by="ann")
    assert kinds(observer.events(reading(1_200, accounting=[gone]))) == [JobCancelled] * 2
    assert observer.fleet.pending == {}
