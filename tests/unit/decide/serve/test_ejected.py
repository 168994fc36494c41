"""A revision that only fails is ejected before it has the requests by which it is judged."""

import pytest
from msgspec.structs import replace

from stub_gateway import NOTHING
from tenfold.decide.serve.rollout import ejected
from tenfold.model.service.traffic import GatewayTraffic, ReplicaTraffic, RevisionTraffic


def revision(name: str, requests: int, errors: int, *breakers: str) -> RevisionTraffic:
    replicas = tuple(
        ReplicaTraffic(id=f"{name}-{at}", requests=0, tokens=0, breaker=breaker)  # pyright: ignore[reportArgumentType]
        for at, breaker in enumerate(breakers)
    )
    return RevisionTraffic(
        name=name,
        requests=requests,
        errors=errors,
        misses=0,
        ttft_counts=(),
        ttft_ms_sum=0,
        replicas=replicas,
    )


def traffic(*revisions: RevisionTraffic) -> GatewayTraffic:
    return GatewayTraffic(
        gateway_id="g",
        started_ms=0,
        at_ms=9,
        routing_version=1,
        services=(replace(NOTHING, revisions=revisions),),
        rolled_back=(),
    )


OLD = revision("r1", 200, 2, "closed", "closed")


def test_a_revision_whose_replicas_are_all_ejected_is_told_with_its_figures():
    [lost] = ejected(traffic(OLD, revision("r2", 11, 11, "open")), "chat")
    assert (lost.revision, lost.cause, lost.requests) == ("r2", "errors", 11)
    assert (lost.percent, lost.percent_others) == (100.0, 1.0)


@pytest.mark.parametrize(
    "one",
    [
        revision("r2", 11, 11, "open", "closed"),
        revision("r2", 4, 4, "open"),
        revision("r2", 100, 8, "half-open"),
        revision("r2", 11, 11),
    ],
    ids=["one-replica-is-left", "too-few-requests", "it-served-before", "it-has-no-replica"],
)
def test_other_revisions_are_left_to_the_gateway(one: RevisionTraffic):
    assert ejected(traffic(OLD, one), "chat") == []


def test_other_services_are_not_looked_at():
    assert ejected(traffic(OLD, revision("r2", 11, 11, "open")), "other") == []
