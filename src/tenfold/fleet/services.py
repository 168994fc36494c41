"""The services of a fleet: their records, changed only by events.

`after_event` is the whole rule, for one service. The controller uses it too, to see what its own
events lead to before they are recorded.
"""

from collections.abc import Mapping

from msgspec import UNSET
from msgspec.structs import replace

from tenfold.model.events import (
    Event,
    JobCancelRequested,
    JobSubmitted,
    ReplicaDrainStarted,
    ReplicaEvent,
    ReplicaReady,
    ReplicaUnready,
    RolloutAdvanced,
    ServiceDeployed,
    ServiceEvent,
    ServiceLimitsSet,
    ServicePromoted,
    ServiceRemoved,
    ServiceRolledBack,
    ServiceScaled,
)
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.service.replica import ReplicaRef
from tenfold.model.service.state import (
    COLD_STARTS_KEPT,
    ReplicaState,
    RevisionState,
    ServiceState,
)
from tenfold.model.units import MINUTE, Millis

WELL_MS = 1 * MINUTE
"""A replica that was ready for this long did not fail at its start. An assumption."""
ALL = 100.0
"""The weight of a revision that gets every request, in percent."""


class Services:
    """The services of one fleet."""

    def __init__(self) -> None:
        self.states: dict[str, ServiceState] = {}
        self._of: dict[JobId, str] = {}
        """The service of each replica."""

    def copy(self) -> "Services":
        """Return an independent copy."""
        made = Services()
        made.states, made._of = self.states.copy(), self._of.copy()
        return made

    def load(self, states: Mapping[str, ServiceState]) -> None:
        """Replace all records, as from a snapshot."""
        self.states = dict(states)
        self._of = {
            replica.id: name for name, state in states.items() for replica in state.replicas
        }

    def service_of(self, job_id: JobId) -> str | None:
        """Return the service of a replica."""
        return self._of.get(job_id)

    def apply(self, event: ServiceEvent | ReplicaEvent) -> None:
        """Change the record of a service by one of its own events."""
        if isinstance(event, ServiceDeployed):
            self.states[event.service] = deployed(self.states.get(event.service), event)
        else:
            self._change(event.service, event)

    def submitted(self, event: JobSubmitted) -> None:
        """Add a replica; its service exists, unless it was removed in the same moment."""
        ref = replica_of(event.job)
        if ref is not None and ref.service in self.states:
            self._of[event.job.id] = ref.service
            self._change(ref.service, event)

    def cancelling(self, event: JobCancelRequested) -> None:
        """Note that a replica is being stopped."""
        if (service := self._of.get(event.job_id)) is not None:
            self._change(service, event)

    def requeued(self, job_id: JobId, at_ms: Millis) -> None:
        """Note that a replica is pending again: it has no process."""
        if (service := self._of.get(job_id)) is not None:
            self.states[service] = after_requeue(self.states[service], job_id, at_ms)

    def ended(self, job_id: JobId, at_ms: Millis) -> None:
        """Remove a replica whose job is over."""
        service = self._of.pop(job_id, None)
        if service is None:
            return
        state = after_end(self.states[service], job_id, at_ms)
        if state.removed_ms is not None and not state.replicas:
            del self.states[service]
        else:
            self.states[service] = state

    def _change(self, service: str, event: Event) -> None:
        state = self.states.get(service)
        if state is None:
            return
        state = after_event(state, event)
        if state.removed_ms is not None and not state.replicas:
            del self.states[service]
        else:
            self.states[service] = state


def replica_of(job: Job) -> ReplicaRef | None:
    """Return which service a job is a replica of, if of any."""
    if job.terms is None or job.terms.service is UNSET:
        return None
    return job.terms.service


def deployed(state: ServiceState | None, event: ServiceDeployed) -> ServiceState:
    """Return a service after a deployment."""
    revision = RevisionState(
        name=event.revision, deployed_ms=event.at_ms, job=event.job, run_spec=event.run_spec
    )
    by = "" if event.by is UNSET else event.by
    if state is None or state.removed_ms is not None:
        return ServiceState(
            spec=event.spec,
            team=event.team,
            by=by,
            deployed_ms=event.at_ms,
            number=1 if state is None else state.number + 1,
            revisions=(revision,) if state is None else (*state.revisions, revision),
            current=event.revision,
            target=max(event.spec.replicas_min, 0),
            replicas=() if state is None else state.replicas,
        )
    state = replace(state, spec=event.spec, by=by, deployed_ms=event.at_ms)
    state = replace(state, target=min(max(state.target, event.spec.replicas_min), event.spec.most))
    known = state.revision(event.revision)
    if known is not None:
        # Placement and priority of later replicas may differ; what they run does not.
        made = replace(known, job=event.job, run_spec=event.run_spec)
        revisions = tuple(made if one is known else one for one in state.revisions)
        return replace(state, revisions=revisions)
    canary = event.spec.canary
    return _tidy(
        replace(
            state,
            number=state.number + 1,
            revisions=(*state.revisions, revision),
            canary=event.revision,
            weight=ALL if canary is None else canary.first_weight,
            weight_ms=event.at_ms,
            is_held=False,
            is_promoting=False,
            rolled_back=None,
        )
    )


