"""Uplinks and spines as laws, against figures done by hand.

The fleet has 32 nodes of 8 GPUs at 50 GB/s each, on leaves of 4 nodes: 32 GPUs and 1.6 TB/s
below each leaf, of which a quarter leaves it.
"""

import numpy as np
import pytest
from msgspec.structs import replace

import growth_builders as made
from tenfold.compose.fleet import OpenFleet
from tenfold.model.fleet.spec import FleetSpec
from tenfold.model.growth.growth import Axis, GrowSpec, GrowthLimits
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Job
from tenfold.model.job.traffic import Traffic, WorkProfile
from tenfold.physics.growth.breaking import ASSUMED, breaking_factor, is_constant
from tenfold.physics.layout import lay_out
from tenfold.physics.shared_layers import shared_layers
from tenfold.sim.contention.solver import ContentionSolver
from tenfold.study.grow.constraint_set import computed_constraints
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.layer import Constraint, break_of
from tenfold.study.grow.layers.fabric import senders
from tenfold.study.grow.layers.fabric.leaves import leaf_units, pod_units
from tenfold.study.grow.layers.fabric.senders import Gang, Senders
from tenfold.study.grow.layers.fabric.site_links import SiteLinks
from tenfold.study.grow.layers.fabric.spine import FabricSpine
from tenfold.study.grow.layers.fabric.uplinks import FabricUplinks
from tenfold.study.grow.state import scale_capacity, state_of
from tenfold.testing.builders import job

FABRIC = (FabricUplinks(), FabricSpine(), SiteLinks())
SENDS = 30e9
SHARE = 0.1
LIMIT = 0.05
LEAF_GPUS, LEAF_UP = 32, 0.4e12
BEARABLE = 1 + LIMIT / (1 - LIMIT) / SHARE
SPAN_S = 10_000.0


def opened(spec: FleetSpec) -> OpenFleet:
    return OpenFleet(spec=spec, layout=lay_out(spec), catalogue=made.catalogue())


def spec(**fabric: object) -> FleetSpec:
    whole = made.fleet().spec
    net = replace(whole.fabrics[0], **{"nodes_per_leaf": 4, "oversubscription": 4.0} | fabric)
    return replace(whole, fabrics=(net,))


def profile(sends: float = SENDS, share: float = SHARE) -> WorkProfile:
    traffic = Traffic(network_bytes_per_s_per_gpu=sends, network_share=share)
    return WorkProfile(traffic=traffic)


def work(gpus: int = 64, *, load: float = 0.25, name: str = "llm") -> list[Job]:
    """Return 11 jobs over a span, which fill a part of the 256 GPUs."""
    runs_s = SPAN_S * 256 * load / (11 * gpus)
    return [
        replace(job(f"{name}-{at}", gpus, at_s=at * SPAN_S / 10, runs_s=runs_s), profile=name)
        for at in range(11)
    ]


def given(fleet: FleetSpec, jobs: list[Job], **inputs: object) -> GrowInputs:
    known = {"profiles": {"llm": profile()}} | inputs
    return replace(made.given(opened(fleet)), jobs=jobs, **known)


def constraints(axis: Axis, have: GrowInputs) -> dict[str, Constraint]:
    return {
        constraint.key: constraint for constraint in made.evaluated(state_of(have), axis, *FABRIC)
    }


LEAVES = "fabric-uplinks:leaves of net"
SPINES = "fabric-spine:fabric net"


def test_a_leaf_breaks_where_gangs_send_too_much_out_of_it():
    constraint = constraints("job-size", given(spec(), work()))[LEAVES]

    def over(k: float) -> float:
        return LEAF_GPUS * (1 - LEAF_GPUS / (64 * k)) * SENDS / LEAF_UP

    for k in (1.0, 1.3, 2.0, 4.0):
        assert constraint.utilisation(k) == pytest.approx(over(k) / BEARABLE)
    by_hand = LEAF_GPUS / 64 / (1 - BEARABLE * LEAF_UP / (LEAF_GPUS * SENDS))
    assert breaking_factor(constraint.utilisation, 64) == pytest.approx(by_hand)
    assert constraint.utilisation(4.0) == constraint.utilisation(8.0), (
        "no gang is larger than the fabric"
    )
    assert constraint.grade == "published"
    assert constraint.symptom(2.0) == (
        "uplink traffic per leaf of net: 720.0 GB/s of 400.0 GB/s; jobs of 128 GPUs run 8% slower"
    )


def test_at_the_break_steps_stall_for_the_share_that_is_allowed():
    constraint = constraints("job-size", given(spec(), work()))[LEAVES]
    k = breaking_factor(constraint.utilisation, 64)
    assert k is not None
    over = LEAF_GPUS * (1 - LEAF_GPUS / (64 * k)) * SENDS / LEAF_UP
    longer = 1 + SHARE * (over - 1)
    assert 1 - 1 / longer == pytest.approx(LIMIT)


