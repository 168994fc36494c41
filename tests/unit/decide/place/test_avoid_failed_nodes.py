"""Jobs that failed on a node start on another one of its pool, where there is one."""

from collections.abc import Sequence

from msgspec import UNSET

from tenfold.compose.policies import placing_decider
from tenfold.decide.place.avoid_failed_nodes import AvoidFailedNodes
from tenfold.fleet.fleet import Fleet, FleetView
from tenfold.model.actions import ReserveStart, StartJob
from tenfold.model.decision import Decision
from tenfold.model.events import (
    ActionOrdered,
    Event,
    JobStarted,
    JobStopped,
    JobSubmitted,
    NodeCordoned,
    NodeJoined,
)
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, PoolId, SiteId
from tenfold.model.job.failures import AttemptFailure
from tenfold.model.job.job import Job, Slot, shape_of
from tenfold.model.job.terms import Window
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.policy.policy import Policy
from tenfold.model.policy.slurm import SlurmPartition, SlurmPolicy
from tenfold.model.units import HOUR, MINUTE, Millis

N1, N2, N3 = NodeId("n1"), NodeId("n2"), NodeId("n3")
NOW = Millis(100)


class Always:
    """A decider that starts every waiting job on the first node, whatever it is told."""

    name = "always"

    def __init__(self) -> None:
        self.told: list[Sequence[Event] | None] = []

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        self.told.append(news)
        return Decision(tuple(StartJob(job, (Slot(N1, 8),)) for job in view.pending), None)


def fleet_of(*pools: str) -> Fleet:
    """Nodes of 8 GPUs, one for each pool that is named."""
    fleet = Fleet()
    for number, pool in enumerate(pools, start=1):
        node = Node(id=NodeId(f"n{number}"), pool=PoolId(pool), site=SiteId("s"), gpus=8)
        fleet.apply(NodeJoined(Millis(0), node))
    return fleet


def crash(fleet: Fleet, name: str, *nodes: NodeId, gpus: int = 8) -> JobId:
    """Let a job crash on each of these, one after another; it waits again."""
    job_id = JobId(name)
    job = Job(id=job_id, shape=shape_of(gpus), submitted_ms=Millis(0))
    fleet.apply(JobSubmitted(Millis(0), job))
    for number, node in enumerate(nodes, start=1):
        fleet.apply(ActionOrdered(Millis(1), StartJob(job_id, (Slot(node, gpus),))))
        fleet.apply(JobStarted(Millis(2), job_id))
        failure = AttemptFailure(number, "exited", Millis(3), node, UNSET)
        fleet.apply(JobStopped(Millis(3), job_id, "crashed", Millis(0), 1, failure))
    return job_id


def nodes_chosen(fleet: Fleet, decider: AvoidFailedNodes | None = None) -> list[NodeId]:
    decision = (decider or AvoidFailedNodes(Always())).decide(fleet, NOW, None)
    return [
        slot.node
        for action in decision.actions
        if isinstance(action, StartJob)
        for slot in action.slots
    ]


def test_a_job_starts_on_a_node_on_which_it_has_not_failed():
    fleet = fleet_of("p", "p", "p")
    crash(fleet, "job", N1, N2)
    assert nodes_chosen(fleet) == [N3]


def test_a_job_that_has_failed_everywhere_starts_where_it_was_to_start():
    fleet = fleet_of("p", "p")
    crash(fleet, "job", N1, N2)
    assert nodes_chosen(fleet) == [N1]


def test_a_job_that_never_failed_is_left_alone():
    fleet = fleet_of("p", "p")
    crash(fleet, "job", N2)
    assert nodes_chosen(fleet) == [N1]


def test_a_node_of_another_pool_a_cordoned_or_a_full_one_does_not_do():
    fleet = fleet_of("p", "other", "p", "p")
    crash(fleet, "job", N1)
    fleet.apply(NodeCordoned(NOW, N3))
    other = JobId("other")
    fleet.apply(JobSubmitted(NOW, Job(id=other, shape=shape_of(4), submitted_ms=NOW)))
    fleet.apply(ActionOrdered(NOW, StartJob(other, (Slot(NodeId("n4"), 4),))))
    assert nodes_chosen(fleet) == [N1]


