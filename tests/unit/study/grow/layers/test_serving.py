"""Serving as a law: GPUs that requests keep busy against those of the pool."""

import pytest
from msgspec.structs import replace

import growth_builders as made
from tenfold.model.growth.growth import Axis, GrowSpec, GrowthLimits, ServiceLoad
from tenfold.physics.growth.breaking import breaking_factor
from tenfold.study.grow.analyse import analyse
from tenfold.study.grow.layer import Constraint
from tenfold.study.grow.layers.compute.serving import Serving
from tenfold.study.grow.question import GrowQuestion
from tenfold.study.grow.state import state_of

CHAT = ServiceLoad(
    name="chat",
    model="llama-3-8b",
    qps=100.0,
    input_tokens=900,
    output_tokens=200,
    ttft_s=1.0,
    tpot_s=0.05,
)


def constraints(*services: ServiceLoad, axis: Axis = "traffic") -> list[Constraint]:
    grow = GrowSpec(services=services)
    return Serving().evaluated(state_of(made.given(made.fleet(), grow)), axis)


def test_a_pool_breaks_where_requests_need_all_its_gpus():
    [constraint] = constraints(CHAT)
    assert (constraint.layer, constraint.resource) == ("serving", "pool train")
    assert constraint.utilisation(1) < constraint.utilisation(2) < constraint.utilisation(4)
    k = breaking_factor(constraint.utilisation, 1_000)
    assert k is not None
    assert constraint.utilisation(k) == pytest.approx(1.0)
    assert constraint.symptom(k) == (
        "chat: 100% of the 256 GPUs in pool train needed to serve 99% of requests on time"
    )


def test_more_requests_on_time_take_more_gpus_and_more_replicas():
    found = []
    for share in (0.5, 0.9, 0.9999):
        grow = GrowSpec(
            limits=GrowthLimits(attainment_least=share),
            services=(replace(CHAT, replicas_most=4),),
        )
        state = state_of(made.given(made.fleet(), grow))
        found.append([one.utilisation(1) for one in Serving().evaluated(state, "traffic")])
    assert all(a < b < c for a, b, c in zip(*found, strict=True))


def test_services_of_one_pool_share_it():
    [alone], [both] = constraints(CHAT), constraints(CHAT, replace(CHAT, name="more"))
    # Peaks of two services do not come together, but each has its own reserve here.
    assert both.utilisation(1) == pytest.approx(2 * alone.utilisation(1), rel=0.05)


def test_a_most_of_replicas_breaks_for_itself():
    pool, capped = constraints(replace(CHAT, replicas_most=1))
    assert capped.resource == "service chat"
    assert capped.utilisation(2) == pytest.approx(2 * capped.utilisation(1))
    assert capped.utilisation(1) > pool.utilisation(1)


def test_a_stricter_promise_takes_no_fewer_gpus():
    [loose], [strict] = constraints(CHAT), constraints(replace(CHAT, tpot_s=0.02))
    assert strict.utilisation(1) >= loose.utilisation(1)


def test_nodes_that_come_with_the_traffic_carry_it():
    [constraint] = constraints(CHAT, axis="all")
    assert constraint.utilisation(8) == pytest.approx(constraint.utilisation(1))


def test_a_promise_that_nothing_keeps_is_broken_today_whatever_grows():
    grow = GrowSpec(services=(replace(CHAT, tpot_s=1e-6),))
    answer = analyse(made.given(made.fleet(), grow), GrowQuestion(axis="traffic"))
    assert answer.first is None
    assert answer.assumptions == (
        "already over its limit: Serving, service chat "
        "(no replica on pool train meets the latency targets of chat)",
    )


def test_what_is_missing_is_named():
    assert [constraint.needs for constraint in constraints()] == ["`[[service]]` in the grow file"]
    needs = [constraint.needs for constraint in constraints(replace(CHAT, tpot_s=None))]
    assert needs == ["`tpot_s` for service `chat`"]
    assert constraints(CHAT, axis="jobs") == []
