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
    Limits,
    Quantity,
    grown_by,
    moves,
)
from tenfold.model.job.traffic import Traffic, WorkProfile
from tenfold.model.units import SECOND, Bytes, Millis
from tenfold.physics.growth.law import FACTOR_LEAST, breaking_factor
from tenfold.study.grow.attribute import attribute
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.ladder import climb
from tenfold.study.grow.law_book import all_laws
from tenfold.study.grow.layer import Law, break_of, lift
from tenfold.study.grow.question import GrowQuestion
from tenfold.study.grow.search import joint
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
        Limits,
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


def known(state: State, axis: Axis) -> list[Law]:
    return [law for law in all_laws(state, axis) if not law.needs]


@given(inputs(), axes, factors, factors)
def test_strain_never_falls_with_the_factor(have: GrowInputs, axis: Axis, a: float, b: float):
    less, more = sorted((a, b))
    for law in known(state_of(have), axis):
        assert law.strain(less) <= law.strain(more) * (1 + 1e-12)


@given(inputs(), axes)
def test_at_the_breaking_factor_strain_is_one(have: GrowInputs, axis: Axis):
    for law in known(state_of(have), axis):
        k = breaking_factor(law.strain, MOST)
        if k is None:
            assert law.strain(MOST) <= 1
        elif k > FACTOR_LEAST:
            assert abs(law.strain(k) - 1) < 1e-9


@given(inputs(), axes)
def test_the_interval_holds_the_breaking_factor(have: GrowInputs, axis: Axis):
    for law in known(state_of(have), axis):
        broken = break_of(law, MOST)
        if broken.k is not None:
            assert broken.low is not None
            assert broken.low <= broken.k * (1 + 1e-9)
            assert broken.high is None or broken.k <= broken.high * (1 + 1e-9)


@given(inputs(), axes)
def test_lifting_never_breaks_a_fleet_sooner(have: GrowInputs, axis: Axis):
    state = state_of(have)
    now = joint(known(state, axis), MOST)
    if now.law is None or now.k is None:
        return
    found = attribute(state, lambda one: known(one, axis), now, MOST)
    without = joint(known(lift(state, *found.laws), axis), MOST)
    assert found.k_without == without.k
    assert without.k is None or without.k >= now.k


@given(inputs(), axes, st.floats(1.0, 10.0))
def test_a_relief_lets_its_layer_stand_the_target(have: GrowInputs, axis: Axis, target: float):
    state = state_of(have)
    for law in known(state, axis):
        for relief in law.reliefs(target):
            after = {one.key: one for one in known(relief.apply(state), axis)}
            if law.key in after and relief.code != "switch-layer":
                assert after[law.key].strain(target) <= 1 + 1e-6


@settings(max_examples=40)
@given(inputs(), axes)
def test_the_ladder_only_goes_up_and_repeats_itself(have: GrowInputs, axis: Axis):
    question = GrowQuestion(axis=axis, count_assumed=True)
    answer = climb(have, question)
    assert climb(have, question) == answer
    reached = [row.k or 0.0 for row in answer.rows]
    assert reached == sorted(reached)
    for row, following in zip(answer.rows, answer.rows[1:], strict=False):
        assert row.k_after == following.k


@given(axes, factors)
def test_everything_that_moves_along_an_axis_moves_by_the_factor(axis: Axis, factor: float):
    assert any(moves(axis, quantity) for quantity in QUANTITIES)
    for quantity in QUANTITIES:
        assert grown_by(axis, quantity, factor) == (factor if moves(axis, quantity) else 1.0)
