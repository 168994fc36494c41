"""The monthly cost of a fleet: every part is in it, and prices that are assumed say so."""

import pytest
from msgspec.structs import replace

import growth_builders as made
from tenfold.compose.fleet import OpenFleet
from tenfold.model.fleet.spec import Price, SiteLink
from tenfold.model.growth.growth import Dataset, GrowSpec, GrowthLimits, Operations, Prices
from tenfold.model.ids import SiteId
from tenfold.model.units import BytesPerSecond, UsdMicros
from tenfold.physics.layout import lay_out
from tenfold.study.grow.analyse import analyse
from tenfold.study.grow.answer import GrowAnswer
from tenfold.study.grow.cost.monthly import month_of
from tenfold.study.grow.cost.prices import assumed_prices
from tenfold.study.grow.layers.building.power import SitePower
from tenfold.study.grow.question import GrowQuestion
from tenfold.study.grow.relief import Relief
from tenfold.study.grow.state import State, state_of

NODE_USD = (8 * 2 + 10 * 1.25 * 0.1) * 730
"""A node a month: eight GPUs at $2, and 10 kW at a PUE of 1.25 and $0.10/kWh."""


def priced(opened: OpenFleet) -> OpenFleet:
    price = Price(kind="owned", usd_micros_per_hour=UsdMicros(2_000_000), basis="stated")
    pools = tuple(replace(pool, price=price) for pool in opened.spec.pools)
    return replace(opened, spec=replace(opened.spec, pools=pools))


def linked() -> OpenFleet:
    """Return a fleet with a tier at another site, behind a link that costs 2 cents a GB."""
    tier = replace(made.tier(), site=SiteId("vault"))
    opened = priced(made.fleet(tiers=(tier,)))
    link = SiteLink(
        a=made.HALL,
        b=SiteId("vault"),
        bandwidth=BytesPerSecond(10**11),
        latency_us=500.0,
        egress_usd_micros_per_gb=UsdMicros(20_000),
    )
    spec = opened.spec
    vault = replace(spec.sites[0], id=SiteId("vault"))
    spec = replace(spec, sites=(*spec.sites, vault), links=(link,))
    return OpenFleet(spec=spec, layout=lay_out(spec), catalogue=opened.catalogue)


def state(opened: OpenFleet, grow: GrowSpec) -> State:
    return state_of(made.given(opened, grow))


def feed(grow: GrowSpec, power_kw: float = 500.0) -> Relief:
    [constraint] = SitePower().constraints(state(made.fleet(power_kw=power_kw), grow), "nodes")
    [relief] = constraint.reliefs(2.0)
    return relief


def test_nodes_energy_spares_people_storage_and_egress_are_one_sum():
    copied = Dataset(
        name="text", tier="fast", tb=100, source_site=str(made.HALL), copies_per_month=3.0
    )
    people = Operations(crew=2.0, usd_per_person_month=9_000.0, spares=4)
    month = month_of(state(linked(), GrowSpec(operations=people, datasets=(copied,))))
    today = month.today
    assert today.nodes + today.energy == pytest.approx(32 * NODE_USD)
    assert today.spares == pytest.approx(4 * NODE_USD)
    assert today.staff == 18_000
    assert today.egress == pytest.approx(3 * 100_000 * 0.02)
    assert today.usd == pytest.approx(36 * NODE_USD + 18_000 + 6_000 + today.storage)
    grown = month.at("nodes", 2.0)
    assert grown.usd - today.usd == pytest.approx(32 * NODE_USD)
    assert month.at("data", 2.0).egress == pytest.approx(2 * today.egress)


def test_what_a_fix_buys_enters_the_budget():
    start = state(priced(made.fleet(power_kw=500.0)), GrowSpec(limits=GrowthLimits()))
    [constraint] = SitePower().constraints(start, "nodes")
    [relief] = constraint.reliefs(2.0)
    bought = relief.apply(start)
    assert relief.usd_per_month
    assert month_of(bought).today.usd - month_of(start).today.usd == pytest.approx(
        relief.usd_per_month
    )


def test_a_price_of_the_grow_file_takes_the_place_of_an_assumed_one():
    guessed, stated = feed(GrowSpec()), feed(GrowSpec(prices=Prices(usd_per_kw_month=100.0)))
    kw = (stated.usd_per_month or 0.0) / 100
    assert guessed.usd_per_month == pytest.approx(kw * 196)
    assert guessed.usd_range == (pytest.approx(kw * 110), pytest.approx(kw * 300))
    assert (guessed.assumed, stated.assumed, stated.usd_range) == (("power-kw",), (), None)


def test_an_assumed_price_says_its_range_and_what_overrides_it():
    assert assumed_prices(["power-kw"], made.catalogue().unit_prices) == [
        "assumed price: $196/month per kW of power and cooling ($110-$300); "
        "set `usd_per_kw_month` under `[prices]`"
    ]


def asked(budget: float | None) -> GrowAnswer:
    limits = GrowthLimits(usd_per_month_most=budget)
    opened = priced(made.fleet(power_kw=500.0))
    return analyse(made.given(opened, GrowSpec(limits=limits)), GrowQuestion(to=(2.0,)))


def test_the_bill_of_an_answer_is_that_of_its_fixes_and_its_growth():
    answer = asked(None)
    fixes = sum(row.usd or 0.0 for row in answer.rows)
    month = answer.month
    assert fixes > 0
    assert (month.factor, month.unpriced) == (2.0, ())
    assert month.usd_then - month.usd_today == pytest.approx(32 * NODE_USD + fixes)
    assert any(line.startswith("assumed price: $196/month per kW") for line in answer.assumptions)


def test_a_budget_breaks_by_what_fixes_cost():
    # The nodes of 2x fit in the budget, but not with the power that they need.
    answer = asked(64 * NODE_USD + 1_000)
    assert [row.layer for row in answer.rows][:2] == ["site-power", "money"]
    assert answer.rows[1].usd == 0
    assert asked(64 * NODE_USD + 1_000_000).rows[-1].layer == "site-power"
