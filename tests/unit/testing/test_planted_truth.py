"""Closed forms of work and upkeep in planted fleets, against counts by hand."""

from math import exp, inf

import pytest
from msgspec.structs import replace

from growth_builders import fleet
from tenfold.model.facts.failure_law import FailureLaw
from tenfold.model.fleet.spec import Price
from tenfold.model.growth.growth import (
    Axis,
    Controller,
    GrowSpec,
    GrowthLimits,
    Monitoring,
    Operations,
    ServiceLoad,
)
from tenfold.model.units import UsdMicros
from tests.rigs.planted.plan import Plan, Replica, Work
from tests.rigs.planted.truth import breaks
from tests.rigs.planted.work_truth import uneven_share

OTHERS = ("site-power", "cooling", "rack-power")


def found(axis: Axis, grow: GrowSpec, work: Work | None = None, **more: object) -> dict[str, float]:
    """Return where a fleet of 32 nodes breaks, but for its building."""
    plan = Plan(axis=axis, spec=fleet().spec, grow=grow, work=work, **more)  # pyright: ignore[reportArgumentType]
    return {layer: k for layer, k in breaks(plan).items() if layer not in OTHERS}


def test_even_arrivals_wait_once_there_is_more_work_than_nodes():
    # 8 of 32 nodes are busy. Ten days or a hundred: more work than nodes passes any limit of waits.
    grow = GrowSpec(limits=GrowthLimits(wait_s_p90=86_400.0))
    for days in (10, 100):
        work = Work(jobs=24 * days, every_s=3_600.0, runs_s=28_800.0, is_run=True)
        assert found("jobs", grow, work)["queue"] == 4.0


def test_a_limit_as_long_as_the_history_is_not_passed_in_it():
    work = Work(jobs=240, every_s=3_600.0, runs_s=28_800.0, is_run=True)
    grow = GrowSpec(limits=GrowthLimits(wait_s_p90=9.3 * 86_400.0))
    assert found("jobs", grow, work)["queue"] == inf


def test_a_team_with_a_quota_waits_while_others_do_not():
    # The first of 4 teams keeps 2 nodes busy and may hold 4; evenness falls to 0.8 at a tenth.
    work = Work(jobs=2_400, every_s=3_600.0, runs_s=28_800.0, teams=4, quota_nodes=4, is_run=True)
    grow = GrowSpec(limits=GrowthLimits(wait_s_p90=86_400.0))
    made = found("jobs", grow, work)
    assert made["queue"] == 2.0
    assert made["compute"] == 4.0
    assert made["governance"] == pytest.approx(2.0 / uneven_share(4, 0.8))


def test_one_of_two_teams_at_a_third_of_its_due_is_evenness_of_four_fifths():
    assert uneven_share(2, 0.8) == pytest.approx(1 / 3)
    assert uneven_share(100, 0.5) == 0.0


def test_nodes_half_full_are_stranded_before_all_gpus_are_busy():
    work = Work(jobs=200, every_s=4_320.0, runs_s=34_560.0, gpus=5, is_run=True)
    made = found("jobs", GrowSpec(limits=GrowthLimits(wait_s_p90=1e9)), work)
    assert made["fragmentation"] == 4.0
    assert made["compute"] == 6.4


def test_a_controller_admits_what_it_is_set_to():
    work = Work(jobs=40, every_s=60.0, runs_s=60.0)
    cost = Controller(kind="tenfold", cost_ms_per_job=20_000.0)
    turns = Controller(kind="kueue", cycles_per_min=2.0, heads_per_cycle=3)
    # 3 and 6 a minute are admitted; for a mean wait of 300 s, 30 of 31 and 60 of 61 may come.
    costly = found("nodes", GrowSpec(controllers=(cost,)), work)["admission"]
    turned = found("teams", GrowSpec(controllers=(turns,)), work)["admission"]
    assert (costly, turned) == (pytest.approx(3.0 * 30 / 31), pytest.approx(6.0 * 60 / 61))
    assert "admission" not in found("data", GrowSpec(controllers=(turns,)), work)


