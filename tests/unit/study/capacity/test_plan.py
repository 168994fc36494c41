"""Capacity plans: drivers and their shares, spares, limits, budgets, confidence, reviews."""

import numpy as np
import pytest
from msgspec.structs import replace

from growth_builders import fleet, given, tier
from tenfold.compose.fleet import OpenFleet
from tenfold.decide.capacity.buildout.formulate import formulate
from tenfold.decide.layout.train import plan_train
from tenfold.model.capacity.drivers import Driver, Levels
from tenfold.model.capacity.plan_file import (
    BuyTable,
    ClassTable,
    GateTable,
    Horizon,
    PlanFile,
    RentTable,
)
from tenfold.model.errors import InputError, NoAnswer
from tenfold.model.fleet.spec import Price
from tenfold.model.growth.growth import Facility, GrowSpec, LeadTime, Pace
from tenfold.model.plan import TrainingJob
from tenfold.model.units import UsdMicros
from tenfold.physics.layout import lay_out
from tenfold.study.capacity.addition import shortfalls
from tenfold.study.capacity.answer import CapacityAnswer
from tenfold.study.capacity.inputs import CapacityInputs, TimedSeries
from tenfold.study.capacity.plan import plan_capacity
from tenfold.study.capacity.problem import prepared
from tenfold.study.capacity.review import review
from tenfold.study.capacity.solver import relax
from tenfold.study.capacity.spares import spares_line
from tenfold.study.grow.state import planned_state
from tenfold.study.plan.target import train_target
from tenfold.study.plan.train import train_request

pytest.importorskip("scipy")
TODAY = "2026-11-15"
PACE = Pace(today=TODAY, doubles_in_months=18.0)
NODES = LeadTime(thing="nodes", weeks_p50=10, weeks_p90=20)


def owned(nodes: int = 32, power_kw: float | None = None) -> OpenFleet:
    price = Price(kind="owned", usd_micros_per_hour=UsdMicros(1_200_000), basis="stated")
    opened = fleet(nodes=nodes, power_kw=power_kw, tiers=(tier(),))
    own = replace(opened.spec.pools[0], price=price, accelerator="H100-80G-SXM")
    spec = replace(opened.spec, pools=(own,))
    return OpenFleet(spec=spec, layout=lay_out(spec), catalogue=opened.catalogue)


def inputs(
    grow: GrowSpec | None = None, opened: OpenFleet | None = None, **changes: object
) -> CapacityInputs:
    stated = {"plan": PlanFile(plan=Horizon(months=12, scenarios=2, draws=100)), "axis": "nodes"}
    return CapacityInputs(
        grow=given(opened or owned(), grow or GrowSpec(pace=PACE, lead_times=(NODES,))),
        **{**stated, **changes},  # pyright: ignore
    )


def driver(name: str, kind: str, base: float, **changes: object) -> Driver:
    groups = {"training": "roadmap", "gpus": "roadmap", "dataset": "data", "budget": "finance"}
    stated = {"group": groups[kind], "kind": kind, "amount": Levels(base=base), "begins": TODAY}
    return Driver(name=name, **{**stated, **changes})  # pyright: ignore


def test_orders_leave_the_p90_of_the_lead_time_before_they_are_needed():
    phases = [one for one in plan_capacity(inputs()).phases if one.kind == "buy"]
    assert phases
    for one in phases:
        days = np.datetime64(one.needed) - np.datetime64(one.order_by)
        assert days.astype(int) == 20 * 7
        assert one.order_by >= TODAY
        assert one.confidence is not None
        assert one.confidence > 0.8


def test_a_driver_removed_takes_exactly_its_share_with_it():
    two = (driver("a", "gpus", 40), driver("b", "gpus", 80, probability=0.5))
    both, one = prepared(inputs(drivers=two)).draws, prepared(inputs(drivers=two[:1])).draws
    assert both.without("b") == pytest.approx(one.gpus.sum(axis=1))
    shares = {share.name: share for share in plan_capacity(inputs(drivers=two)).drivers}
    assert shares["a"].gpu_hours == pytest.approx(40 * 730 * 12)
    assert shares["b"].gpu_hours == pytest.approx(0.5 * 80 * 730 * 12, rel=0.25)


def test_two_runs_a_year_take_the_gpu_hours_that_the_planner_says():
    opened = owned()
    stated = {"model": "Llama 3.1 8B", "tokens": 1e11, "gpus": 64}
    runs = driver("runs", "training", 2, **stated)
    share = plan_capacity(inputs(opened=opened, drivers=(runs,))).drivers[0]
    job = TrainingJob(**stated)
    target = train_target(opened, accelerator="H100").target
    best = plan_train(train_request(job, opened.catalogue), target).plans[0]  # pyright: ignore
    assert share.gpu_hours == pytest.approx(2 * 64 * best.run.days * 24)


