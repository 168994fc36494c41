"""What a run costs, against sums done by hand."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from tenfold.compose.fleet import load_fleet
from tenfold.model.ids import PoolId
from tenfold.sim.measure.meters import Summary
from tenfold.study.sim.bill import bill

RENTED = """
[[site]]
name = "here"
pue = 1.5
usd_per_kwh = 0.2

[[pool]]
name = "h100"
accelerator = "H100"
nodes = 4
gpus_per_node = 8
power_kw_per_node = 10
price = { kind = "on-demand", usd_per_gpu_hour = 2.5 }
"""
RUN = Summary(
    jobs=1,
    finished=1,
    refused=0,
    avg_jct_s=0,
    p50_jct_s=0,
    p99_jct_s=0,
    avg_wait_s=0,
    makespan_s=36_000,
    gpu_utilization=0.5,
    preemptions=0,
    failures=0,
    gpu_hours=160,
    gpu_hours_lost=10,
    goodput=0.9375,
    jain=1,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "fleet.toml"
    path.write_text(RENTED)
    return path


def test_every_gpu_is_paid_for_from_the_first_submission_to_the_last_end(file: Path):
    costs = bill(load_fleet(file), RUN)
    assert costs.usd == 32 * 10 * 2.5
    assert costs.usd_per_gpu_hour == pytest.approx(800 / 150)


def test_idle_nodes_draw_some_power_and_cooling_is_counted(file: Path):
    costs = bill(load_fleet(file), RUN)
    assert costs.kwh == pytest.approx(4 * 10 * 10 * 1.5 * (0.12 + 0.88 * 0.5))
    full = bill(load_fleet(file), replace(RUN, gpu_utilization=1.0))
    assert full.kwh == pytest.approx(4 * 10 * 10 * 1.5)
    assert "12%" in costs.assumed[0]


def test_energy_is_part_of_the_dollars_only_where_the_fleet_is_owned(file: Path):
    file.write_text(RENTED.replace("on-demand", "owned"))
    costs = bill(load_fleet(file), RUN)
    assert costs.usd == pytest.approx(800 + costs.kwh * 0.2)


def test_without_a_price_there_are_no_dollars(file: Path):
    spec = load_fleet(file)
    costs = bill(replace(spec, pools=(replace(spec.pools[0], price=None),)), RUN)
    assert (costs.usd, costs.usd_per_gpu_hour) == (None, None)
    assert costs.kwh > 0


def test_a_pool_without_a_price_is_named(file: Path):
    spec = load_fleet(file)
    spare = replace(spec.pools[0], id=PoolId("spare"), price=None)
    said = bill(replace(spec, pools=(*spec.pools, spare)), RUN).assumed
    assert any("`spare`" in one for one in said)
    assert len(said) == 3


def test_a_price_that_the_file_does_not_state_is_an_assumption(file: Path):
    file.write_text(RENTED.split("price", maxsplit=1)[0])
    costs = bill(load_fleet(file), RUN)
    assert costs.usd is not None
    assert any("$" in one and "`h100`" in one for one in costs.assumed)
