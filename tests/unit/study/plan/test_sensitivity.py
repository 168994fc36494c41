"""One driver raised at a time names itself as the trigger."""

import pytest
from msgspec.structs import replace

from tenfold.compose.fleet import open_fleet
from tenfold.decide.layout.request import PlanningTarget, TrainRequest
from tenfold.decide.layout.serve import ServeRequest, ServeTarget
from tenfold.model.plan import ServiceDemand
from tenfold.study.ceiling.design import CeilingQuestion, design_of
from tenfold.study.plan.sensitivity import (
    Driver,
    SensitivityAnswer,
    deeper,
    serve_sensitivity,
    train_sensitivity,
)
from tenfold.study.plan.target import serve_targets

FLEET = """
[[pool]]
name = "h100"
accelerator = "H100"
nodes = 8
gpus_per_node = 8
price = { kind = "reserved", usd_per_gpu_hour = 2 }
"""
DAY_S = 86_400.0


@pytest.fixture(scope="module")
def demand(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[TrainRequest, PlanningTarget, list[ServeTarget]]:
    path = tmp_path_factory.mktemp("fleet") / "fleet.toml"
    path.write_text(FLEET)
    fleet = open_fleet(path)
    design = design_of(fleet, CeilingQuestion(model="Llama 3.1 8B"))
    assert design.request is not None
    return design.request, design.target, serve_targets(fleet)


def limited(request: TrainRequest, **limits: float) -> TrainRequest:
    return replace(request, job=replace(request.job, **limits))


def row(answer: SensitivityAnswer, name: str) -> Driver:
    [found] = [one for one in answer.drivers if one.driver == name]
    return found


def test_without_limits_only_the_model_can_change_the_plan(demand):
    request, target, _ = demand
    answer = train_sensitivity(request, target)
    assert answer.trigger == "model"
    assert row(answer, "model").step == "family-changes"
    assert [one.driver for one in answer.drivers if not one.stated] == ["data", "latency", "cost"]


@pytest.mark.parametrize("driver", ["data", "latency"])
def test_a_tight_deadline_makes_data_and_latency_ask_for_gpus(demand, driver):
    request, target, _ = demand
    answer = train_sensitivity(limited(request, tokens=2e11, deadline_s=30 * DAY_S), target)
    found = row(answer, driver)
    assert found.factor is not None
    assert found.step in ("gpus-double", "nothing-fits")


def test_concurrent_runs_that_share_the_fleet_trigger_first(demand):
    request, target, _ = demand
    alone = train_sensitivity(limited(request, tokens=1e12, deadline_s=22 * DAY_S), target)
    assert alone.base.gpus == 64
    assert alone.trigger == "concurrency"
    assert row(alone, "concurrency").at_double == "nothing-fits"
    assert "most sensitive to" in alone.sentence


def test_a_halved_budget_is_named_as_cost(demand):
    request, target, _ = demand
    answer = train_sensitivity(limited(request, tokens=1e11, budget_usd=8_000.0), target)
    cost = row(answer, "cost")
    assert cost.at_double == "nothing-fits"
    assert "budget" in cost.sentence


def test_both_limits_hold_at_once(demand):
    request, target, _ = demand
    limits = limited(request, tokens=1e11, budget_usd=8_000.0, deadline_s=300 * DAY_S)
    answer = train_sensitivity(limits, target)
    assert row(answer, "cost").at_double == "nothing-fits"
    broke = train_sensitivity(limited(limits, budget_usd=10.0), target)
    assert broke.trigger is None
    assert "no plan even at today's demand" in broke.sentence


def test_a_service_names_load_objective_and_budget(demand):
    """One service that is full, prompt and poor: every driver but its own has room."""
    request, _, targets = demand
    wanted = ServiceDemand(
        model=request.job.model,
        qps=100.0,
        input_tokens=1000,
        output_tokens=100,
        ttft_s=2.0,
        tpot_s=0.012,
        precisions=("bf16",),
        spare_replicas=0,
    )
    service = ServeRequest(service=wanted, shape=request.shape)
    answer = serve_sensitivity(service, targets, usd_per_hour_max=1e6)
    assert row(answer, "concurrency").at_double in ("gpus-double", "nothing-fits")
    assert row(answer, "latency").at_double != "none"
    assert row(answer, "cost").step == "none"
    broke = serve_sensitivity(service, targets, usd_per_hour_max=1.0)
    assert broke.trigger is None
    assert "/h, over $1.00/h" in broke.sentence


def test_every_driver_is_announced_and_says_how_far_the_plan_holds(demand):
    request, target, _ = demand
    heard: list[str] = []
    answer = train_sensitivity(
        limited(request, tokens=1e12, deadline_s=24 * DAY_S), target, begun=heard.append
    )
    assert heard == ["model", "data", "concurrency", "latency", "cost"]
    for found in answer.drivers:
        if not found.stated:
            assert found.holds_to is None
        elif found.factor is not None:
            assert 1 <= found.holds_to < found.factor
    holding = [one for one in answer.drivers if one.stated and one.factor is None]
    assert all(one.holds_to == 8 for one in holding)


def test_a_deeper_model_keeps_what_makes_it_divide(demand):
    request, _, _ = demand
    assert deeper(request.shape, 2).layers == 64
    assert deeper(replace(request.shape, layers=126), 2).layers == 254
    assert deeper(request.shape, 2).params == pytest.approx(2 * request.shape.params, rel=0.15)