def test_the_same_seed_draws_the_same_demand():
    asked = inputs(drivers=(driver("a", "gpus", 40, probability=0.5),))
    assert np.array_equal(prepared(asked).draws.gpus, prepared(asked).draws.gpus)


def test_twenty_nodes_on_ten_free_ports_are_refused_with_what_is_missing():
    opened = owned()
    one_port = replace(opened.spec, pools=(replace(opened.spec.pools[0], nics_per_node=1),))
    narrow = OpenFleet(spec=one_port, layout=lay_out(one_port), catalogue=opened.catalogue)
    asked = inputs(GrowSpec(facility=Facility(ports_free=10), pace=PACE), narrow)
    assert shortfalls(asked, {"train": 10}) == []
    (found,) = shortfalls(asked, {"train": 20})
    assert found.sentence == (
        "Switch ports, all fabrics: 20 nodes need 20 ports, 10 free, 10 short"
    )
    with pytest.raises(InputError, match="no pool `other`"):
        shortfalls(asked, {"other": 1})


def test_a_power_limit_binds_and_more_of_it_is_worth_money():
    grow = GrowSpec(
        pace=PACE,
        lead_times=(NODES, LeadTime(thing="site-power", weeks_p50=80, weeks_p90=100)),
    )
    answer = plan_capacity(inputs(grow, owned(power_kw=480.0)))
    assert [one.name for one in answer.binding] == ["Site power, site hall"]
    assert answer.binding[0].usd_per_unit > 0
    late = next(one for one in answer.phases if one.kind == "fix")
    assert late.late


def test_one_more_kw_saves_what_its_shadow_price_says():
    lead = LeadTime(thing="site-power", weeks_p50=80, weeks_p90=100)
    grow = GrowSpec(pace=PACE, lead_times=(NODES, lead))
    problem = prepared(inputs(grow, owned(power_kw=480.0))).problem
    program = formulate(problem)
    power, *others = problem.limits
    assert power.name == "Site power, site hall"
    wider = replace(power, room=tuple(room + 1 for room in power.room))
    more = replace(problem, limits=(wider, *others))
    before, after = relax(program), relax(formulate(more))
    assert before is not None
    assert after is not None
    rows = [row for key, row in program.rows.items() if key[:2] == ("limit", 0)]
    worth = sum(before.saved_per_unit[row] for row in rows)
    assert worth > 0
    assert before.objective - after.objective == pytest.approx(worth, rel=0.02)


def test_a_gate_without_a_day_keeps_the_fleet_below_it():
    gate = GateTable(item="on-call", nodes_most=34)
    plan = PlanFile(plan=Horizon(months=12, scenarios=2, draws=50), gates=(gate,))
    answer = plan_capacity(inputs(plan=plan))
    assert max(one.own for one in answer.mix) <= 34 * 8
    assert any(one.name == "Operations gate, on-call" for one in answer.binding)
    assert any(one.kind == "gate" for one in answer.phases)


def test_a_class_with_a_residency_does_not_run_elsewhere():
    abroad = RentTable(name="abroad", accelerator="H100", usd_on_demand_per_gpu_hour=0.1)
    at_home = RentTable(
        name="home", accelerator="H100", usd_on_demand_per_gpu_hour=9, residency=("EU",)
    )
    kind = ClassTable(name="train", accelerator="H100", residency="EU")
    plan = PlanFile(
        plan=Horizon(months=6, scenarios=1, draws=20), demand=(kind,), rent=(abroad, at_home)
    )
    answer = plan_capacity(inputs(plan=plan))
    assert [one.offer for one in answer.rents] == ["home"]


@pytest.mark.parametrize("delay_usd", [None, 5.0])
def test_a_class_that_can_run_nowhere_is_named_with_its_residency(delay_usd: float | None):
    kind = ClassTable(
        name="secret", accelerator="H100", residency="CH", delay_usd_per_gpu_hour=delay_usd
    )
    plan = PlanFile(plan=Horizon(months=6, scenarios=1, draws=20), demand=(kind,))
    with pytest.raises(InputError, match=r"`secret` can run on no own pool and no offer.*`CH`"):
        plan_capacity(inputs(plan=plan))


def test_demand_that_nothing_may_be_bought_for_is_said_to_be_missing():
    answer = plan_capacity(inputs(drivers=(driver("money", "budget", 0),)))
    assert answer.sentence.startswith("nothing is ordered; ")
    assert "of demand is not met, from " in answer.sentence
    assert "not met" not in plan_capacity(inputs()).sentence


def test_without_a_purchase_price_there_is_no_break_even():
    opened = fleet(nodes=4, power_kw=None)
    assert plan_capacity(inputs(opened=opened)).break_even == ()
    assert plan_capacity(inputs()).break_even