def test_a_gang_is_as_slow_as_in_a_simulation():
    state = state_of(given(spec(), work()))
    gang = [(NodeId(f"n{at}"), 8.0) for at in range(1, 9)]
    solver = ContentionSolver(shared_layers(state.layout))
    speed = solver.start(JobId("llm"), gang, profile().traffic)[JobId("llm")]
    constraint = {one.key: one for one in made.evaluated(state, "job-size", *FABRIC)}[LEAVES]
    over = constraint.utilisation(1.0) * BEARABLE
    assert over > 1
    assert speed == pytest.approx(1 / (1 + SHARE * (over - 1)))


def test_a_gang_under_one_leaf_crosses_nothing_until_it_outgrows_it():
    constraint = constraints("job-size", given(spec(), work(16)))[LEAVES]
    assert constraint.utilisation(2.0) == 0.0
    assert constraint.symptom(2.0) == "every job fits under one leaf of net"
    assert constraint.utilisation(2.1) > 0.0


def test_more_jobs_or_nodes_do_not_crowd_uplinks_that_are_a_leafs_own():
    for axis in ("jobs", "nodes", "data"):
        constraint = constraints(axis, given(spec(), work()))[LEAVES]
        assert is_constant(constraint.utilisation, 64)
        assert break_of(constraint, 64).status == "constant"


def test_uplinks_without_oversubscription_never_break():
    full = profile(sends=50e9, share=1.0)
    have = given(spec(oversubscription=1.0), work(), profiles={"llm": full})
    constraint = constraints("job-size", have)[LEAVES]
    assert constraint.utilisation(64.0) < 1


def test_nobody_sends_faster_than_its_ports():
    fast = given(spec(), work(), profiles={"llm": profile(sends=500e9)})
    line = given(spec(), work(), profiles={"llm": profile(sends=50e9)})
    assert constraints("job-size", fast)[LEAVES].utilisation(2.0) == constraints("job-size", line)[
        LEAVES
    ].utilisation(2.0)


def test_gangs_with_less_time_than_may_be_lost_raise_no_alarm():
    small, rare = work(8, load=0.5), work(256, load=0.02, name="rare")
    profiles = {"llm": profile(), "rare": profile(share=1.0)}
    have = given(spec(), [*small, *rare], profiles=profiles)
    assert constraints("jobs", have)[LEAVES].utilisation(1.0) == 0.0
    more = given(spec(), [*small, *work(256, load=0.05, name="rare")], profiles=profiles)
    assert constraints("jobs", more)[LEAVES].utilisation(1.0) > 1.0


def test_pods_have_uplinks_of_their_own():
    net = spec(leaves_per_pod=2, core_oversubscription=2.0)
    constraint = constraints("job-size", given(net, work(128)))["fabric-uplinks:pods of net"]
    sent = 64 * (1 - 64 / 256) * SENDS
    assert constraint.utilisation(2.0) == pytest.approx(sent / (2 * LEAF_UP / 2) / BEARABLE)


def test_units_carry_what_shared_layers_say():
    net = spec(leaves_per_pod=2, core_oversubscription=2.0)
    state = state_of(given(net, work()))
    shared = shared_layers(state.layout)
    said = {"leaf": leaf_units(state, 0), "pod": pod_units(state, 0)}
    for word, units in said.items():
        capacity = [
            amount
            for name, amount in zip(shared.names, shared.capacity, strict=True)
            if name.startswith(f"uplink of {word}")
        ]
        assert [unit.up_bytes_per_s for unit in units] == np.unique(capacity).tolist()


def test_spines_carry_all_that_crosses_and_stay_when_nodes_are_added():
    have = given(spec(spines=2), work())
    carried = 2 * 64 * 50e9
    crossing = 0.25 * 256 * (1 - LEAF_GPUS / 64) * SENDS
    constraint = constraints("nodes", have)[SPINES]
    assert constraint.utilisation(3.0) == pytest.approx(3 * crossing / carried / BEARABLE)
    assert breaking_factor(constraint.utilisation, 64) == pytest.approx(
        carried * BEARABLE / crossing
    )
    full = constraints("jobs", have)[SPINES]
    assert full.utilisation(8.0) == pytest.approx(4 * crossing / carried / BEARABLE), "full at 4x"
    assert constraint.utilisation(1.0) == full.utilisation(1.0)


def test_how_many_spines_is_not_guessed():
    found = constraints("nodes", given(spec(), work()))
    assert found[SPINES].needs == "`spines` for fabric `net`"


def test_what_nobody_sends_is_unknown_and_says_what_would_tell():
    silent = {"llm": WorkProfile(traffic=Traffic(read_bytes_per_s_per_gpu=1e9))}
    for have in (given(spec(), []), given(spec(), work(), profiles=silent)):
        found = constraints("job-size", have)
        assert set(found) == {LEAVES, SPINES}
        assert all("`network_gbps_per_gpu`" in constraint.needs for constraint in found.values())
        assert set(constraints("nodes", have)) == {SPINES}
        assert constraints("data", have) == {}


