"""Show services: from their records, with states in words and reasons as sentences."""

from statistics import fmean

from tenfold.decide.serve.quorum import quorum_risks
from tenfold.decide.serve.rollout import weights
from tenfold.fleet.fleet import Fleet
from tenfold.model import reason as reasons
from tenfold.model.api.services import (
    QuorumRisk,
    Reason,
    Replica,
    ReplicaCondition,
    Revision,
    Service,
    ServiceCondition,
)
from tenfold.model.service.state import ReplicaState, RevisionState, ServiceState
from tenfold.model.units import SECOND
from tenfold.report.reasons.registry import shown_code
from tenfold.report.reasons.render import render
from tenfold.server.auth.tokens import Token
from tenfold.server.background.follower import FleetSnapshot
from tenfold.server.schemas import iso
from tenfold.server.services.served_model import MODEL_VARIABLE


def to_service(state: ServiceState, snapshot: FleetSnapshot, token: Token) -> Service:
    """Return a service as the API shows it."""
    shares, spec, cold = weights(state), state.spec, state.cold_starts_ms
    return Service(
        name=state.name,
        team=state.team,
        state=_condition(state),
        by=state.by,
        deployed_at=iso(state.deployed_ms),
        ready=state.ready(state.current),
        target=state.target,
        replicas_min=spec.replicas_min,
        replicas_max=spec.most,
        current=state.current,
        canary=state.canary,
        canary_weight=state.weight,
        scaled=None if state.spec.policy is None else _reason(state.scaled, token, state),
        rolled_back=_reason(state.rolled_back, token, state),
        cold_start_s=fmean(cold) / SECOND if cold else None,
        quorum_risks=tuple(
            QuorumRisk(
                kind=one.kind,  # pyright: ignore[reportArgumentType]
                name=one.name,
                ready_left=one.ready_left,
            )
            for one in quorum_risks(state, snapshot.fleet)
        ),
        revisions=tuple(_revision(one, state, shares) for one in state.revisions),
        replicas=tuple(_replica(one, state, snapshot, token) for one in state.replicas),
    )


def _condition(state: ServiceState) -> ServiceCondition:
    if state.removed_ms is not None:
        return "removing"
    if state.canary:
        return "rolling-out"
    if not state.target:
        return "idle"
    ready = state.ready(state.current)
    if ready >= state.target:
        return "ready"
    return "degraded" if ready or state.cold_starts_ms else "starting"


def _revision(one: RevisionState, state: ServiceState, shares: dict[str, float]) -> Revision:
    roles = {state.previous: "previous", state.canary: "canary", state.current: "current"}
    return Revision(
        name=one.name,
        role=roles.get(one.name, "old"),  # pyright: ignore[reportArgumentType]
        weight=shares.get(one.name, 0.0),
        deployed_at=iso(one.deployed_ms),
        command=one.run_spec.command,
        image=one.run_spec.image,
        model=dict(one.run_spec.env).get(MODEL_VARIABLE, ""),
        failures=one.failures,
    )


def _replica(
    one: ReplicaState, state: ServiceState, snapshot: FleetSnapshot, token: Token
) -> Replica:
    fleet = snapshot.fleet
    run = fleet.running.get(one.id) or fleet.orders.get(one.id)
    condition = _replica_condition(one, fleet)
    why = snapshot.reason(one.id) if condition == "pending" else one.reason
    return Replica(
        id=one.id,
        revision=one.revision,
        state=condition,
        url=one.url,
        port=one.port,
        nodes=() if run is None else tuple(slot.node for slot in run.slots),
        ordered_at=iso(one.ordered_ms),
        ready_at=iso(one.ready_ms),
        reason=_reason(why, token, state),
    )


def _replica_condition(one: ReplicaState, fleet: Fleet) -> ReplicaCondition:
    if one.is_stopping:
        return "stopping"
    if one.drain_ms is not None:
        return "draining"
    if one.is_ready:
        return "ready"
    if one.id in fleet.pending or one.id in fleet.held:
        return "pending"
    return "starting" if one.ready_ms is None else "not-ready"


def _reason(why: reasons.Reason | None, token: Token, state: ServiceState) -> Reason | None:
    if why is None:
        return None
    return Reason(code=shown_code(why.code), sentence=render(why, token.reader, state.team))
