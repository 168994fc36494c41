"""Services for tests: a spec, its job, and a small world in which its controller works."""

from collections.abc import Sequence
from random import Random

from msgspec.structs import replace

from tenfold.decide.serve.step import Autoscale, step
from tenfold.fleet.services import after_end, after_event, after_requeue, deployed
from tenfold.model.events import (
    JobCancelRequested,
    JobSubmitted,
    ReplicaEvent,
    ServiceDeployed,
    ServiceEvent,
)
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import Job, shape_of
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.job.terms import Terms
from tenfold.model.reason import Reason
from tenfold.model.service.autoscale import AutoscalePolicy, ScalingDecision, steps_to
from tenfold.model.service.load import ReplicaCounts, ServiceLoad
from tenfold.model.service.replica import ReplicaRef
from tenfold.model.service.spec import Canary, Readiness, ServiceSpec
from tenfold.model.service.state import ReplicaState, ServiceState
from tenfold.model.service.step import Probed, ServiceSeen, ServiceStep
from tenfold.model.units import Millis

TEAM = TeamId("red")
SPEC = ServiceSpec(
    name="chat",
    team="red",
    command=("serve", "{port}"),
    replicas_min=0,
    replicas_max=5,
    slots=4,
    prefill_tokens_per_s=1_000,
    decode_tokens_per_s=50,
    drain_grace_s=10,
    readiness=Readiness(start_timeout_s=60, restart_after_s=20),
    canary=Canary(steps=(10, 50), step_s=5),
)
QUIET = ServiceLoad(replicas=ReplicaCounts(), bucket_ms=Millis(10_000))


def deployment(
    at_ms: int, revision: str, spec: ServiceSpec = SPEC, command: str = "serve"
) -> ServiceDeployed:
    """Return the event of a deployment."""
    job = Job(id=JobId(spec.name), shape=shape_of(1), submitted_ms=Millis(0), team=TEAM)
    work = RunSpec(name=spec.name, command=(command,))
    return ServiceDeployed(Millis(at_ms), spec.name, TEAM, revision, spec, job, work)


def wanting(target: int) -> Autoscale:
    """Return an autoscaler that always wants so many replicas."""

    def autoscale(load: ServiceLoad, now_ms: Millis, policy: AutoscalePolicy) -> ScalingDecision:
        start, cancel, drain = steps_to(target, load.replicas.ready, load.replicas.starting)
        reason = Reason("load-needs-replicas", {"replicas": target, "slots": 1.0})
        return ScalingDecision(
            target=target, start=start, cancel=cancel, drain=drain, reason=reason
        )

    return autoscale


class ServiceWorld:
    """One service and its replicas, in seconds that pass as the test says."""

    def __init__(self, spec: ServiceSpec = SPEC) -> None:
        self.now_ms = 0
        self.state: ServiceState | None = deployed(None, deployment(0, "r1", spec))
        self.number = 0
        self.started_ms: dict[JobId, Millis] = {}
        self.answering: set[JobId] = set()
        self.idle: set[JobId] = set()
        self.target = spec.replicas_min
        self.steps: list[tuple[ServiceState, ServiceStep, ServiceState]] = []

    @property
    def replicas(self) -> Sequence[ReplicaState]:
        """Its replicas."""
        return () if self.state is None else self.state.replicas

    def happens(self, event: ServiceEvent | ReplicaEvent) -> None:
        """Apply an event that was not made by the controller."""
        assert self.state is not None, "the service exists"
        if isinstance(event, ServiceDeployed):
            self.state = deployed(self.state, event)
        else:
            self.state = after_event(self.state, event)
        if self.state.removed_ms is not None and not self.state.replicas:
            self.state = None

    def step(self, **seen: object) -> ServiceStep:
        """Make one step, and carry it out."""
        state = self.state
        if state is None:
            return ServiceStep()
        used = {one.port for one in state.replicas}
        probes = {
            one.id: Probed(is_ready=True, url=f"http://127.0.0.1:{one.port}")
            if one.id in self.answering
            else Probed(is_ready=False)
            for one in state.replicas
            if one.id in self.started_ms
        }
        found = ServiceSeen(
            started_ms=self.started_ms,
            probes=probes,
            load=QUIET,
            covers_ms=Millis(10**9),
            idle=[one for one in self.idle],
            ports=[port for port in range(20_000, 20_040) if port not in used],
        )
        made = step(state, replace(found, **seen), Millis(self.now_ms), wanting(self.target))
        self._carry_out(state, made)
        return made

    def end(self, job_id: JobId) -> None:
        """Let the job of a replica end."""
        assert self.state is not None, "the service exists"
        self.started_ms.pop(job_id, None)
        self.answering.discard(job_id)
        self.idle.discard(job_id)
        self.state = after_end(self.state, job_id, Millis(self.now_ms))
        if self.state.removed_ms is not None and not self.state.replicas:
            self.state = None

    def requeue(self, job_id: JobId) -> None:
        """Let a replica lose its node."""
        assert self.state is not None, "the service exists"
        self.started_ms.pop(job_id, None)
        self.answering.discard(job_id)
        self.state = after_requeue(self.state, job_id, Millis(self.now_ms))

    def work(self, seconds: int = 1) -> None:
        """Let every replica start, answer, and end when it is told to."""
        for _ in range(seconds):
            self.now_ms += 1_000
            for one in list(self.replicas):
                if one.is_stopping:
                    self.end(one.id)
                else:
                    self.started_ms.setdefault(one.id, Millis(self.now_ms))
                    self.answering.add(one.id)
            self.step()

    def _carry_out(self, before: ServiceState, made: ServiceStep) -> None:
        state = before
        for event in made.events:
            state = after_event(state, event)
        for order in made.starts:
            self.number += 1
            ref = ReplicaRef(service="chat", revision=order.revision, port=order.port)
            job = Job(
                id=JobId(f"chat-{self.number}"),
                shape=shape_of(1),
                submitted_ms=Millis(self.now_ms),
                team=TEAM,
                terms=Terms(service=ref),
            )
            state = after_event(state, JobSubmitted(Millis(self.now_ms), job))
        for job_id in made.stops:
            state = after_event(state, JobCancelRequested(Millis(self.now_ms), job_id))
        self.steps.append((before, made, state))
        self.state = state


def random_turn(world: ServiceWorld, random: Random) -> None:
    """Let something happen to the replicas of a service."""
    world.now_ms += random.choice((0, 200, 1_000, 5_000, 30_000))
    for one in list(world.replicas):
        luck = random.random()
        if one.is_stopping:
            if luck < 0.6:
                world.end(one.id)
        elif luck < 0.05:
            world.end(one.id)
        elif luck < 0.08 and one.id in world.started_ms:
            world.requeue(one.id)
        elif luck < 0.5:
            world.started_ms.setdefault(one.id, Millis(world.now_ms))
        elif luck < 0.9 and one.id in world.started_ms:
            world.answering.add(one.id)
        elif luck < 0.93:
            world.answering.discard(one.id)
        elif one.drain_ms is not None:
            world.idle.add(one.id)
