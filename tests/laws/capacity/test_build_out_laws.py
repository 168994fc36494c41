"""What holds for every build-out problem: its plan is feasible, and no other plan is cheaper."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build_out_builders import cheapest_by_trying, tiny_problems
from tenfold.decide.capacity.buildout.check import violations
from tenfold.decide.capacity.buildout.plan import cost_as_minimised, decide_build_out
from tenfold.decide.capacity.buildout.problem import (
    BuildOut,
    DemandClass,
    Limit,
    OwnOption,
    RentOption,
    Scenario,
)
from tenfold.decide.capacity.buildout.program import SolverLimits
from tenfold.study.capacity.solver import solve

pytest.importorskip("scipy")
EXACT = SolverLimits(gap=0.0)


@settings(max_examples=60, deadline=None)
@given(tiny_problems())
def test_a_plan_costs_what_the_best_of_all_plans_costs(problem: BuildOut) -> None:
    found = decide_build_out(problem, solve, EXACT)
    cheapest = cheapest_by_trying(problem)
    if found is None:
        assert cheapest is None
        return
    assert cheapest is not None
    assert found[1].objective == pytest.approx(cheapest, rel=1e-5, abs=1e-2)


@st.composite
def problems(draw: st.DrawFn) -> BuildOut:
    """Draw a problem of several options, classes, scenarios and limits."""
    months = draw(st.integers(3, 8))
    owned = tuple(
        OwnOption(
            name=name,
            gpus_per_node=draw(st.sampled_from([4, 8])),
            nodes_today=draw(st.integers(1, 6)),
            usd_per_node_month=float(draw(st.integers(3_000, 20_000))),
            lead_months=draw(st.integers(0, 4)),
            spares_fixed=draw(st.sampled_from([0.0, 0.5])),
            spares_per_node=draw(st.sampled_from([0.0, 0.05])),
            spares_ready=draw(st.sampled_from([(), (1.0,) * months])),
        )
        for name in ("a", "b")[: draw(st.integers(1, 2))]
    )
    rented = tuple(
        RentOption(
            name=name,
            usd_on_demand=draw(st.one_of(st.none(), st.integers(900, 6_000).map(float))),
            usd_spot=draw(st.one_of(st.none(), st.integers(300, 3_000).map(float))),
            spot_goodput=0.85,
            usd_reserved=draw(st.one_of(st.none(), st.integers(600, 4_000).map(float))),
            reserved_months=3,
            gpus_most=draw(st.sampled_from([None, 32])),
        )
        for name in ("c", "d")[: draw(st.integers(1, 2))]
    )
    names = [one.name for one in (*owned, *rented)]
    classes = tuple(
        DemandClass(
            name=name,
            rates={one: draw(st.sampled_from([1.0, 1.7])) for one in names if draw(st.booleans())},
            spot_share=draw(st.sampled_from([0.0, 0.4, 1.0])),
            delay_usd=float(draw(st.integers(2_000, 30_000))),
        )
        for name in ("x", "y", "z")[: draw(st.integers(1, 3))]
    )
    courses = draw(st.integers(1, 3))
    scenarios = tuple(
        Scenario(
            name=str(number),
            probability=1 / courses,
            demand=tuple(tuple(draw(st.floats(0, 200)) for _ in range(months)) for _ in classes),
            budget_usd=draw(st.sampled_from([(), (250_000.0,) * months])),
        )
        for number in range(courses)
    )
    limits = (
        Limit(
            name="power",
            unit="kW",
            room=tuple(draw(st.floats(-5, 120)) for _ in range(months)),
            per_node={one.name: 10.2 for one in owned},
        ),
        Limit(
            name="racks",
            unit="racks",
            room=(float(draw(st.integers(0, 4))),) * months,
            per_node={},
            per_unit={one.name: 4.0 for one in owned},
            free={one.name: 1.0 for one in owned},
        ),
    )
    return BuildOut(
        months=months,
        own=owned,
        rent=rented,
        classes=classes,
        scenarios=scenarios,
        limits=limits,
        order_every=draw(st.sampled_from([1, 2])),
        cvar_weight=draw(st.sampled_from([0.0, 0.3])),
        fixed_usd=(1_000.0,) * months,
    )


@settings(max_examples=60, deadline=None)
@given(problems())
def test_the_independent_checker_finds_nothing_wrong_with_a_plan(problem: BuildOut) -> None:
    found = decide_build_out(problem, solve)
    assert found is not None, "demand may be missed, so there is always a plan"
    _, decision = found
    assert violations(problem, decision) == []
    assert cost_as_minimised(problem, decision) == pytest.approx(
        decision.objective, rel=1e-6, abs=1.0
    )
