"""Turn requests about services into events.

A request is compared with the record as it will be once the events of this moment are applied: a
second request about the same service in one moment is refused, and made again by whoever sent it.
"""

from collections.abc import Sequence

from msgspec import UNSET
from msgspec.structs import replace

from tenfold.fleet.services import ALL
from tenfold.fleet.view import FleetView
from tenfold.live.inbox import ChangeService, DeployService, StepService
from tenfold.live.job_registry import JobRegistry
from tenfold.model.events import (
    Event,
    JobSubmitted,
    RolloutAdvanced,
    ServiceDeployed,
    ServiceLimitsSet,
    ServiceRemoved,
    ServiceRolledBack,
    service_of,
)
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.job.submission import Admitted
from tenfold.model.job.terms import Terms
from tenfold.model.reason import Reason, UserRef
from tenfold.model.service.replica import ReplicaRef
from tenfold.model.service.spec import PORT
from tenfold.model.service.state import RevisionState, ServiceState
from tenfold.model.service.step import ReplicaOrder
from tenfold.model.units import Millis

CHANGED = "service-changed"
"""The code of a request that met another one about the same service; it may be sent again."""


class ServiceRequests:
    """The requests about services, as the loop answers them."""

    def __init__(self, view: FleetView, registry: JobRegistry) -> None:
        self._view, self._registry = view, registry

    def events_of(
        self,
        request: DeployService | ChangeService | StepService,
        now_ms: Millis,
        events: Sequence[Event],
    ) -> list[Event] | Reason:
        """Return the events of a request, given pending events; or why it is refused."""
        name = request.spec.name if isinstance(request, DeployService) else request.service
        if any(service_of(event) == name for event in events):
            return Reason(CHANGED, {"service": name})
        state = self._view.services.get(name)
        if isinstance(request, DeployService):
            return _deploy(state, request, now_ms)
        if state is None:
            return Reason("no-such-service", {"service": name})
        if isinstance(request, ChangeService):
            return _change(state, request, now_ms)
        if state is not request.seen:
            return Reason(CHANGED, {"service": name})
        # The step was made a moment ago: what it says is recorded now.
        made: list[Event] = [replace(event, at_ms=now_ms) for event in request.step.events]
        for order in request.step.starts:
            revision = state.revision(order.revision)
            if revision is not None:
                made.append(self._replica(state, revision, order, now_ms))
        return made

    def _replica(
        self, state: ServiceState, revision: RevisionState, order: ReplicaOrder, now_ms: Millis
    ) -> JobSubmitted:
        number = self._registry.next_number
        ref = ReplicaRef(service=state.name, revision=revision.name, port=order.port)
        job = replace(
            revision.job,
            id=JobId(f"{state.name}-{number}"),
            submitted_ms=now_ms,
            seq=number,
            terms=replace(revision.job.terms or Terms(), service=ref),
        )
        run_spec = _for_replica(revision.run_spec, ref)
        self._registry.admit([Admitted(job, run_spec)])
        return JobSubmitted(now_ms, job, run_spec)


def _deploy(
    state: ServiceState | None, request: DeployService, now_ms: Millis
) -> list[Event] | Reason:
    spec, by = request.spec, request.by or UNSET
    if state is not None and state.removed_ms is None and state.team != request.team:
        return Reason("service-of-other-team", {"service": spec.name})
    name = "r1" if state is None else f"r{state.number + 1}"
    events: list[Event] = []
    if state is not None and state.removed_ms is None:
        alike = None if request.is_new_revision else _alike(state, request.job, request.run_spec)
        if alike is not None:
            name = alike
            if state.canary and alike == state.current:
                reason = _by_user(state, request.by)
                events.append(
                    ServiceRolledBack(
                        now_ms, spec.name, state.team, state.canary, alike, reason, by
                    )
                )
    # Where it was deployed from is in what it runs.
    kept = replace(spec, origin=None)
    deployed = ServiceDeployed(
        now_ms, spec.name, request.team, name, kept, request.job, request.run_spec, by
    )
    return [*events, deployed]


def _alike(state: ServiceState, job: Job, run_spec: RunSpec) -> str | None:
    """Return the revision that already runs the same, of those in use.

    Where it was deployed from does not count: any change in the folder would be a new revision.
    """
    for name in (state.canary, state.current):
        known = state.revision(name)
        if known is not None and known.job.shape == job.shape:
            before = replace(known.run_spec, origin=run_spec.origin, trace=run_spec.trace)
            if before == run_spec:
                return name
    return None


def _change(state: ServiceState, request: ChangeService, now_ms: Millis) -> list[Event] | Reason:
    name, team, by = state.name, state.team, request.by or UNSET
    if state.removed_ms is not None:
        return Reason("no-such-service", {"service": name})
    match request.verb:
        case "scale":
            least, most = request.replicas_min, request.replicas_max
            return [ServiceLimitsSet(now_ms, name, team, least, most, by)]
        case "remove":
            return [ServiceRemoved(now_ms, name, team, by)]
        case "rollback":
            return _roll_back(state, request, now_ms)
        case "canary" | "promote":
            if not state.canary:
                return Reason("no-rollout", {"service": name})
            weight = ALL if request.verb == "promote" else request.weight
            return [RolloutAdvanced(now_ms, name, team, state.canary, weight, by)]


def _roll_back(state: ServiceState, request: ChangeService, now_ms: Millis) -> list[Event] | Reason:
    lost, to = (state.canary, state.current) if state.canary else (state.current, state.previous)
    if state.revision(to) is None:
        return Reason("no-earlier-revision", {"service": state.name})
    reason = _by_user(state, request.by)
    by = request.by or UNSET
    return [ServiceRolledBack(now_ms, state.name, state.team, lost, to, reason, by)]


def _by_user(state: ServiceState, by: str) -> Reason:
    return Reason("rolled-back-by", {"by": UserRef(by, state.team)} if by else {})


def _for_replica(run_spec: RunSpec, ref: ReplicaRef) -> RunSpec:
    """Return what a replica runs: with its port, and with who it is in its environment."""
    port = str(ref.port)
    given = {
        "PORT": port,
        "TENFOLD_SERVICE": ref.service,
        "TENFOLD_REVISION": ref.revision,
    }
    own = tuple(
        (name, value.replace(PORT, port)) for name, value in run_spec.env if name not in given
    )
    origin = run_spec.origin
    return replace(
        run_spec,
        # The event of the deployment has the diff; it need not be in that of each replica.
        origin=None if origin is None else replace(origin, code=None),
        command=tuple(one.replace(PORT, port) for one in run_spec.command),
        env=(*own, *given.items()),
    )
