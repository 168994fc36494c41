"""Fleets with a planted break: closed forms agree with a count by hand, and growth with them."""

from collections import Counter
from math import inf

import pytest

from benchmarks.grow.planted import judged
from growth_builders import catalogue, fleet, tier
from tenfold.model.growth.growth import Dataset, Facility, GrowSpec, GrowthLimits
from tests.rigs.planted.fleets import FIRST_LEAST, KINDS, LAYERS, planted, sound, starved
from tests.rigs.planted.plan import Plan, Replica, Work
from tests.rigs.planted.truth import breaks, first_of, headroom, slowed_most

COOLING = (25.0, 60.0)
REPLICA = Replica(10.0, 1)


def cooling() -> tuple[float, ...]:
    return tuple(one.rack_kw_max for one in catalogue().cooling)


def test_the_building_breaks_where_a_count_by_hand_says():
    # 32 nodes of 10 kW at an overhead of 1.25 draw 400 kW; 8 racks hold four each.
    grow = GrowSpec(
        facility=Facility(floor_racks=24, ports_free=256), limits=GrowthLimits(kw_most=600.0)
    )
    found = breaks(Plan(axis="nodes", spec=fleet(rack_kw=60.0).spec, grow=grow))
    assert found == {
        "site-power": 2.5,
        "power-budget": 1.5,
        "switch-ports": 2.0,
        "floor": 3.0,
    }


def test_reads_of_a_tier_grow_with_the_nodes_and_not_with_the_dataset():
    # 2 jobs at once read 16 x 0.1 GB/s of 40: 25 times that is there.
    work = Work(jobs=50, every_s=3_600.0, runs_s=7_200.0, read_bytes_per_s_per_gpu=0.1e9)
    spec = fleet(tiers=(tier(),)).spec
    found = {
        axis: breaks(Plan(axis=axis, spec=spec, grow=GrowSpec(), work=work))["storage-read"]
        for axis in ("data", "nodes", "all")
    }
    assert found == {"data": inf, "nodes": 25.0, "all": 25.0}
    # 16 times the jobs fill the fleet, and it reads no more than that.
    assert breaks(Plan(axis="jobs", spec=spec, grow=GrowSpec(), work=work))["storage-read"] == inf
    # Larger jobs read the same bytes over the same time.
    sized = Plan(axis="job-size", spec=spec, grow=GrowSpec(), work=work)
    assert breaks(sized)["storage-read"] == inf


def test_a_dataset_breaks_a_tier_only_along_its_own_axis():
    held = Dataset(name="corpus", tier="fast", tb=1_000)
    grow, spec = GrowSpec(datasets=(held,)), fleet(tiers=(tier(),)).spec
    assert breaks(Plan(axis="data", spec=spec, grow=grow))["storage-capacity"] == 4.0
    assert breaks(Plan(axis="jobs", spec=spec, grow=grow))["storage-capacity"] == inf


def test_readers_are_slowed_at_most_as_if_all_nodes_read():
    # 8 jobs at once read 8 x 8 x 0.3125 GB/s: 40 GB/s is twice that, and 32 nodes want 80.
    work = Work(jobs=50, every_s=3_600.0, runs_s=28_800.0, read_bytes_per_s_per_gpu=0.3125e9)
    plan = Plan(axis="jobs", spec=fleet(tiers=(tier(),)).spec, grow=GrowSpec(), work=work)
    assert slowed_most(plan) == 0.5


@pytest.mark.parametrize("seed", range(40))
def test_the_first_planted_break_is_clear(seed: int):
    made = planted(seed, COOLING, REPLICA)
    first, k, behind = first_of(made.k_by_layer)
    assert (first, k) == (made.first, made.k)
    assert FIRST_LEAST * 0.9 < k < behind / 1.2


def test_the_same_seed_plants_the_same_fleet():
    assert planted(7, COOLING) == planted(7, COOLING)
    assert sound(7, COOLING, REPLICA) == sound(7, COOLING, REPLICA)
    assert starved(7, COOLING) == starved(7, COOLING)


def test_every_kind_of_break_is_planted_along_every_axis_that_it_grows_with():
    made = [planted(seed, COOLING, REPLICA) for seed in range(1_000)]
    seen = Counter((one.plan.axis, one.kind) for one in made)
    assert {kind for _, kind in seen} == set(KINDS)
    assert {axis for axis, _ in seen} == set(LAYERS)


def test_without_a_replica_no_service_is_planted():
    made = [planted(seed, COOLING) for seed in range(40)] + [sound(3, COOLING), sound(4, COOLING)]
    assert not any(one.plan.grow.services for one in made)


def test_where_runs_may_be_named_jobs_cannot_lose_more_to_a_tier_than_is_allowed():
    made = [planted(seed, COOLING) for seed in range(200)]
    draws = [one for one in made if one.plan.runs_count and slowed_most(one.plan)]
    assert draws
    assert all(one.plan.grow.limits.stall_share_most >= slowed_most(one.plan) for one in draws)


def test_naming_the_fullest_layer_of_today_is_often_wrong():
    made = [planted(seed, COOLING) for seed in range(40)]
    fooled = [one for one in made if first_of(headroom(one.plan))[0] != one.first]
    assert len(fooled) >= 10


def _seed_of(kind: str) -> int:
    return next(seed for seed in range(1_000) if planted(seed, cooling()).kind == kind)


# A full pool climbs a long ladder of runs, and is left to the benchmark; a quota is a queue, too.
DEAR = ("queue", "serving", "gateway")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in DEAR])
def test_growth_names_what_was_planted(kind: str):
    found = judged(planted(_seed_of(kind), cooling()), catalogue())
    assert found.right
    assert found.apart <= 0.1


def test_a_sound_fleet_raises_no_alarm():
    made = sound(3, cooling())
    assert min(made.k_by_layer.values()) > 20
    assert judged(made, catalogue()).answer.first is None
