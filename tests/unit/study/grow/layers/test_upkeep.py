"""Money, lead times, upkeep and monitoring as laws, against figures done by hand.

The fleet has 32 nodes of 8 GPUs; it draws 400 kW with cooling, at 0.1 dollars a kWh.
"""

import pytest
from msgspec.structs import replace

import growth_builders as made
from tenfold.compose.fleet import OpenFleet
from tenfold.model.facts.failure_law import FailureLaw
from tenfold.model.fault import FaultTrace, TraceFault
from tenfold.model.fleet.facility import PriceKind
from tenfold.model.fleet.spec import Price
from tenfold.model.growth.growth import (
    GrowSpec,
    GrowthLimits,
    LeadTime,
    Monitoring,
    Operations,
    Pace,
)
from tenfold.model.ids import PoolId
from tenfold.model.units import UsdMicros
from tenfold.physics.growth.breaking import breaking_factor
from tenfold.physics.layout import lay_out
from tenfold.study.grow.analyse import analyse
from tenfold.study.grow.constraint_set import computed_constraints
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.layer import Constraint
from tenfold.study.grow.layers.budget.money import Money
from tenfold.study.grow.layers.upkeep.monitoring import MonitoringLayer
from tenfold.study.grow.layers.upkeep.operations import OperationsLayer
from tenfold.study.grow.layers.upkeep.spares import Spares
from tenfold.study.grow.question import GrowQuestion
from tenfold.study.grow.state import State, state_of

UPKEEP = (Spares(), OperationsLayer())
FAILING = FailureLaw(
    name="plain", faults_per_1000_node_days=10.0, repair_h_median=24.0, repair_h_mean=48.0
)


def state(grow: GrowSpec, **inputs: object) -> State:
    return state_of(replace(made.given(made.fleet(), grow), **inputs))


def held(constraint: Constraint, k: float) -> None:
    """A law rises with the factor, and strain is 1 where it breaks."""
    assert not constraint.needs
    assert constraint.utilisation(0.5) < constraint.utilisation(1.0) < constraint.utilisation(2.0)
    assert breaking_factor(constraint.utilisation, 1_000) == pytest.approx(k)
    assert constraint.utilisation(k) == pytest.approx(1.0)


def priced(kind: str = "owned") -> OpenFleet:
    opened = made.fleet(tiers=(made.tier(),))
    price = Price(kind=kind, usd_micros_per_hour=UsdMicros(1_000_000), basis="stated")
    pools = (replace(opened.spec.pools[0], price=price),)
    return replace(opened, spec=replace(opened.spec, pools=pools))


def budget(usd: float | None, opened: OpenFleet) -> State:
    return state_of(made.given(opened, GrowSpec(limits=GrowthLimits(usd_per_month_most=usd))))


def test_nodes_and_their_energy_are_paid_for_again_and_tiers_are_not():
    nodes, energy, tier = 256 * 730.0, 400 * 730 * 0.1, 40_000.0
    [constraint] = Money().evaluated(budget(tier + 3 * (nodes + energy), priced()), "nodes")
    held(constraint, 3.0)
    assert constraint.symptom(3.0) == "cost: $688,240 of $688,240 a month"


def test_rented_nodes_bring_no_bill_of_energy():
    [constraint] = Money().evaluated(budget(40_000 + 2 * 256 * 730, priced("on-demand")), "nodes")
    held(constraint, 2.0)


def test_money_stands_still_where_nodes_do():
    [constraint] = Money().evaluated(budget(1e6, priced()), "data")
    assert constraint.utilisation(9) == constraint.utilisation(1)


def test_a_budget_and_prices_are_asked_for():
    [constraint] = Money().evaluated(budget(None, priced()), "nodes")
    assert constraint.needs == "`usd_per_month_most` under `[limits]` in the grow file"
    [constraint] = Money().evaluated(budget(1e6, made.fleet()), "nodes")
    assert constraint.needs == "`price` for pool `train`"
    assert Money().evaluated(budget(None, priced()), "data") == []


