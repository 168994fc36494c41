"""What must hold for every law of growth, whatever the fleet."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import growth_builders as made
from tenfold.model.growth.growth import (
    AXES,
    Axis,
    Dataset,
    Facility,
    GrowSpec,
    GrowthLimits,
    Quantity,
    grown_by,
    grows_along,
)
from tenfold.model.job.traffic import Traffic, WorkProfile
from tenfold.model.units import SECOND, Bytes, Millis
from tenfold.physics.growth.breaking import FACTOR_LEAST, breaking_factor
from tenfold.study.grow.analyse import analyse
from tenfold.study.grow.attribute import attribute
from tenfold.study.grow.constraint_set import computed_constraints
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.layer import Constraint, break_of, relax
from tenfold.study.grow.question import GrowQuestion
from tenfold.study.grow.search import find_bottleneck
from tenfold.study.grow.state import State, state_of
from tenfold.testing.builders import job

MOST = 64.0
QUANTITIES: tuple[Quantity, ...] = ("jobs", "job-size", "data", "traffic", "teams", "nodes")

axes = st.sampled_from(AXES)
factors = st.floats(1.0, MOST)
profiles = st.builds(
    Traffic,
    read_bytes_per_s_per_gpu=st.floats(1e6, 5e9),
    tier=st.just("fast"),
    checkpoint_bytes=st.integers(0, 10**13).map(Bytes),
    checkpoint_every_ms=st.integers(10, 10_000).map(lambda s: Millis(s * SECOND)),
).map(lambda traffic: WorkProfile(traffic=traffic))
grows = st.builds(
    GrowSpec,
    limits=st.builds(
        GrowthLimits,
        kw_most=st.none() | st.floats(50, 50_000),
        headroom_least=st.floats(0, 0.5),
    ),
    facility=st.builds(
        Facility,
        floor_racks=st.none() | st.integers(1, 200),
        ports_free=st.none() | st.integers(0, 5_000),
    ),
    datasets=st.lists(
        st.builds(
            Dataset,
            name=st.just("d"),
            tier=st.just("fast"),
            tb=st.integers(1, 10**16).map(lambda size: size / 10**12),
            grows_with=axes,
        ),
        max_size=3,
    ).map(tuple),
)


@st.composite
def inputs(draw: st.DrawFn) -> GrowInputs:
    opened = made.fleet(
        power_kw=draw(st.none() | st.floats(50, 20_000)),
        rack_kw=draw(st.floats(5, 200)),
        nodes=draw(st.integers(1, 64)),
        tiers=(made.tier(draw(st.integers(1, 8)), tb=draw(st.integers(1, 9_000))),),
    )
    gangs = draw(st.lists(st.tuples(st.integers(1, 64), st.integers(10, 10_000)), max_size=5))
    work = [
        replace(job(number, gpus, at_s=number * 60, runs_s=runs_s), profile="train")
        for number, (gpus, runs_s) in enumerate(gangs)
    ]
    return GrowInputs(fleet=opened, jobs=work, grow=draw(grows), profiles={"train": draw(profiles)})


def known(state: State, axis: Axis) -> list[Constraint]:
    return [constraint for constraint in computed_constraints(state, axis) if not constraint.needs]


@given(inputs(), axes, factors, factors)
def test_strain_never_falls_with_the_factor(have: GrowInputs, axis: Axis, a: float, b: float):
    less, more = sorted((a, b))
    for constraint in known(state_of(have), axis):
        assert constraint.utilisation(less) <= constraint.utilisation(more) * (1 + 1e-12)


@given(inputs(), axes)
def test_up_to_the_breaking_factor_strain_is_at_most_one_and_beyond_it_more(
    have: GrowInputs, axis: Axis
):
    for constraint in known(state_of(have), axis):
        k = breaking_factor(constraint.utilisation, MOST)
        if k is None:
            assert constraint.utilisation(MOST) <= 1
        elif k > FACTOR_LEAST:
            # Racks and spares are whole: a little further there is one too many.
            assert constraint.utilisation(k) <= 1 + 1e-9
            assert constraint.utilisation(k * (1 + 1e-9)) >= 1 - 1e-9


@given(inputs(), axes)
def test_the_interval_holds_the_breaking_factor(have: GrowInputs, axis: Axis):
    for constraint in known(state_of(have), axis):
        broken = break_of(constraint, MOST)
        if broken.k is not None:
            assert broken.low is not None
            assert broken.low <= broken.k * (1 + 1e-9)
            assert broken.high is None or broken.k <= broken.high * (1 + 1e-9)


@given(inputs(), axes)
def test_lifting_never_breaks_a_fleet_sooner(have: GrowInputs, axis: Axis):
    state = state_of(have)
    now = find_bottleneck(known(state, axis), MOST)
    if now.constraint is None or now.k is None:
        return
    found = attribute(state, lambda one: known(one, axis), now, MOST)
    without = find_bottleneck(known(relax(state, *found.constraints), axis), MOST)
    assert found.k_without == without.k
    assert without.k is None or without.k >= now.k


@given(inputs(), axes, st.floats(1.0, 10.0))
def test_a_relief_lets_its_layer_stand_the_target(have: GrowInputs, axis: Axis, target: float):
    state = state_of(have)
    for constraint in known(state, axis):
        for relief in constraint.reliefs(target):
            after = {one.key: one for one in known(relief.apply(state), axis)}
            if constraint.key in after and relief.code != "switch-layer":
                assert after[constraint.key].utilisation(target) <= 1 + 1e-6


@settings(max_examples=40)
@given(inputs(), axes)
def test_the_ladder_only_goes_up_and_repeats_itself(have: GrowInputs, axis: Axis):
    question = GrowQuestion(axis=axis, count_assumed=True)
    answer = analyse(have, question)
    assert analyse(have, question) == answer
    reached = [row.k or 0.0 for row in answer.rows]
    assert reached == sorted(reached)
    for row, following in zip(answer.rows, answer.rows[1:], strict=False):
        assert row.k_after == following.k


@given(axes, factors)
def test_everything_that_moves_along_an_axis_moves_by_the_factor(axis: Axis, factor: float):
    assert any(grows_along(axis, quantity) for quantity in QUANTITIES)
    for quantity in QUANTITIES:
        assert grown_by(axis, quantity, factor) == (factor if grows_along(axis, quantity) else 1.0)
