"""What a gateway has counted, as the record that the control plane reads."""

from tenfold.gateway.pool.pool import ServicePool
from tenfold.gateway.pool.revision import RevisionState
from tenfold.gateway.pool.service import ServiceState
from tenfold.model.service.traffic import (
    GatewayTraffic,
    OverflowTraffic,
    ReplicaTraffic,
    RevisionTraffic,
    RolledBack,
    ServiceTraffic,
)


def traffic_of(
    pool: ServicePool, gateway_id: str, started_ms: int, at_ms: int, now_s: float
) -> GatewayTraffic:
    """Return the counters of all services, and what is in them now."""
    return GatewayTraffic(
        gateway_id=gateway_id,
        started_ms=started_ms,
        at_ms=at_ms,
        routing_version=pool.version,
        services=tuple(_service(one, now_s) for one in pool.services.values()),
        rolled_back=tuple(
            RolledBack(
                service=service.spec.name,
                revision=one.spec.name,
                at_ms=one.rolled_back_ms,
                cause=one.rolled_back.cause,
                requests=one.rolled_back.requests,
                percent=one.rolled_back.percent,
                percent_others=one.rolled_back.percent_others,
            )
            for service in pool.services.values()
            for one in service.revisions.values()
            if one.rolled_back is not None
        ),
    )


def _service(service: ServiceState, now_s: float) -> ServiceTraffic:
    replicas = [one for each in service.revisions.values() for one in each.replicas]
    estimator = service.estimator
    input_tokens = estimator.input_tokens or float(estimator.input_of(0))
    return ServiceTraffic(
        name=service.spec.name,
        arrivals=service.arrivals,
        arrived_input_tokens=service.arrived_input_tokens,
        arrived_output_tokens=service.arrived_output_tokens,
        output_tokens=service.output_tokens,
        ended=service.ended + sum(one.requests - one.errors for one in service.places),
        ended_output_tokens=service.ended_output_tokens
        + sum(one.output_tokens for one in service.places),
        late=service.late,
        failed=service.failed,
        shed=service.shed,
        limited=service.limited,
        retries=service.retries,
        hedges=service.hedges,
        busy_request_ms=service.busy_ms(now_s),
        outstanding_requests=service.in_service,
        outstanding_tokens=sum(one.tokens for one in replicas),
        waiting_requests=len(service.queue),
        waiting_tokens=service.queue.tokens,
        oldest_wait_ms=round(
            1_000 * max((now_s - one.arrived_s for one in service.queue), default=0.0)
        ),
        tokens_per_request=input_tokens + estimator.output_tokens,
        input_tokens_per_request=input_tokens,
        output_tokens_per_request=estimator.output_tokens,
        revisions=tuple(_revision(one) for one in service.revisions.values()),
        overflow=tuple(
            OverflowTraffic(
                name=one.spec.name,
                outstanding=one.outstanding,
                requests=one.requests,
                errors=one.errors,
                input_tokens=one.input_tokens,
                output_tokens=one.output_tokens,
                usd_micros=one.usd_spent_micros,
            )
            for one in service.places
        ),
    )


def _revision(revision: RevisionState) -> RevisionTraffic:
    return RevisionTraffic(
        name=revision.spec.name,
        requests=revision.requests,
        errors=revision.errors,
        misses=revision.misses,
        ttft_counts=tuple(revision.ttft_counts),
        ttft_ms_sum=revision.ttft_ms_sum,
        replicas=tuple(
            ReplicaTraffic(
                id=one.spec.id,
                requests=one.requests,
                tokens=one.tokens,
                breaker=one.breaker.state,
            )
            for one in revision.replicas
        ),
    )