def test_one_switch_for_all_has_nothing_to_cross():
    assert constraints("job-size", given(spec(nodes_per_leaf=32), work())) == {}


def test_a_fabric_that_is_not_stated_or_a_mix_is_an_assumption():
    assert constraints("job-size", given(spec(defaulted=True), work()))[LEAVES].grade == "assumed"
    assert constraints("job-size", given(spec(), work(), mix="m"))[LEAVES].grade == "assumed"


def test_the_model_expected_stands_in_where_there_are_no_profiles():
    expects = replace(spec().expects, model="llama-3-8b")
    have = made.given(opened(replace(spec(), expects=expects)))
    constraint = constraints("job-size", have)[LEAVES]
    assert (constraint.grade, constraint.needs) == ("assumed", "")
    assert 0 < constraint.utilisation(0.5) <= constraint.utilisation(1.0)


def test_a_model_that_never_leaves_its_nodes_strains_nothing():
    silent = Gang(gpus=64.0, running=64.0, bytes_per_s_per_gpu=50e9, share=0.0)
    found = Senders(gangs=(silent,), load=1.0, evidence=ASSUMED)
    state = state_of(given(spec(spines=2), []))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(senders, "senders_on", lambda *_: found)
        quiet = made.evaluated(state, "job-size", *FABRIC)
    assert [constraint.utilisation(4.0) for constraint in quiet] == [0.0, 0.0]


def test_groups_of_a_dragonfly_that_nobody_sends_over_are_unknown():
    net = spec(kind="dragonfly", switches_per_group=2)
    assert set(constraints("job-size", given(net, []))) == {"fabric-uplinks:pods of net"}
    assert constraints("nodes", given(net, [])) == {}


def test_wider_uplinks_take_as_much_more():
    state = state_of(given(spec(), work()))
    narrow = {
        constraint.key: constraint for constraint in made.evaluated(state, "job-size", *FABRIC)
    }[LEAVES]
    wide = {
        constraint.key: constraint
        for constraint in made.evaluated(scale_capacity(state, LEAVES, 2.0), "job-size", *FABRIC)
    }[LEAVES]
    assert wide.utilisation(2.0) == pytest.approx(narrow.utilisation(2.0) / 2)


def test_the_limit_of_stalls_can_be_set():
    strict = GrowSpec(limits=GrowthLimits(stall_share_most=0.0))
    constraint = constraints("job-size", given(spec(), work(), grow=strict))[LEAVES]
    assert constraint.utilisation(1.0) == pytest.approx(LEAF_GPUS * 0.5 * SENDS / LEAF_UP)
    idle = GrowSpec(limits=GrowthLimits(stall_share_most=1.0))
    assert constraints("job-size", given(spec(), work(), grow=idle))[LEAVES].utilisation(4.0) == 0.0


def test_spines_take_no_more_than_ports_send_and_are_widened():
    fast = given(spec(spines=2), work(), profiles={"llm": profile(sends=500e9)})
    line = given(spec(spines=2), work(), profiles={"llm": profile(sends=50e9)})
    assert constraints("nodes", fast)[SPINES].utilisation(2.0) == constraints("nodes", line)[
        SPINES
    ].utilisation(2.0)
    wide = made.evaluated(scale_capacity(state_of(line), SPINES, 4.0), "nodes", *FABRIC)
    [constraint] = [one for one in wide if one.key == SPINES]
    assert constraint.utilisation(2.0) == pytest.approx(
        constraints("nodes", line)[SPINES].utilisation(2.0) / 4
    )


def test_half_the_ports_of_spines_go_up_where_there_are_pods():
    one, four = (
        constraints("nodes", given(spec(spines=2, leaves_per_pod=n), work())) for n in (8, 2)
    )
    assert four[SPINES].utilisation(1.0) == pytest.approx(one[SPINES].utilisation(1.0) / 4 * 2)


def test_groups_of_a_dragonfly_are_joined_by_what_leaves_them():
    net = spec(kind="dragonfly", switches_per_group=2, core_oversubscription=3.0)
    state = state_of(given(net, work()))
    shared = shared_layers(state.layout)
    [unit] = pod_units(state, 0)
    assert unit.up_bytes_per_s == shared.capacity[0]
    assert leaf_units(state, 0) == []
    found = {
        constraint.key: constraint for constraint in made.evaluated(state, "job-size", *FABRIC)
    }
    assert found["fabric-uplinks:pods of net"].utilisation(2.0) > 0
    assert SPINES not in found


def test_jobs_for_other_gpus_send_nothing_here():
    def of(part: str) -> GrowInputs:
        return given(
            spec(),
            [replace(one, shape=replace(one.shape, accelerators=(part,))) for one in work()],
        )

    assert not constraints("job-size", of("H100"))[LEAVES].needs
    assert constraints("job-size", of("A100"))[LEAVES].needs


def test_the_law_book_has_them():
    layers = {
        constraint.layer
        for constraint in computed_constraints(state_of(given(spec(spines=2), work())), "all")
    }
    assert {"fabric-uplinks", "fabric-spine"} <= layers
