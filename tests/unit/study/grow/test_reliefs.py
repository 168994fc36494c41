"""Reliefs of waits, and what they strain in turn: 4 nodes of 8 GPUs, two thirds busy."""

import pytest
from msgspec.structs import replace

import growth_builders as made
from tenfold.model.fleet.spec import Price
from tenfold.model.growth.growth import GrowSpec, GrowthLimits
from tenfold.model.policy.policy import Policy
from tenfold.model.units import UsdMicros
from tenfold.study.grow.analyse import analyse
from tenfold.study.grow.answer import GrowAnswer, Row
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.layers.building.switch_ports import SwitchPorts
from tenfold.study.grow.question import GrowQuestion
from tenfold.study.grow.relief import Relief, combined
from tenfold.study.grow.state import scale_capacity, state_of
from tenfold.testing.builders import job

QUESTION = GrowQuestion(axis="jobs", to=(2.0, 3.0), seeds=2, count_assumed=True)
HOUR = 3_600


def busy(*, power_kw: float = 10_000.0, policy: str = "fifo", priced: bool = True) -> GrowInputs:
    """Whole nodes for two hours, one every three quarters of an hour, over six days."""
    opened = made.fleet(power_kw=power_kw, rack_kw=1_000.0, nodes=4)
    if priced:
        price = Price(kind="owned", usd_micros_per_hour=UsdMicros(2_000_000), basis="stated")
        pools = tuple(replace(pool, price=price) for pool in opened.spec.pools)
        opened = replace(opened, spec=replace(opened.spec, pools=pools))
    jobs = [job(number, 8, at_s=number * 0.75 * HOUR, runs_s=2 * HOUR) for number in range(192)]
    limits = GrowthLimits(wait_s_p90=HOUR)
    return GrowInputs(
        fleet=opened,
        jobs=jobs,
        policy=Policy(name=policy),
        grow=GrowSpec(limits=limits),
    )


def queue(answer: GrowAnswer) -> Row:
    return next(row for row in answer.layers if row.layer == "queue")


def test_waits_break_where_the_work_outgrows_the_nodes():
    row = queue(analyse(busy(), QUESTION))
    assert row.k is not None
    assert 1.2 < row.k < 1.7


def test_waits_of_runs_that_were_not_compared_are_not_ranked_but_the_load_is():
    answer = analyse(busy(), replace(QUESTION, count_assumed=False))
    assert answer.first is not None
    assert answer.first.layer == "compute"
    assert queue(answer).grade == "assumed"
    assert any(said.startswith("assumed for Queue wait") for said in answer.assumptions)


def test_nodes_relieve_waits_at_the_price_of_their_pool():
    answer = analyse(busy(policy="tenfold"), QUESTION)
    row = answer.rows[0]
    assert row.layer == "queue"
    assert row.relief is not None
    assert row.relief.code == "nodes"
    nodes = int(row.relief.sentence.split()[1])
    # Owned nodes of 10 kW at a PUE of 1.25 and $0.10/kWh.
    assert row.usd == pytest.approx(nodes * (8 * 2 + 1.25) * 730)
    assert row.k_after is None or row.k_after > (row.k or 0)


def test_nodes_without_a_price_are_of_unknown_cost():
    answer = analyse(busy(policy="tenfold", priced=False), QUESTION)
    assert answer.rows[0].relief is not None
    assert answer.rows[0].usd is None


def test_nodes_that_the_site_cannot_feed_come_with_power():
    answer = analyse(busy(policy="tenfold", power_kw=60.0), QUESTION)
    assert answer.rows[0].layer == "queue"
    assert answer.rows[0].relief is not None
    assert answer.rows[0].relief.code == "nodes+site-power"


def test_nodes_do_not_bring_the_switches_that_they_need():
    """The plan of a larger fabric has another layer; the one there is has not."""
    larger = replace(state_of(busy()), spec=made.fleet(nodes=2_048).spec)
    [ports] = SwitchPorts().evaluated(larger, "nodes")
    assert ports.utilisation(1.0) == pytest.approx(2_048 / 64)


def test_reliefs_taken_together_cost_what_both_cost_and_come_with_the_later():
    state = state_of(busy())
    one = Relief("a", "do a", 10.0, 2.0, lambda now: scale_capacity(now, "x", 2.0))
    two = Relief("b", "do b", 5.0, 8.0, lambda now: scale_capacity(now, "x", 3.0))
    both = combined([one, two])
    assert (both.code, both.sentence) == ("a+b", "do a; do b")
    assert (both.usd_per_month, both.weeks) == (15.0, 8.0)
    assert both.apply(state).capacity_scale("x") == 6.0


def test_parts_without_a_price_or_a_lead_time_leave_the_known_ones():
    one = Relief("a", "do a", 10.0, 2.0, lambda now: now)
    two = Relief("b", "do b", None, None, lambda now: now)
    both = combined([one, two])
    assert (both.usd_per_month, both.unpriced, both.weeks) == (10.0, 1, 2.0)
    neither = combined([two, two])
    assert (neither.usd_per_month, neither.unpriced, neither.weeks) == (None, 0, None)
    more = combined([both, two])
    assert (more.usd_per_month, more.unpriced) == (10.0, 2)