def after_event(state: ServiceState, event: Event) -> ServiceState:
    """Return a service after an event about it or one of its replicas."""
    match event:
        case JobSubmitted():
            return _with_replica(state, event)
        case ServiceLimitsSet():
            spec = replace(
                state.spec, replicas_min=event.replicas_min, replicas_max=event.replicas_max
            )
            target = min(max(state.target, spec.replicas_min), spec.most)
            return replace(state, spec=spec, target=target)
        case ServiceScaled():
            return replace(state, target=event.target, scaled=event.reason, scaled_ms=event.at_ms)
        case ServiceRemoved():
            return replace(_without_canary(state), removed_ms=event.at_ms, target=0)
        case RolloutAdvanced() | ServicePromoted() | ServiceRolledBack():
            return _after_rollout(state, event)
        case _:
            return _after_replica(state, event)


def _after_rollout(
    state: ServiceState, event: RolloutAdvanced | ServicePromoted | ServiceRolledBack
) -> ServiceState:
    if isinstance(event, RolloutAdvanced):
        is_by_user, is_all = event.by is not UNSET, event.weight >= ALL
        return replace(
            state,
            weight=event.weight,
            weight_ms=event.at_ms,
            is_held=is_by_user and not is_all,
            is_promoting=is_by_user and is_all,
        )
    if isinstance(event, ServicePromoted):
        made = replace(state, current=event.revision, previous=state.current)
        return _tidy(_without_canary(made))
    return _rolled_back(state, event)


def _after_replica(state: ServiceState, event: Event) -> ServiceState:
    match event:
        case JobCancelRequested():
            return _changed(state, event.job_id, is_stopping=True)
        case ReplicaReady():
            return _ready(state, event)
        case ReplicaUnready():
            return _changed(
                state, event.job_id, is_ready=False, changed_ms=event.at_ms, reason=event.reason
            )
        case ReplicaDrainStarted():
            if event.has_failed:
                state = _failed(state, event.job_id, event.at_ms)
            return _changed(state, event.job_id, drain_ms=event.at_ms, reason=event.reason)
        case _:
            return state


def after_requeue(state: ServiceState, job_id: JobId, at_ms: Millis) -> ServiceState:
    """Return a service after one of its replicas lost its processes, and waits for a start."""
    return _changed(
        state, job_id, is_ready=False, ready_ms=None, changed_ms=at_ms, is_stopping=False
    )


def after_end(state: ServiceState, job_id: JobId, at_ms: Millis) -> ServiceState:
    """Return a service without a replica; one that was not to end has failed."""
    replica = next((one for one in state.replicas if one.id == job_id), None)
    if replica is None:
        return state
    if replica.drain_ms is None and not replica.is_stopping:
        state = _failed(state, job_id, at_ms)
    replicas = tuple(one for one in state.replicas if one.id != job_id)
    return _tidy(replace(state, replicas=replicas))


def _with_replica(state: ServiceState, event: JobSubmitted) -> ServiceState:
    ref = replica_of(event.job)
    assert ref is not None, f"job `{event.job.id}` is no replica"
    replica = ReplicaState(
        id=event.job.id,
        revision=ref.revision,
        port=ref.port,
        ordered_ms=event.at_ms,
        changed_ms=event.at_ms,
    )
    return replace(state, replicas=(*state.replicas, replica))


def _ready(state: ServiceState, event: ReplicaReady) -> ServiceState:
    replica = next((one for one in state.replicas if one.id == event.job_id), None)
    if replica is None:
        return state
    if replica.ready_ms is None:
        cold_ms = event.at_ms - replica.ordered_ms
        state = replace(state, cold_starts_ms=(*state.cold_starts_ms, cold_ms)[-COLD_STARTS_KEPT:])
    return _changed(
        state,
        event.job_id,
        is_ready=True,
        url=event.url,
        ready_ms=replica.ready_ms or event.at_ms,
        changed_ms=event.at_ms,
        reason=None,
    )


def _failed(state: ServiceState, job_id: JobId, at_ms: Millis) -> ServiceState:
    """Count the failure of a replica against its revision."""
    replica = next((one for one in state.replicas if one.id == job_id), None)
    revision = None if replica is None else state.revision(replica.revision)
    if replica is None or revision is None:
        return state
    was_well = replica.ready_ms is not None and at_ms - replica.ready_ms >= WELL_MS
    count = 1 if was_well else revision.failures + 1
    made = replace(revision, failures=count, failed_ms=at_ms)
    return replace(
        state, revisions=tuple(made if one is revision else one for one in state.revisions)
    )


def _rolled_back(state: ServiceState, event: ServiceRolledBack) -> ServiceState:
    if event.revision == state.canary:
        return _tidy(replace(_without_canary(state), rolled_back=event.reason))
    # The revision before gets the requests back, once enough of its replicas are ready.
    return replace(
        state,
        canary=event.to,
        weight=ALL,
        weight_ms=event.at_ms,
        is_held=False,
        is_promoting=True,
        rolled_back=event.reason,
    )


def _without_canary(state: ServiceState) -> ServiceState:
    return replace(state, canary="", weight=0.0, is_held=False, is_promoting=False)


def _tidy(state: ServiceState) -> ServiceState:
    """Forget revisions that have no replicas and to which nobody can roll back."""
    kept = (state.current, state.previous, state.canary, *(one.revision for one in state.replicas))
    revisions = tuple(one for one in state.revisions if one.name in kept)
    return state if len(revisions) == len(state.revisions) else replace(state, revisions=revisions)


def _changed(state: ServiceState, job_id: JobId, **changes: object) -> ServiceState:
    replicas = tuple(replace(one, **changes) if one.id == job_id else one for one in state.replicas)
    return replace(state, replicas=replicas)
