"""Recommendations: when one is made, and what a report says came true."""

from pathlib import Path

from tenfold.compose.policies import placing_decider
from tenfold.engine.decision_log import OBSERVED, Cycle
from tenfold.engine.digest import fleet_digest
from tenfold.engine.recording import Line
from tenfold.files.records.replay_bundle import Bundle, BundleEnd, BundleHeader
from tenfold.files.slurm.settings import PartitionState
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import StartJob
from tenfold.model.events import (
    ActionOrdered,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    NodeCordoned,
    NodeJoined,
)
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, PoolId, SiteId
from tenfold.model.job.job import Job, Slot, shape_of
from tenfold.model.policy.policy import Policy
from tenfold.model.units import Millis
from tenfold.study.attach.recommend import (
    Recommender,
    append_recommendations,
    read_recommendations,
    report_of,
)

SECOND = 1_000
SLOTS = (Slot(NodeId("n1"), 8),)


def joined(name: str) -> NodeJoined:
    """Return a node of 8 GPUs."""
    node = Node(id=NodeId(name), pool=PoolId("h100"), site=SiteId("main"), gpus=8)
    return NodeJoined(Millis(0), node)


def submitted(name: str, at_s: int) -> JobSubmitted:
    """Return a job of 8 GPUs."""
    at_ms = Millis(at_s * SECOND)
    job = Job(id=JobId(name), shape=shape_of(8), submitted_ms=at_ms, qos="all")
    return JobSubmitted(at_ms, job)


def started(name: str, at_s: int) -> list[Event]:
    """Return a start on n1."""
    at_ms, job = Millis(at_s * SECOND), JobId(name)
    return [ActionOrdered(at_ms, StartJob(job, SLOTS)), JobStarted(at_ms, job)]


def fleet_of(*events: Event) -> Fleet:
    """Return the fleet after events."""
    fleet = Fleet()
    fleet.apply_all(events)
    return fleet


def recommender(*known: str) -> Recommender:
    """Return a recommender under the policy `fair`."""
    policy, slurm = Policy(name="fair"), Policy(name="slurm")
    return Recommender(
        "fair",
        lambda: placing_decider(policy),
        lambda: placing_decider(slurm),
        [JobId(name) for name in known],
    )


def test_a_start_is_recommended_once_and_only_if_slurm_let_it_wait() -> None:
    fleet, one = fleet_of(joined("n1"), submitted("a", 0)), recommender()
    assert one.after(fleet, {}, Millis(1_000)) == []
    (found,) = one.after(fleet, {}, Millis(3_000))
    assert (found.job_id, found.gpus, found.slots) == ("a", 8, SLOTS)
    assert one.after(fleet, {}, Millis(5_000)) == []
    again = recommender("a")
    assert again.after(fleet, {}, Millis(7_000)) == []
    assert again.after(fleet, {}, Millis(9_000)) == []


def test_nodes_that_slurm_would_refuse_are_not_recommended() -> None:
    fleet = fleet_of(joined("n1"), submitted("a", 0))
    other = {"all": PartitionState(name="all", nodes=("n2",))}
    drained = fleet.fork()
    drained.apply(NodeCordoned(Millis(0), NodeId("n1")))
    for state, partitions in ((fleet, other), (drained, {})):
        one = recommender()
        one.after(state, partitions, Millis(1_000))
        assert one.after(state, partitions, Millis(3_000)) == []


def bundle_of(events: list[Event]) -> Bundle:
    """Return an observed record of events."""
    fleet = fleet_of(*events)
    cycle = Cycle(Millis(100_000), OBSERVED, fleet.version, 0, 0)
    lines: list[Line] = [*events, cycle]
    end = BundleEnd(events=len(events), cycles=1, fleet=fleet_digest(fleet))
    return Bundle(file="x", header=BundleHeader(tenfold=""), lines=lines, end=end)


def test_a_report_says_what_came_true_and_who_got_the_gpus(tmp_path: Path) -> None:
    fleet, one = fleet_of(joined("n1"), submitted("a", 0)), recommender()
    one.after(fleet, {}, Millis(1_000))
    append_recommendations(tmp_path, one.after(fleet, {}, Millis(3_000)))
    records = read_recommendations(tmp_path)
    assert len(records) == 1
    base: list[Event] = [joined("n1"), submitted("a", 0)]
    alone = report_of(bundle_of([*base, *started("a", 63)]), records)
    assert (alone.started, alone.free, alone.starts[0].came_s) == (1, 1, 60)
    ended = JobEnded(Millis(50_000), JobId("b"))
    other = [*base, submitted("b", 5), *started("b", 10), ended, *started("a", 63)]
    displaced = report_of(bundle_of(other), records)
    assert (displaced.free, displaced.starts[0].taken_by) == (0, "b")
    waiting = report_of(bundle_of(base), records)
    assert (waiting.started, waiting.waiting) == (0, 1)