def test_two_jobs_are_not_moved_to_the_same_room():
    fleet = fleet_of("p", "p")
    crash(fleet, "one", N1)
    fleet.apply(JobSubmitted(NOW, Job(id=JobId("two"), shape=shape_of(8), submitted_ms=NOW)))

    class Both(Always):
        def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
            jobs = zip(view.pending, (N1, N2), strict=False)
            return Decision(tuple(StartJob(job, (Slot(node, 8),)) for job, node in jobs), None)

    assert nodes_chosen(fleet, AvoidFailedNodes(Both())) == [N1, N2]


def test_room_that_is_promised_to_another_job_is_not_taken():
    fleet = fleet_of("p", "p")
    crash(fleet, "job", N1)
    big = JobId("big")
    fleet.apply(JobSubmitted(NOW, Job(id=big, shape=shape_of(8), submitted_ms=NOW)))
    reservation = ReserveStart(big, (Slot(N2, 8),), Millis(500), NOW)
    fleet.apply(ActionOrdered(NOW, reservation))
    [first, *_] = nodes_chosen(fleet)
    assert first == N1


def test_a_decider_whose_start_was_moved_looks_at_the_view_again():
    fleet, inner = fleet_of("p", "p"), Always()
    job = crash(fleet, "job", N1)
    decider = AvoidFailedNodes(inner)
    assert nodes_chosen(fleet, decider) == [N2]
    order = ActionOrdered(NOW, StartJob(job, (Slot(N2, 8),)))
    fleet.apply(order)
    decider.decide(fleet, NOW, [order])
    decider.decide(fleet, NOW, [])
    assert inner.told == [None, None, []]


def test_every_policy_moves_a_job_that_failed():
    for name in ("fifo", "las", "fair", "tenfold", "governed"):
        fleet = fleet_of("p", "p", "p")
        warm = placing_decider(Policy(name=name))
        first = crash(fleet, "job")
        [start] = [
            one for one in warm.decide(fleet, NOW, None).actions if isinstance(one, StartJob)
        ]
        node = start.slots[0].node
        fleet.apply(ActionOrdered(NOW, start))
        fleet.apply(JobStarted(NOW, first))
        failure = AttemptFailure(1, "lost", NOW, node)
        fact = JobStopped(NOW, first, "node-lost", Millis(0), UNSET, failure)
        fleet.apply(fact)
        again = warm.decide(fleet, NOW, [ActionOrdered(NOW, start), JobStarted(NOW, first), fact])
        moved = next(one for one in again.actions if isinstance(one, StartJob))
        assert moved.slots[0].node != node, name
        fresh = placing_decider(Policy(name=name)).decide(fleet, NOW, None)
        assert list(fresh.actions) == list(again.actions), name


def test_under_slurm_a_job_stays_in_its_partition():
    fleet = fleet_of("p", "p")
    crash(fleet, "job", N1)
    slurm = SlurmPolicy(partitions=(SlurmPartition(name="main", nodes="n1", is_default=True),))
    assert starts_of(fleet, Policy(name="slurm", slurm=slurm)) == [N1]


def test_a_job_is_not_moved_to_a_node_that_is_kept_by_a_window():
    fleet = fleet_of("p", "p")
    crash(fleet, "job", N1)
    repair = Window(id="repair", start_ms=Millis(0), end_ms=Millis(HOUR), nodes=(N2,))
    assert starts_of(fleet, Policy(name="governed", govern=GovernanceRules(windows=(repair,)))) == [
        N1
    ]
    assert starts_of(fleet, Policy(name="governed", govern=GovernanceRules())) == [N2]


def starts_of(fleet: Fleet, policy: Policy) -> list[NodeId]:
    """Nodes of what starts after a minute, when every policy has looked at the line."""
    actions = placing_decider(policy).decide(fleet, Millis(MINUTE), None).actions
    return [slot.node for one in actions if isinstance(one, StartJob) for slot in one.slots]
