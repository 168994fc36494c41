"""Replicas of one service start apart, as far as equivalent nodes are free."""

from collections.abc import Sequence

import pytest

from service_builders import SPEC, deployment
from tenfold.compose.policies import placing_decider
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import StartJob
from tenfold.model.events import ActionOrdered, JobStarted, JobSubmitted, NodeCordoned, NodeJoined
from tenfold.model.fleet.node import Node
from tenfold.model.ids import DomainId, JobId, NodeId, PoolId, SiteId
from tenfold.model.job.job import Job, shape_of
from tenfold.model.job.terms import Terms
from tenfold.model.policy.policy import POLICIES, Policy
from tenfold.model.service.replica import ReplicaRef
from tenfold.model.units import Millis

NOW = Millis(100)
RACKS = ("a", "a", "b", "b", "c")


def fleet(racks: Sequence[str] = RACKS, pools: str = "ppppp") -> Fleet:
    made = Fleet()
    for number, (rack, pool) in enumerate(zip(racks, pools, strict=False), start=1):
        node = Node(
            id=NodeId(f"n{number}"),
            pool=PoolId(pool),
            site=SiteId("s"),
            gpus=8,
            rack=rack,
            domains=(DomainId(f"pdu-{rack}"),),
        )
        made.apply(NodeJoined(Millis(0), node))
    made.apply(deployment(0, "r1", SPEC))
    return made


def order(made: Fleet, name: str, service: str = "chat") -> None:
    ref = ReplicaRef(service=service, revision="r1", port=1)
    terms = Terms(kind="service", preemptible=False, service=ref)
    job = Job(
        id=JobId(name), shape=shape_of(1), submitted_ms=Millis(0), seq=made.version, terms=terms
    )
    made.apply(JobSubmitted(Millis(0), job))


def place(made: Fleet, policy: str = "fifo") -> dict[str, str]:
    """Let a policy start what waits; return the node of each."""
    decider = placing_decider(Policy(name=policy))  # pyright: ignore[reportArgumentType]
    found: dict[str, str] = {}
    for action in decider.decide(made, NOW, None).actions:
        if isinstance(action, StartJob):
            made.apply(ActionOrdered(NOW, action))
            made.apply(JobStarted(NOW, action.job_id))
            found[action.job_id] = action.slots[0].node
    return found


@pytest.mark.parametrize("policy", [one for one in POLICIES if one != "slurm"])
def test_replicas_that_start_together_are_in_different_racks(policy: str):
    made = fleet()
    for number in range(3):
        order(made, f"chat-{number}")
    nodes = place(made, policy).values()
    assert {made.nodes[NodeId(node)].rack for node in nodes} == {"a", "b", "c"}


def test_a_later_replica_goes_where_its_service_has_the_fewest():
    made = fleet()
    for number in range(5):
        order(made, f"chat-{number}")
        place(made)
    racks = [made.nodes[run.slots[0].node].rack for run in made.running.values()]
    nodes = [run.slots[0].node for run in made.running.values()]
    assert sorted(racks[:3]) == ["a", "b", "c"]
    assert len(set(nodes)) == 5


def test_replicas_share_a_node_where_there_is_no_other():
    made = fleet(racks=("a",), pools="p")
    order(made, "chat-1")
    order(made, "chat-2")
    assert set(place(made).values()) == {"n1"}


def test_a_replica_stays_in_the_pool_that_the_policy_chose():
    made = fleet(racks=("a", "b"), pools="pq")
    order(made, "chat-1")
    [first] = place(made).values()
    order(made, "chat-2")
    [second] = place(made).values()
    assert made.nodes[NodeId(first)].pool == made.nodes[NodeId(second)].pool


def test_a_replica_does_not_move_to_a_node_that_is_closed():
    made = fleet(racks=("a", "b"), pools="pp")
    order(made, "chat-1")
    [first] = place(made).values()
    other = NodeId("n2" if first == "n1" else "n1")
    made.apply(NodeCordoned(NOW, other))
    order(made, "chat-2")
    assert list(place(made).values()) == [first]


def test_jobs_that_are_no_replicas_stay_where_the_policy_put_them():
    made = fleet()
    for number in range(2):
        job = Job(
            id=JobId(f"job-{number}"), shape=shape_of(1), submitted_ms=Millis(0), seq=made.version
        )
        made.apply(JobSubmitted(Millis(0), job))
    assert len(set(place(made).values())) == 1
