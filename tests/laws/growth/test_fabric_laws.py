"""What must hold for the laws of the fabric, whatever gangs run on it."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import growth_builders as made
from tenfold.compose.fleet import OpenFleet
from tenfold.model.growth.growth import AXES, Axis
from tenfold.model.job.traffic import Traffic, WorkProfile
from tenfold.physics.growth.breaking import FACTOR_LEAST, breaking_factor
from tenfold.physics.layout import lay_out
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.layer import Constraint
from tenfold.study.grow.layers.fabric.site_links import SiteLinks
from tenfold.study.grow.layers.fabric.spine import FabricSpine
from tenfold.study.grow.layers.fabric.uplinks import FabricUplinks
from tenfold.study.grow.state import state_of
from tenfold.testing.builders import job

FABRIC = (FabricUplinks(), FabricSpine(), SiteLinks())
MOST = 64.0
axes = st.sampled_from(AXES)
factors = st.floats(FACTOR_LEAST, MOST)
profiles = st.builds(
    Traffic,
    network_bytes_per_s_per_gpu=st.floats(1e8, 1e11),
    network_share=st.floats(0.0, 1.0),
).map(lambda traffic: WorkProfile(traffic=traffic))


@st.composite
def inputs(draw: st.DrawFn) -> GrowInputs:
    whole = made.fleet(nodes=draw(st.integers(1, 64))).spec
    net = replace(
        whole.fabrics[0],
        kind=draw(st.sampled_from(("fat-tree", "rail-optimised", "dragonfly"))),
        nodes_per_leaf=draw(st.integers(1, 16)),
        leaves_per_pod=draw(st.none() | st.integers(1, 4)),
        spines=draw(st.none() | st.integers(1, 8)),
        oversubscription=draw(st.floats(1.0, 8.0)),
        core_oversubscription=draw(st.floats(1.0, 4.0)),
        switches_per_group=draw(st.integers(1, 4)),
    )
    spec = replace(whole, fabrics=(net,))
    gangs = st.tuples(st.integers(1, 600), st.integers(10, 10_000), st.sampled_from("ab"))
    work = [
        replace(job(number, gpus, at_s=number * 60, runs_s=runs_s), profile=name)
        for number, (gpus, runs_s, name) in enumerate(draw(st.lists(gangs, max_size=6)))
    ]
    opened = OpenFleet(spec=spec, layout=lay_out(spec), catalogue=made.catalogue())
    return GrowInputs(fleet=opened, jobs=work, profiles={"a": draw(profiles), "b": draw(profiles)})


def known(have: GrowInputs, axis: Axis) -> list[Constraint]:
    return [
        constraint
        for constraint in made.evaluated(state_of(have), axis, *FABRIC)
        if not constraint.needs
    ]


@given(inputs(), axes, factors, factors)
def test_strain_never_falls_with_the_factor(have: GrowInputs, axis: Axis, a: float, b: float):
    less, more = sorted((a, b))
    for constraint in known(have, axis):
        assert constraint.utilisation(less) <= constraint.utilisation(more) * (1 + 1e-12)
        assert constraint.symptom(more)


@given(inputs(), axes)
def test_at_the_breaking_factor_strain_is_one(have: GrowInputs, axis: Axis):
    for constraint in known(have, axis):
        k = breaking_factor(constraint.utilisation, MOST)
        if k is None:
            assert constraint.utilisation(MOST) <= 1
        elif k > FACTOR_LEAST:
            assert abs(constraint.utilisation(k) - 1) < 1e-9


@given(inputs(), axes, factors)
def test_a_fabric_without_oversubscription_has_uplinks_for_all(
    have: GrowInputs, axis: Axis, factor: float
):
    spec = have.fleet.spec
    net = replace(spec.fabrics[0], oversubscription=1.0, core_oversubscription=1.0)
    wide = replace(spec, fabrics=(net,))
    opened = replace(have.fleet, spec=wide, layout=lay_out(wide))
    for constraint in known(replace(have, fleet=opened), axis):
        if constraint.layer == "fabric-uplinks":
            assert constraint.utilisation(factor) <= 1 + 1e-12
