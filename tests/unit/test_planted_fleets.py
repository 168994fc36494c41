"""Fleets with a planted break: closed forms agree with a count by hand, and growth with them."""

from math import inf

import pytest
from benchmarks.grow.planted import judged

from growth_builders import catalogue, fleet, tier
from tenfold.model.growth import Dataset, Facility, GrowSpec, Limits
from tenfold.model.units import Bytes
from tenfold.testing.planted_fleets import FIRST_LEAST, LAYERS, planted, sound
from tenfold.testing.planted_truth import Plan, Work, breaks, first_of, headroom

COOLING = (25.0, 60.0)


def test_the_building_breaks_where_a_count_by_hand_says():
    # 32 nodes of 10 kW at an overhead of 1.25 draw 400 kW; 8 racks hold four each.
    grow = GrowSpec(facility=Facility(floor_racks=24, ports_free=256), limits=Limits(kw_most=600.0))
    found = breaks(Plan(axis="nodes", spec=fleet(rack_kw=60.0).spec, grow=grow, cooling_kw=COOLING))
    assert found == {
        "site-power": 2.5,
        "power-budget": 1.5,
        "cooling": 1.5,
        "switch-ports": 2.0,
        "floor": 3.0,
    }


def test_draws_of_a_tier_grow_twice_along_all_axes():
    # 2 jobs at once read 16 x 0.1 GB/s of 40: 25 times that is there.
    work = Work(jobs=50, every_s=3_600.0, runs_s=7_200.0, read_bytes_per_s_per_gpu=0.1e9)
    spec = fleet(tiers=(tier(),)).spec
    plans = [Plan(axis=axis, spec=spec, grow=GrowSpec(), work=work) for axis in ("data", "nodes")]
    assert [breaks(plan)["storage-read"] for plan in plans] == [25.0, 25.0]
    assert breaks(Plan(axis="all", spec=spec, grow=GrowSpec(), work=work))["storage-read"] == 5.0
    # 16 times the jobs fill the fleet, and it reads no more than that.
    assert breaks(Plan(axis="jobs", spec=spec, grow=GrowSpec(), work=work))["storage-read"] == inf


def test_a_dataset_breaks_a_tier_only_along_its_own_axis():
    held = Dataset(name="corpus", tier="fast", bytes=Bytes(10**15))
    grow, spec = GrowSpec(datasets=(held,)), fleet(tiers=(tier(),)).spec
    assert breaks(Plan(axis="data", spec=spec, grow=grow))["storage-capacity"] == 4.0
    assert breaks(Plan(axis="jobs", spec=spec, grow=grow))["storage-capacity"] == inf


def test_even_arrivals_wait_once_there_is_more_work_than_nodes():
    # 8 of 32 nodes are busy over 100 days, and 1% of them may be waited.
    work = Work(jobs=2_400, every_s=3_600.0, runs_s=28_800.0, is_run=True)
    grow = GrowSpec(limits=Limits(wait_s_p90=86_400.0))
    k = breaks(Plan(axis="jobs", spec=fleet().spec, grow=grow, work=work))["queue"]
    assert 4.0 < k < 4.1


@pytest.mark.parametrize("seed", range(40))
def test_the_first_planted_break_is_clear(seed: int):
    made = planted(seed, COOLING)
    first, k, behind = first_of(made.k_by_layer)
    assert (first, k) == (made.first, made.k)
    assert FIRST_LEAST * 0.9 < k < behind / 1.2


def test_the_same_seed_plants_the_same_fleet():
    assert planted(7, COOLING) == planted(7, COOLING)
    assert sound(7, COOLING) == sound(7, COOLING)


def test_naming_the_fullest_layer_of_today_is_often_wrong():
    made = [planted(seed, COOLING) for seed in range(40)]
    fooled = [one for one in made if first_of(headroom(one.plan))[0] != one.first]
    assert len(fooled) >= 5


@pytest.mark.parametrize("seed", [0, 9, 13, 22])
def test_growth_names_what_was_planted(seed: int):
    found = judged(
        planted(seed, tuple(one.rack_kw_max for one in catalogue().cooling)), catalogue()
    )
    assert found.right
    assert found.apart <= 0.1


def test_a_sound_fleet_raises_no_alarm():
    made = sound(3, tuple(one.rack_kw_max for one in catalogue().cooling))
    assert min(made.k_by_layer.values()) > 20
    assert judged(made, catalogue()).answer.first is None
    assert set(LAYERS) == {"nodes", "all", "data", "jobs"}
