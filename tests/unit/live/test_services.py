"""Requests about services, as the loop answers them: a step of an old record changes nothing."""

from msgspec.structs import replace

from service_builders import SPEC, TEAM, deployment
from tenfold.fleet.fleet import Fleet
from tenfold.live.inbox import ChangeService, DeployService, StepService
from tenfold.live.job_registry import JobRegistry
from tenfold.live.services import ServiceRequests
from tenfold.model.events import Event, JobSubmitted, ServiceDeployed, ServiceRolledBack
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import Job, shape_of
from tenfold.model.job.origin import Origin
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.reason import Reason
from tenfold.model.service.step import ReplicaOrder, ServiceStep
from tenfold.model.units import Millis

NOW = Millis(100)
WORK = RunSpec(
    name="chat",
    command=("serve", "--port={port}"),
    env=(("URL", "http://x:{port}"), ("PORT", "1")),
)
JOB = Job(id=JobId("chat"), shape=shape_of(1), submitted_ms=Millis(0), team=TEAM)


class Loop:
    def __init__(self) -> None:
        self.fleet = Fleet()
        self.requests = ServiceRequests(self.fleet, JobRegistry(next_number=7))

    def does(self, request: DeployService | ChangeService | StepService) -> list[Event] | Reason:
        made = self.requests.events_of(request, NOW, ())
        if not isinstance(made, Reason):
            self.fleet.apply_all(made)
        return made

    def deploys(self, work: RunSpec = WORK, **more: object) -> str:
        """Deploy; return the revision."""
        made = self.does(replace(DeployService(SPEC, TEAM, JOB, work, "ann"), **more))
        assert not isinstance(made, Reason)
        assert isinstance(made[-1], ServiceDeployed)
        return made[-1].revision


def code(answer: list[Event] | Reason) -> str:
    return answer.code if isinstance(answer, Reason) else ""


def test_a_step_orders_replicas_with_their_port_and_their_name():
    loop = Loop()
    loop.deploys()
    step = ServiceStep(starts=(ReplicaOrder(revision="r1", port=20_001),))
    made = loop.does(StepService("chat", loop.fleet.services["chat"], step))
    assert not isinstance(made, Reason)
    [event] = made
    assert isinstance(event, JobSubmitted)
    assert event.job.id == "chat-7"
    assert event.run_spec is not None
    assert event.run_spec.command == ("serve", "--port=20001")
    assert dict(event.run_spec.env) == {
        "URL": "http://x:20001",
        "PORT": "20001",
        "TENFOLD_SERVICE": "chat",
        "TENFOLD_REVISION": "r1",
    }


def test_the_same_step_is_carried_out_once():
    loop = Loop()
    loop.deploys()
    step = ServiceStep(starts=(ReplicaOrder(revision="r1", port=20_001),))
    request = StepService("chat", loop.fleet.services["chat"], step)
    loop.does(request)
    assert code(loop.does(request)) == "service-changed"
    assert len(loop.fleet.pending) == 1


def test_two_requests_about_a_service_in_one_moment_are_not_both_carried_out():
    loop = Loop()
    pending = [deployment(100, "r1")]
    request = ChangeService("chat", "scale", replicas_min=1, replicas_max=2)
    assert code_of(loop, request, pending) == "service-changed"


def code_of(loop: Loop, request: ChangeService, pending: list[ServiceDeployed]) -> str:
    return code(loop.requests.events_of(request, NOW, pending))


def test_what_runs_the_same_is_the_same_revision_wherever_it_was_deployed_from():
    loop = Loop()
    assert loop.deploys() == "r1"
    assert loop.deploys(replace(WORK, origin=Origin(host="laptop"))) == "r1"
    assert loop.deploys(replace(WORK, command=("other",))) == "r2"
    assert loop.deploys(replace(WORK, command=("other",)), is_new_revision=True) == "r3"


def test_deploying_what_ran_before_ends_a_rollout():
    loop = Loop()
    loop.deploys()
    loop.deploys(replace(WORK, command=("other",)))
    assert loop.fleet.services["chat"].canary == "r2"
    made = loop.does(DeployService(SPEC, TEAM, JOB, WORK, "ann"))
    assert not isinstance(made, Reason)
    assert isinstance(made[0], ServiceRolledBack)
    assert loop.fleet.services["chat"].canary == ""


def test_requests_that_make_no_sense_are_refused():
    loop = Loop()
    assert code(loop.does(ChangeService("chat", "remove"))) == "no-such-service"
    loop.deploys()
    assert code(loop.does(ChangeService("chat", "promote"))) == "no-rollout"
    assert code(loop.does(ChangeService("chat", "canary", weight=5.0))) == "no-rollout"
    assert code(loop.does(ChangeService("chat", "rollback"))) == "no-earlier-revision"
    blue = DeployService(SPEC, TeamId("blue"), JOB, WORK)
    assert code(loop.does(blue)) == "service-of-other-team"
    loop.does(ChangeService("chat", "remove"))
    assert code(loop.does(ChangeService("chat", "promote"))) == "no-such-service"