def test_a_startup_without_owned_nodes_begins_by_renting():
    opened = fleet(nodes=4, power_kw=None)
    price = Price(kind="on-demand", usd_micros_per_hour=UsdMicros(3_000_000), basis="stated")
    spec = replace(opened.spec, pools=(replace(opened.spec.pools[0], price=price),))
    rented = OpenFleet(spec=spec, layout=lay_out(spec), catalogue=opened.catalogue)
    answer = plan_capacity(inputs(opened=rented))
    assert answer.mix[0].own == 0
    assert answer.mix[0].on_demand == 32
    buy = BuyTable(pool="train", capex_usd_per_node=250_000)
    plan = PlanFile(plan=Horizon(months=24, scenarios=1, draws=20), buy=(buy,))
    later = plan_capacity(inputs(opened=rented, plan=plan))
    assert later.mix[0].own == 0
    assert later.mix[-1].own > 0


def test_spares_are_never_below_what_was_simulated():
    opened = owned(64)
    preset = opened.catalogue.failures.get("rsc-1")
    from tenfold.compose.failures import failure_source  # noqa: PLC0415

    asked = replace(given(opened), failures=failure_source(preset.name, opened.catalogue))
    state = planned_state(asked)
    fixed, per_node = spares_line(state, 4.0, [])
    for times in (1.0, 1.7, 2.5, 4.0):
        needed = state.nodes_down.spares(times, 0.01).needed
        assert fixed + per_node * 64 * times >= needed - 1
    assert per_node > 0


def test_without_any_growth_there_is_nothing_to_plan():
    with pytest.raises(InputError, match="no growth rate given"):
        plan_capacity(inputs(GrowSpec(), plan=PlanFile(plan=Horizon(start=TODAY))))


def test_a_history_that_is_too_short_needs_drivers():
    short = {"H100-80G-SXM": TimedSeries(step_s=86_400.0, values=tuple(range(200, 230)))}
    plan = PlanFile(plan=Horizon(start=TODAY, months=12, scenarios=1, draws=20))
    asked = inputs(GrowSpec(), plan=plan, history=short)
    with pytest.raises(NoAnswer, match="too short for"):
        plan_capacity(asked)
    answer = plan_capacity(replace(asked, drivers=(driver("a", "gpus", 40),)))
    assert any("drivers alone" in note for note in answer.notes)


def test_a_history_that_no_class_follows_is_refused():
    other = {"X": TimedSeries(step_s=86_400.0, values=tuple(range(200, 600)))}
    with pytest.raises(InputError, match="no class of demand follows"):
        plan_capacity(inputs(history=other))


def test_a_long_history_is_forecast_by_month_and_its_coverage_is_printed():
    generator = np.random.default_rng(0)
    rising = 200 * np.exp(0.0008 * np.arange(900) + generator.normal(0, 0.03, 900))

    def plan_of(values: np.ndarray) -> CapacityAnswer:
        found = TimedSeries(step_s=86_400.0, values=tuple(values))
        return plan_capacity(inputs(history={"H100-80G-SXM": found}))

    answer = plan_of(rising)
    assert answer.mix[0].demand == pytest.approx(rising[-30:].mean(), rel=0.15)
    assert answer.mix[-1].demand > answer.mix[0].demand
    assert any("80% interval covered" in note for note in answer.notes)
    shorter = plan_of(rising[:500])
    assert any("80% interval is not tested on the past" in note for note in shorter.notes)


def test_data_that_outgrows_its_tier_is_a_phase_with_its_day():
    more = driver("data", "dataset", 1_000, tier="fast")
    storage = LeadTime(thing="storage", weeks_p50=4, weeks_p90=8)
    grow = GrowSpec(pace=PACE, lead_times=(NODES, storage))
    phase = next(
        one for one in plan_capacity(inputs(grow, drivers=(more,))).phases if one.kind == "storage"
    )
    assert phase.what == "add 8,000 TB to tier fast"
    assert (phase.needed, phase.order_by) == ("2027-03-16", "2027-01-19")


def test_a_budget_of_the_finance_group_is_never_exceeded():
    poor = driver("money", "budget", 300_000)
    answer = plan_capacity(inputs(drivers=(poor,)))
    assert answer.usd <= 12 * 300_000 + 1
    assert answer.usd_delay > 0


def test_the_curve_is_cheapest_near_the_plan():
    curve = plan_capacity(inputs()).curve
    best = min(curve, key=lambda one: one.usd)
    assert 0.5 <= best.factor <= 1.5
    assert curve[0].usd > best.usd < curve[-1].usd


def test_a_review_says_how_far_off_the_forecast_was():
    plan = plan_capacity(inputs())
    came = [one.demand * 1.25 for one in plan.mix[:3]]
    series = TimedSeries(step_s=730.5 * 3_600, values=tuple(came))
    found = review(plan, [series], own_gpus=256)
    assert found.wape == pytest.approx(0.2)
    assert found.bias == pytest.approx(-0.2)
    assert len(found.months) == 3
    assert found.own_planned == plan.mix[2].own + plan.mix[2].reserved
