"""Where gateways send the requests of a service, from its record."""

from tenfold.decide.serve.rollout import shadow_percent, weights
from tenfold.model.service.routing import Replica, Revision, Service
from tenfold.model.service.state import ReplicaState, ServiceState


def routing_of(state: ServiceState) -> Service:
    """Return how the requests of a service are routed now."""
    spec, shares = state.spec, weights(state)
    names = dict.fromkeys((*shares, *(one.revision for one in state.replicas)))
    return Service(
        name=spec.name,
        models=spec.models,
        teams=spec.teams,
        revisions=tuple(
            Revision(
                name=name,
                weight=shares.get(name, 0.0),
                shadow_percent=shadow_percent(state) if name == state.canary else 0.0,
                is_canary=name == state.canary,
                replicas=tuple(
                    _replica(one)
                    for one in state.replicas
                    if one.revision == name and one.is_ready and one.url
                ),
            )
            for name in names
        ),
        slots_per_replica=(spec.slots or 0) if spec.rates is None else spec.rates.slots,
        affinity=spec.affinity,
        session_header=spec.session_header,
        hold=spec.hold,
        rollback=spec.rollback,
        overflow=spec.overflow,
        ttft_objective_s=spec.ttft_objective_s,
        tpot_objective_s=spec.tpot_objective_s,
        latency_objective_s=spec.latency_objective_s,
        retries_max=spec.retries_max,
        hedge_after_s=spec.hedge_after_s,
        first_byte_timeout_s=spec.first_byte_timeout_s,
        idle_timeout_s=spec.idle_timeout_s,
        key=spec.key,
    )


def _replica(one: ReplicaState) -> Replica:
    return Replica(id=one.id, url=one.url, state="draining" if one.is_leaving else "ready")
