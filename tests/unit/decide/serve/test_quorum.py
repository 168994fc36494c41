"""Which failure domains a service cannot lose."""

from msgspec.structs import replace

from service_builders import SPEC, deployment
from tenfold.decide.serve.quorum import quorum_risks
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import StartJob
from tenfold.model.events import ActionOrdered, JobStarted, JobSubmitted, NodeJoined, ReplicaReady
from tenfold.model.fleet.node import Node
from tenfold.model.ids import DomainId, JobId, NodeId, PoolId, SiteId
from tenfold.model.job.job import Job, Slot, shape_of
from tenfold.model.job.terms import Terms
from tenfold.model.service.replica import ReplicaRef
from tenfold.model.units import Millis

NOW = Millis(5)


def served(least: int, *racks: str) -> Fleet:
    """A service with a ready replica on a node of each of these racks."""
    fleet = Fleet()
    fleet.apply(deployment(0, "r1", replace(SPEC, replicas_min=least)))
    for number, rack in enumerate(racks):
        name, job_id = NodeId(f"n{number}"), JobId(f"chat-{number}")
        node = Node(
            id=name,
            pool=PoolId("p"),
            site=SiteId("s"),
            gpus=8,
            rack=rack,
            domains=(DomainId(f"pdu-{number % 2}"),),
        )
        fleet.apply(NodeJoined(Millis(0), node))
        ref = ReplicaRef(service="chat", revision="r1", port=number + 1)
        job = Job(id=job_id, shape=shape_of(1), submitted_ms=Millis(0), terms=Terms(service=ref))
        fleet.apply(JobSubmitted(NOW, job))
        fleet.apply(ActionOrdered(NOW, StartJob(job_id, (Slot(name, 1),))))
        fleet.apply(JobStarted(NOW, job_id))
        fleet.apply(ReplicaReady(NOW, job_id, "chat", "http://x"))
    return fleet


def risks(fleet: Fleet) -> list[tuple[str, str, int]]:
    found = quorum_risks(fleet.services["chat"], fleet)
    return [(one.kind, one.name, one.ready_left) for one in found]


def test_a_domain_with_too_many_replicas_is_named_largest_first():
    assert risks(served(2, "a", "a", "b")) == [
        ("site", "s", 0),
        ("domain", "pdu-0", 1),
        ("rack", "a", 1),
    ]


def test_a_service_with_spares_in_every_domain_has_only_its_site():
    assert risks(served(2, "a", "b", "c", "d")) == [("site", "s", 0)]


def test_a_service_below_its_minimum_or_without_one_has_none():
    assert risks(served(3, "a", "b")) == []
    assert risks(served(0, "a", "b")) == []
