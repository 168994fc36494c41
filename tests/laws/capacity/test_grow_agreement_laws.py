"""`grow` and `capacity plan` say the same about one fleet with the same growth."""

from math import log2

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from msgspec.structs import replace

from growth_builders import catalogue, fleet, given
from tenfold.compose.fleet import OpenFleet
from tenfold.decide.capacity.buildout.check import used_of_limit
from tenfold.decide.capacity.buildout.plan import decide_build_out
from tenfold.model.capacity.plan_file import Horizon, PlanFile
from tenfold.model.fleet.spec import Price
from tenfold.model.growth.growth import (
    Axis,
    Facility,
    GrowSpec,
    GrowthLimits,
    LeadTime,
    Operations,
    Pace,
)
from tenfold.model.units import UsdMicros
from tenfold.physics.layout import lay_out
from tenfold.study.capacity.inputs import CapacityInputs
from tenfold.study.capacity.ladder import factor_asked, limits_of
from tenfold.study.capacity.plan import plan_capacity
from tenfold.study.capacity.problem import prepared
from tenfold.study.capacity.solver import solve
from tenfold.study.grow.analyse import analyse_growth
from tenfold.study.grow.constraint_set import computed_constraints
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.layers.compute.nodes import with_nodes
from tenfold.study.grow.question import GrowQuestion
from tenfold.study.grow.state import State, planned_state

pytest.importorskip("scipy")
BUILDING = ("site-power", "switch-ports", "floor")


def owned(opened: OpenFleet) -> OpenFleet:
    price = Price(kind="owned", usd_micros_per_hour=UsdMicros(1_200_000), basis="stated")
    pools = tuple(replace(pool, price=price, defaulted=()) for pool in opened.spec.pools)
    spec = replace(opened.spec, pools=pools)
    return OpenFleet(spec=spec, layout=lay_out(spec), catalogue=catalogue())


@st.composite
def growing_fleets(draw: st.DrawFn) -> CapacityInputs:
    nodes = draw(st.integers(4, 60))
    opened = owned(
        fleet(nodes=nodes, power_kw=draw(st.sampled_from([None, 600.0, 1_000.0, 2_400.0])))
    )
    grow = GrowSpec(
        limits=GrowthLimits(
            usd_per_month_most=draw(st.sampled_from([None, 900_000.0])),
            headroom_least=draw(st.sampled_from([0.0, 0.1])),
        ),
        facility=Facility(
            floor_racks=draw(st.one_of(st.none(), st.integers(nodes // 4 + 2, 40))),
            ports_free=draw(st.one_of(st.none(), st.integers(0, 200))),
        ),
        operations=Operations(spares=draw(st.sampled_from([None, 2]))),
        lead_times=tuple(
            LeadTime(thing=thing, weeks_p50=weeks / 2, weeks_p90=float(weeks))
            for thing, weeks in (
                ("nodes", draw(st.integers(2, 40))),
                ("site-power", draw(st.integers(4, 80))),
                ("switch", draw(st.integers(2, 30))),
            )
        ),
        pace=Pace(today="2026-11-15", doubles_in_months=float(draw(st.integers(6, 40)))),
    )
    horizon = Horizon(months=draw(st.sampled_from([12, 24])), scenarios=2, draws=50)
    axis: Axis = draw(st.sampled_from(["nodes", "all"]))
    return CapacityInputs(grow=given(opened, grow), plan=PlanFile(plan=horizon), axis=axis)


def ladder_of(inputs: CapacityInputs) -> tuple[GrowInputs, GrowQuestion]:
    pace = inputs.grow.grow.pace
    assert pace is not None
    most = factor_asked(2 ** (inputs.horizon.months / pace.doubles_in_months))
    return inputs.grow, GrowQuestion(axis=inputs.axis, to=(most,))


@settings(max_examples=25, deadline=None)
@drawn(growing_fleets())
def test_every_row_of_grow_is_a_phase_with_its_fix_its_price_and_its_day(
    inputs: CapacityInputs,
) -> None:
    rows = analyse_growth(*ladder_of(inputs)).answer.rows
    phases = [one for one in plan_capacity(inputs).phases if one.kind == "fix"]
    assert sorted(
        (row.k, row.relief.sentence if row.relief else row.sentence, row.order_by, row.usd)
        for row in rows
    ) == sorted((one.factor, one.what, one.order_by, one.usd_per_month) for one in phases)


def over(state: State, added: int) -> list[str]:
    """Return the limits of the building that `grow` finds broken with more nodes."""
    facility = state.grow.facility
    if facility.ports_free is not None:
        # What is free is free beside today's nodes; new ones take theirs from it.
        left = facility.ports_free - added * state.spec.pools[0].nics_per_node
        if left < 0:
            return ["ports"]
        facility = replace(facility, ports_free=left)
    larger = replace(
        state,
        spec=with_nodes(state.spec, "train", added),
        grow=replace(state.grow, facility=facility),
    )
    return [
        one.label
        for one in computed_constraints(larger, "nodes")
        if one.layer in BUILDING
        and not one.needs
        and one.grade != "assumed"
        and one.utilisation(1.0) > 1 + 1e-9
    ]


@settings(max_examples=25, deadline=None)
@drawn(growing_fleets())
def test_no_month_of_a_plan_breaks_a_limit_of_the_building_that_grow_checks(
    inputs: CapacityInputs,
) -> None:
    made = prepared(inputs)
    found = decide_build_out(made.problem, solve)
    assert found is not None
    for month in range(made.problem.months):
        state = made.ladder.state(month)
        new = found[1].nodes(made.problem, month)["train"]
        if not new:
            continue
        assert over(state, new) == []


@settings(max_examples=40, deadline=None)
@drawn(growing_fleets(), st.integers(1, 80))
def test_grow_and_the_plan_agree_on_whether_more_nodes_fit_today(
    inputs: CapacityInputs, added: int
) -> None:
    state = planned_state(inputs.grow)
    limits = limits_of([state], list(state.spec.pools), count_assumed=False)
    fits = all(
        used_of_limit(one, {"train": added}) <= max(0.0, one.room[0]) + 1e-6 for one in limits
    )
    assert fits == (not over(state, added))


def test_a_phase_is_needed_when_demand_reaches_its_factor() -> None:
    opened = owned(fleet(nodes=32, power_kw=600.0))
    pace = Pace(today="2026-11-15", doubles_in_months=12.0)
    lead = LeadTime(thing="site-power", weeks_p50=20, weeks_p90=30)
    grow = GrowSpec(pace=pace, lead_times=(lead,))
    inputs = CapacityInputs(
        grow=given(opened, grow),
        plan=PlanFile(plan=Horizon(months=24, scenarios=1, draws=20)),
        axis="nodes",
    )
    fix = next(one for one in plan_capacity(inputs).phases if one.kind == "fix")
    assert fix.factor is not None
    assert fix.factor == pytest.approx(600 / (32 * 10 * 1.25))
    assert 12 * log2(fix.factor) == pytest.approx(7.02, abs=0.01)
    assert (fix.needed, fix.lead_weeks) == ("2027-06-16", 30)