def test_larger_jobs_keep_less_of_their_speed():
    # Twice the size keeps 0.8 of it a GPU.
    work = Work(jobs=40, every_s=60.0, runs_s=60.0, falls=0.32192809, is_run=True)
    assert found("job-size", GrowSpec(), work)["step-efficiency"] == pytest.approx(2.0)


def test_spares_and_hands_run_out_where_a_count_by_hand_says():
    # 32 nodes have 0.32 faults a day, half of which take hands and a day.
    law = FailureLaw(
        name="planted",
        faults_per_1000_node_days=10.0,
        repair_h_mean=24.0,
        away_s=0.0,
        causes={"gpu": 1.0, "host": 1.0},
        transient_causes=("host",),
    )
    staff = Operations(crew=2.0, repairs_per_person_day=0.24, spares=1)
    made = found("nodes", GrowSpec(operations=staff), failures=law)
    assert made["operations"] == pytest.approx(3.0)
    # With one spare, 0.1486 nodes may be down on average: 1 - e^-m (1 + m) is 1%. It fails, too.
    assert 1 - exp(-0.148555) * 1.148555 == pytest.approx(0.01, rel=1e-4)
    assert made["spares"] == pytest.approx((0.148555 / 0.005 - 1) / 32, rel=1e-4)
    cared = Operations(crew=2.0, nodes_per_person_most=40.0)
    assert found("nodes", GrowSpec(operations=cared)) == {"operations": 2.5}


def test_money_runs_out_with_the_nodes_and_their_energy():
    # 256 GPUs at $2 an hour, and 400 kW at $0.1: $552 an hour.
    spec = fleet().spec
    price = Price(kind="owned", usd_micros_per_hour=UsdMicros(2_000_000), basis="stated")
    priced = replace(spec, pools=(replace(spec.pools[0], price=price),))
    grow = GrowSpec(limits=GrowthLimits(usd_per_month_most=552.0 * 730 * 3))
    assert breaks(Plan(axis="nodes", spec=priced, grow=grow))["money"] == pytest.approx(3.0)
    assert "money" not in breaks(Plan(axis="jobs", spec=priced, grow=grow))


def test_samples_fill_a_store():
    # 32 x (100 + 8 x 25) series every 10 s are 960 samples a second.
    stated = Monitoring(series_per_node=100.0, series_per_gpu=25.0, interval_s=10.0)
    intake = Monitoring(
        series_per_node=100.0, series_per_gpu=25.0, interval_s=10.0, samples_per_s_most=1_920.0
    )
    store = Monitoring(
        series_per_node=100.0,
        series_per_gpu=25.0,
        interval_s=10.0,
        retention_days=10.0,
        bytes_per_sample=2.0,
        store_tb=960 * 86_400 * 10 * 2 * 4 / 10**12,
    )
    assert found("nodes", GrowSpec(monitoring=stated)) == {}
    assert found("nodes", GrowSpec(monitoring=intake)) == {"monitoring": 2.0}
    assert found("all", GrowSpec(monitoring=store)) == {"monitoring": 4.0}


def test_requests_fill_the_gpus_unless_nodes_come_with_them():
    # 64 requests a second keep 32 replicas of 2 GPUs busy, of 256 GPUs.
    chat = ServiceLoad(
        name="chat", model="x", qps=64.0, input_tokens=1, output_tokens=1, replicas_most=96
    )
    grow, replica = GrowSpec(services=(chat,)), Replica(2.0, 2)
    assert found("traffic", grow, replica=replica) == {"serving": 3.0}
    free = GrowSpec(
        services=(ServiceLoad(name="chat", model="x", qps=64.0, input_tokens=1, output_tokens=1),)
    )
    assert found("traffic", free, replica=replica) == {"serving": 4.0}
    assert found("all", free, replica=replica) == {}