def test_repairs_break_where_the_crew_cannot_do_them_all():
    # 0.32 faults a day.
    grow = GrowSpec(operations=Operations(crew=2.0, repairs_per_person_day=0.8, spares=4))
    crew = made.evaluated(state(grow, failures=FAILING), "nodes", *UPKEEP)[1]
    held(crew, 5.0)
    assert crew.symptom(5.0) == "repairs needed per day: 1.6; 2 technicians can do 1.6"


def test_faults_that_a_restart_mends_take_no_hands():
    constraint = FailureLaw(
        name="half",
        faults_per_1000_node_days=10.0,
        repair_h_median=24.0,
        repair_h_mean=48.0,
        causes={"link": 1.0, "board": 1.0},
        transient_causes=("link",),
    )
    grow = GrowSpec(operations=Operations(crew=2.0, repairs_per_person_day=0.8))
    crew = made.evaluated(state(grow, failures=constraint), "nodes", *UPKEEP)[1]
    held(crew, 10.0)


def test_a_trace_of_faults_tells_its_own_rate():
    seen = [TraceFault(f"n{at}", at * 3600.0, at * 3600.0 + 43_200) for at in range(16)]
    trace = FaultTrace(file="mine.csv", faults=tuple(seen), span_s=10 * 86_400.0)
    grow = GrowSpec(operations=Operations(crew=2.0, repairs_per_person_day=1.6, spares=2))
    spares, crew = made.evaluated(state(grow, failures=trace), "nodes", *UPKEEP)
    held(crew, 2.0)
    # All 16 were down at once for the better part of a day.
    assert "8 nodes down" in spares.symptom(1.0) or spares.utilisation(1.0) > 1
    assert crew.spread == pytest.approx(0.25)


def test_a_person_looks_after_so_many_nodes():
    grow = GrowSpec(operations=Operations(crew=2.0, nodes_per_person_most=40.0))
    held(made.evaluated(state(grow), "nodes", *UPKEEP)[2], 2.5)


def test_upkeep_says_what_it_lacks():
    assert [
        constraint.needs for constraint in made.evaluated(state(GrowSpec()), "nodes", *UPKEEP)
    ] == [
        "`spares` under `[operations]` in the grow file",
        "`crew` and `repairs_per_person_day` under `[operations]` in the grow file",
    ]
    grow = GrowSpec(operations=Operations(crew=2.0, repairs_per_person_day=1.0, spares=1))
    needs = "`--failures`: a failure preset or a trace of your own"
    assert [constraint.needs for constraint in made.evaluated(state(grow), "nodes", *UPKEEP)] == [
        needs,
        needs,
    ]
    assert made.evaluated(state(grow), "data", *UPKEEP) == []


def test_samples_and_what_is_kept_of_them_break_each_for_itself():
    # 32 x 1,000 + 256 x 100 series each 10 s: 5,760 samples a second.
    stated = Monitoring(
        series_per_node=1_000,
        series_per_gpu=100,
        interval_s=10,
        samples_per_s_most=23_040,
        retention_days=10,
        bytes_per_sample=2.0,
        store_tb=5_760 * 86_400 * 10 * 2 * 3 / 10**12,
    )
    samples, store = MonitoringLayer().evaluated(state(GrowSpec(monitoring=stated)), "nodes")
    held(samples, 4.0)
    held(store, 3.0)
    assert samples.symptom(4.0) == "Prometheus ingests 23,040 of 23,040 samples/s"
    assert store.symptom(3.0) == "10 days of samples: 0.03 of 0.03 TB"


def test_monitoring_says_which_key_it_lacks():
    [constraint] = MonitoringLayer().evaluated(state(GrowSpec()), "nodes")
    table = "under `[monitoring]` in the grow file"
    assert constraint.needs == f"`series_per_node` and `interval_s` {table}"
    some = Monitoring(series_per_gpu=100, interval_s=10, retention_days=3)
    constraints = MonitoringLayer().evaluated(state(GrowSpec(monitoring=some)), "nodes")
    assert [constraint.needs for constraint in constraints] == [
        f"`samples_per_s_most` {table}",
        f"`store_tb` {table}",
    ]
    late = Monitoring(series_per_node=100, samples_per_s_most=9.0)
    assert MonitoringLayer().evaluated(state(GrowSpec(monitoring=late)), "nodes")[0].needs == (
        f"`interval_s` {table}"
    )
    assert MonitoringLayer().evaluated(state(GrowSpec(monitoring=some)), "jobs") == []


