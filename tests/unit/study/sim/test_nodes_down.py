"""Nodes down at once, at multiples of a fleet, beside closed forms and beside `sim failures`."""

from math import comb
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import growth_builders as made
from tenfold.model.errors import InputError
from tenfold.model.facts.failure_law import FailureLaw
from tenfold.model.fault import FaultTrace, TraceFault
from tenfold.model.growth.growth import GrowSpec, GrowthLimits, Operations
from tenfold.physics.nodes import nodes_of
from tenfold.study.grow.analyse import analyse
from tenfold.study.grow.constraint_set import computed_constraints
from tenfold.study.grow.layer import break_of
from tenfold.study.grow.layers.upkeep.spares import Spares
from tenfold.study.grow.question import GrowQuestion
from tenfold.study.grow.state import State, state_of
from tenfold.study.sim.nodes_down import NodesDown, SparesRequest
from tenfold.study.sim.spares import size_spares
from tests.rigs.planted.failure_truth import spares_break, spares_needed

BURSTS = FailureLaw(
    name="bursts",
    faults_per_1000_node_days=30.0,
    frailty_shape=0.5,
    arrival_cv=2.0,
    burst_nodes_max=8,
    repair_h_median=12.0,
    repair_h_mean=24.0,
    causes={"gpu": 0.6, "host": 0.4},
    transient_causes=("host",),
)
SHARE = 0.01
laws = st.builds(
    FailureLaw,
    name=st.just("drawn"),
    faults_per_1000_node_days=st.floats(1.0, 60.0),
    frailty_shape=st.sampled_from([None, 0.4, 2.0]),
    arrival_cv=st.sampled_from([1.0, 1.8, 3.0]),
    burst_nodes_max=st.integers(1, 16),
    repair_h_median=st.floats(1.0, 20.0),
    repair_h_mean=st.floats(20.0, 60.0),
)
rows = st.builds(
    lambda node, start_h, for_h: TraceFault(
        f"t{node}", start_h * 3600.0, (start_h + for_h) * 3600.0
    ),
    st.integers(1, 40),
    st.integers(0, 400),
    st.integers(1, 90),
)
traces = st.lists(rows, min_size=1, max_size=60).map(
    lambda faults: FaultTrace(
        file="own.csv",
        faults=tuple(sorted(faults, key=lambda one: one.start_s)),
        span_s=max(one.end_s for one in faults),
    )
)


def state_with(source: FailureLaw | FaultTrace, spares: int, nodes: int = 32) -> State:
    grow = GrowSpec(operations=Operations(spares=spares))
    return state_of(replace(made.given(made.fleet(nodes=nodes), grow), failures=source))


@settings(max_examples=12, deadline=None)
@given(source=laws | traces, nodes=st.integers(2, 40), spares=st.integers(0, 12))
def test_grow_and_sim_failures_say_the_same_of_one_fleet(
    source: FailureLaw | FaultTrace, nodes: int, spares: int
):
    state = state_with(source, spares, nodes)
    told = size_spares("fleet", list(nodes_of(state.spec)), source, SparesRequest())
    [constraint] = Spares().evaluated(state, "nodes")
    assert (constraint.utilisation(1.0) <= 1) == (told.spares.p99 <= spares)
    assert state.nodes_down.spares(1.0, SHARE).needed == told.spares.p99
    today = [one for one in constraint.reliefs(2.0) if one.code == "spares-today"]
    assert [one.apply(state).grow.operations.spares for one in today] == (
        [told.spares.p99] if told.spares.p99 > spares else []
    )


@settings(max_examples=12, deadline=None)
@given(source=laws | traces)
def test_more_nodes_never_need_fewer_spares(source: FailureLaw | FaultTrace):
    down = NodesDown(lambda: list(nodes_of(made.fleet().spec)), source, SparesRequest(seeds=4))
    found = [down.spares(level, SHARE) for level in (0.25, 0.5, 1.0, 1.05, 1.5, 2.0, 3.0, 8.0)]
    assert [one.down for one in found] == sorted(one.down for one in found)
    assert [one.needed for one in found] == sorted(one.needed for one in found)
    for one in found:
        assert one.low <= one.needed <= one.high


@pytest.mark.parametrize("level", [0.5, 1.0, 2.0, 5.0])
def test_draws_agree_with_the_closed_form_at_every_size(level: float):
    state = state_with(BURSTS, 8, nodes=64)
    told = state.nodes_down.spares(level, SHARE)
    truth = spares_needed(BURSTS, 64 * level, SHARE)
    mean = BURSTS.faults_per_1000_node_days / 1_000 * 64 * level * BURSTS.away_h_mean / 24
    assert told.down_mean == pytest.approx(mean, rel=0.1)
    assert abs(told.needed - truth) <= max(1, 0.08 * truth)


