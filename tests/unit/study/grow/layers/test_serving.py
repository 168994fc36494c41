"""Serving as a law: GPUs that requests keep busy against those of the pool."""

import pytest
from msgspec.structs import replace

import growth_builders as made
from tenfold.model.growth.growth import Axis, GrowSpec, ServiceLoad
from tenfold.physics.growth.law import breaking_factor
from tenfold.study.grow.ladder import climb
from tenfold.study.grow.layer import Law
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


def laws(*services: ServiceLoad, axis: Axis = "traffic") -> list[Law]:
    grow = GrowSpec(services=services)
    return Serving().judged(state_of(made.given(made.fleet(), grow)), axis)


def test_a_pool_breaks_where_requests_keep_all_its_gpus_busy():
    [law] = laws(CHAT)
    assert (law.layer, law.resource) == ("serving", "pool train")
    assert law.strain(1) < law.strain(2) < law.strain(4)
    k = breaking_factor(law.strain, 1_000)
    assert k is not None
    assert law.strain(k) == pytest.approx(1.0)
    assert law.symptom(k) == "chat keep 100% of the 256 GPUs of pool train busy"


def test_services_of_one_pool_share_it():
    [alone], [both] = laws(CHAT), laws(CHAT, replace(CHAT, name="more"))
    assert both.strain(1) == pytest.approx(2 * alone.strain(1))


def test_a_most_of_replicas_breaks_for_itself():
    pool, capped = laws(replace(CHAT, replicas_most=1))
    assert capped.resource == "service chat"
    assert capped.strain(2) == pytest.approx(2 * capped.strain(1))
    assert capped.strain(1) > pool.strain(1)


def test_a_stricter_promise_takes_no_fewer_gpus():
    [loose], [strict] = laws(CHAT), laws(replace(CHAT, tpot_s=0.02))
    assert strict.strain(1) >= loose.strain(1)


def test_nodes_that_come_with_the_traffic_carry_it():
    [law] = laws(CHAT, axis="all")
    assert law.strain(8) == pytest.approx(law.strain(1))


def test_a_promise_that_nothing_keeps_is_broken_today_whatever_grows():
    grow = GrowSpec(services=(replace(CHAT, tpot_s=1e-6),))
    answer = climb(made.given(made.fleet(), grow), GrowQuestion(axis="traffic"))
    assert answer.first is None
    assert answer.assumptions == (
        "over its limit today, whatever grows: serving "
        "(no replica on pool train keeps the promise of chat)",
    )


def test_what_is_missing_is_named():
    assert [law.needs for law in laws()] == ["`[[service]]`s of the grow file"]
    needs = [law.needs for law in laws(replace(CHAT, tpot_s=None))]
    assert needs == ["`tpot_s` of service `chat`"]
    assert laws(CHAT, axis="jobs") == []
