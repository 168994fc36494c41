"""The size of a relief: the fewest units that are enough, and never one more."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import growth_builders as made
from tenfold.model.growth.growth import GrowSpec, GrowthLimits
from tenfold.model.policy.policy import Policy
from tenfold.study.grow import constraint_set
from tenfold.study.grow.constraint_set import ConstraintSet
from tenfold.study.grow.fixes.size import UNITS_TIMES_MOST, fewest_units
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.layers.compute.nodes import more_of_types
from tenfold.study.grow.question import GrowQuestion
from tenfold.study.grow.relief import Relief
from tenfold.study.grow.state import state_of
from tenfold.testing.builders import job

HOUR = 3_600
TARGET = 2.0


def units(count: int) -> Relief:
    return Relief("more", f"add {count}", None, None, lambda now: now, units=count, resize=units)


@given(guess=st.integers(1, 60), needed=st.integers(1, 400))
def test_one_unit_less_is_not_enough(guess: int, needed: int):
    found = fewest_units(units(guess), lambda one: one.units >= needed, lambda: False)
    # An estimate that is off by more than this stays as it is.
    assert found.minimal
    assert found.relief.units == (needed if needed <= UNITS_TIMES_MOST * guess else guess)


def test_a_search_that_is_stopped_says_that_it_may_be_too_much():
    found = fewest_units(units(40), lambda one: one.units >= 3, lambda: True)
    assert (found.relief.units, found.minimal) == (40, False)


def test_what_follows_from_a_formula_keeps_its_size():
    relief = replace_resize(units(7))
    assert fewest_units(relief, lambda _: False, lambda: False).relief is relief


def replace_resize(relief: Relief) -> Relief:
    return Relief(relief.code, relief.sentence, None, None, relief.apply, units=relief.units)


@cache
def waiting(nodes: int, every_min: int, runs_min: int, limit_min: int) -> GrowInputs:
    """Jobs of one node that come in threes at even times, on a fleet that is about half full."""
    jobs = [
        job(number, 8, at_s=(number // 3) * 3 * every_min * 60, runs_s=runs_min * 60)
        for number in range(150)
    ]
    return GrowInputs(
        fleet=made.fleet(nodes=nodes, power_kw=100_000.0),
        jobs=jobs,
        policy=Policy(name="fifo"),
        grow=GrowSpec(limits=GrowthLimits(wait_s_p90=limit_min * 60.0)),
    )


def fewest_nodes(inputs: GrowInputs, seed: int) -> tuple[int, bool, bool]:
    """Return the nodes to add, and whether these and one less keep waits within the limit."""
    question = GrowQuestion(axis="jobs", to=(TARGET,), seeds=2, seed=seed, count_assumed=True)
    constraints, state = ConstraintSet(inputs, question), state_of(inputs)
    queue = next(one for one in constraints.all(state) if one.layer == "queue")

    def enough(relief: Relief) -> bool:
        return constraints.holds(relief.apply(state), queue, TARGET)

    [relief] = more_of_types(state, (), 1.5)
    found = fewest_units(relief, enough, lambda: False)
    assert found.minimal
    assert found.relief.resize is not None
    return (
        found.relief.units,
        enough(found.relief),
        found.relief.units > 1 and enough(found.relief.resize(found.relief.units - 1)),
    )


@settings(max_examples=5, deadline=None)
@given(
    nodes=st.integers(4, 7),
    load=st.floats(0.55, 0.8),
    runs_min=st.sampled_from([60, 120]),
    limit_min=st.sampled_from([10, 20]),
)
def test_nodes_for_waits_are_enough_one_less_is_not_and_other_seeds_differ_by_one(
    nodes: int, load: float, runs_min: int, limit_min: int
):
    inputs = waiting(nodes, max(1, round(runs_min / nodes / load)), runs_min, limit_min)
    more, enough, fewer = fewest_nodes(inputs, 0)
    assert enough
    assert not fewer
    assert abs(fewest_nodes(inputs, 100)[0] - more) <= 1


def test_nodes_of_a_rack_that_is_one_domain_come_by_the_rack():
    opened = made.fleet(nodes=36)
    [pool] = opened.spec.pools
    spec = replace(opened.spec, pools=(replace(pool, gpus_per_node=4, scaleup_gpus=72),))
    inputs = made.given(replace(opened, spec=spec))
    [relief] = more_of_types(state_of(inputs), (), 1.1)
    assert relief.sentence == "add 18 nodes to pool train (1 scale-up domain of 18 nodes)"
    assert relief.apply(state_of(inputs)).spec.nodes == 54


def test_gangs_of_four_nodes_are_completed_first():
    inputs = replace(
        waiting(6, 60, 60, 10), jobs=[job(1, 32, runs_s=HOUR), job(2, 64, runs_s=HOUR)]
    )
    state = state_of(inputs)
    [relief] = more_of_types(state, (), 1.1)
    assert relief.apply(state).spec.nodes == 8
    assert relief.resize is not None
    assert relief.resize(2).apply(state).spec.nodes == 12


def test_seeds_leave_half_of_the_simulation_budget_to_size_fixes(monkeypatch: pytest.MonkeyPatch):
    inputs = waiting(4, 30, 60, 10)
    question = GrowQuestion(axis="jobs", to=(TARGET,), seeds=5, count_assumed=True)
    assert not ConstraintSet(inputs, question).notes
    # 150 jobs a run: half of the budget is 18 runs, of which three seeds take 6 + 3 x 4.
    monkeypatch.setattr(constraint_set, "JOBS_SIMULATED_MAX", 2 * 18 * 150)
    assert ConstraintSet(inputs, question).notes == [
        "simulated with 3 of 5 seeds to save time for fixes"
    ]