def test_spares_break_where_the_closed_form_says_and_the_interval_holds_it():
    constraint = Spares().evaluated(state_with(BURSTS, 12, nodes=64), "nodes")[0]
    broken, truth = break_of(constraint, 64), spares_break(BURSTS, 64, 12, SHARE)
    assert broken.k == pytest.approx(truth, rel=0.1)
    assert broken.low is not None
    assert broken.high is not None
    assert broken.low < truth < broken.high


def test_the_same_question_has_the_same_answer():
    first, again = (state_with(BURSTS, 4).nodes_down.spares(3.0, SHARE) for _ in range(2))
    assert first == again


def test_failures_in_bursts_need_more_spares_than_single_ones():
    single = replace(BURSTS, arrival_cv=1.0)
    needed = [state_with(law, 4).nodes_down.spares(2.0, SHARE).needed for law in (BURSTS, single)]
    assert needed[0] > needed[1]


def test_too_few_spares_are_over_today_and_the_relief_says_how_many():
    """Eight nodes go down together for three of a hundred days."""
    faults = tuple(TraceFault(f"t{at}", 864_000.0, 864_000.0 + 3 * 86_400) for at in range(8))
    trace = FaultTrace(file="own.csv", faults=faults, span_s=100 * 86_400.0)
    state = state_with(trace, 2)
    answer = analyse(state.inputs, GrowQuestion(axis="nodes"))
    assert answer.sentence.startswith("over its limit today: Spare nodes")
    first = answer.rows[0]
    # Eight spares may fail together, too, but hardly ever while the others are down.
    assert first.relief is not None
    assert first.relief.sentence == "add 6 spare nodes (8 in total, needed today)"
    assert first.symptom == (
        "0.2 nodes down on average, at most 8 for 99% of the time; 8 spares needed, 2 available"
    )
    assert (first.k_after or 9.0) >= 1


def test_capacity_that_must_stay_free_and_the_share_of_time_count():
    state = state_with(BURSTS, 12, nodes=64)
    strict, keeps_free = (
        replace(state, grow=replace(state.grow, limits=limits))
        for limits in (
            GrowthLimits(spare_shortfall_share_most=0.001),
            GrowthLimits(headroom_least=0.2),
        )
    )

    def used(one: State) -> float:
        found = [each for each in computed_constraints(one, "nodes") if each.layer == "spares"]
        return found[0].utilisation(1.0)

    assert used(strict) > used(state)
    assert used(keeps_free) == pytest.approx(used(state) / 0.8)


def test_spares_of_independent_nodes_are_those_of_the_binomial():
    """40 nodes are up for 200 hours and down for 10 on average, for six years."""
    draw = Random(4)
    faults, years_h = list[TraceFault](), 52_560.0
    for node in range(40):
        now = draw.expovariate(1 / 200)
        while now < years_h:
            back = now + draw.expovariate(1 / 10)
            faults.append(TraceFault(f"t{node}", now * 3_600, back * 3_600))
            now = back + draw.expovariate(1 / 200)
    trace = FaultTrace(
        file="own.csv",
        faults=tuple(sorted(faults, key=lambda one: one.start_s)),
        span_s=years_h * 3_600,
    )
    down = state_with(trace, 0, nodes=40).nodes_down
    for level in (1.0, 1.5, 2.0, 3.2):
        found = down.spares(level, SHARE)
        assert abs(found.needed - binomial_spares(round(40 * level), 10 / 210)) <= 1


def binomial_spares(nodes: int, chance: float) -> int:
    def short(spares: int) -> float:
        whole = nodes + spares
        return 1 - sum(
            comb(whole, down) * chance**down * (1 - chance) ** (whole - down)
            for down in range(spares + 1)
        )

    return next(spares for spares in range(nodes) if short(spares) <= SHARE)


def test_seeds_are_added_until_p99_is_known():
    nodes = list(nodes_of(made.fleet(nodes=64).spec))
    few, enough = (
        size_spares("fleet", nodes, BURSTS, SparesRequest(seeds=seeds)) for seeds in (2, None)
    )
    assert (few.seeds, enough.seeds >= 16) == (2, True)
    assert enough.spares_p99_low <= enough.spares.p99 <= enough.spares_p99_high
    assert abs(enough.spares.p99 - spares_needed(BURSTS, 64, SHARE)) <= 1


def test_more_gpus_than_the_fleet_has_cannot_be_kept():
    nodes = list(nodes_of(made.fleet().spec))
    gpus = sum(node.gpus for node in nodes)
    with pytest.raises(InputError, match=f"the fleet has {gpus:,} GPUs"):
        size_spares("fleet", nodes, BURSTS, SparesRequest(seeds=2, keep_gpus=gpus + 1))