def paced(weeks: float, months: float = 6.0) -> GrowInputs:
    grow = GrowSpec(
        lead_times=(LeadTime(thing="site-power", weeks_p50=weeks, weeks_p90=weeks),),
        pace=Pace(today="2026-11-15", doubles_in_months=months),
    )
    return made.given(made.fleet(rack_kw=500.0), grow)


def lead_times(inputs: GrowInputs) -> list[Constraint]:
    constraints = computed_constraints(state_of(inputs), "nodes")
    return [constraint for constraint in constraints if constraint.layer == "lead-time"]


def test_power_that_comes_after_the_site_is_full_was_ordered_too_late():
    # The site stands 2.5x, which is reached in 34.5 weeks.
    [late], [timely] = lead_times(paced(35)), lead_times(paced(34))
    assert late.utilisation(1.0) > 1 > timely.utilisation(1.0)
    assert late.utilisation(9.0) == late.utilisation(1.0)
    answer = analyse(paced(52), GrowQuestion(axis="nodes"))
    assert (
        "already over its limit: Lead time, site power (ordered today, it "
        "arrives in 52 weeks, at 3.98x demand; Site power breaks at 2.50x)"
    ) in answer.assumptions
    assert answer.first is not None
    assert answer.first.layer == "site-power"


def test_a_lead_time_needs_a_pace_and_a_pace_lead_times():
    inputs = paced(20)
    [constraint] = lead_times(replace(inputs, grow=replace(inputs.grow, pace=None)))
    assert constraint.needs == "`[pace]` in the grow file"
    [constraint] = lead_times(replace(inputs, grow=replace(inputs.grow, lead_times=())))
    assert constraint.needs == "`[[lead_time]]` in the grow file"
    assert lead_times(made.given(made.fleet())) == []


def test_spares_of_a_pool_without_a_price_are_counted_and_the_others_are_paid():
    """Login nodes without a price do not hide what the spares of GPU nodes cost."""
    opened = made.fleet()
    [pool] = opened.spec.pools
    price = Price(kind="reserved", usd_micros_per_hour=UsdMicros(1_250_000), basis="stated")
    login = replace(
        pool, id=PoolId("login"), nodes=8, node_names="login[1-8]", gpus_per_node=0, price=None
    )
    spec = replace(opened.spec, pools=(replace(pool, price=price), login))
    mixed = OpenFleet(spec=spec, layout=lay_out(spec), catalogue=opened.catalogue)
    inputs = replace(made.given(mixed, GrowSpec(operations=Operations(spares=0))), failures=FAILING)
    [spares] = made.evaluated(state_of(inputs), "nodes", Spares())
    relief = spares.reliefs(2.0)[-1]
    more = int(relief.sentence.split()[1])
    # 32 of 40 nodes cost 7,300 dollars a month each.
    assert relief.usd_per_month == pytest.approx(more * 7_300 * 32 / 40)
    assert relief.unpriced == 1


def test_only_what_defaults_cost_widens_the_range_of_the_budget():
    """The power of rented nodes is a default, but nobody pays for it apart from their price."""
    opened = made.fleet(defaulted=("power_kw_per_node",))
    [pool] = opened.spec.pools

    def spread(kind: PriceKind, *defaulted: str) -> float:
        price = Price(kind=kind, usd_micros_per_hour=UsdMicros(2_000_000), basis="stated")
        priced = replace(pool, price=price, defaulted=("power_kw_per_node", *defaulted))
        spec = replace(opened.spec, pools=(priced,))
        inputs = made.given(
            OpenFleet(spec=spec, layout=lay_out(spec), catalogue=opened.catalogue),
            GrowSpec(limits=GrowthLimits(usd_per_month_most=1_000_000)),
        )
        [money] = made.evaluated(state_of(inputs), "nodes", Money())
        return money.spread

    assert spread("reserved") == pytest.approx(0.05)
    assert spread("reserved", "price") == pytest.approx(0.3)
    # 29,200 dollars of energy next to 373,760 for the nodes.
    assert spread("owned") == pytest.approx(0.05 + 0.25 * 29_200 / 402_960)
