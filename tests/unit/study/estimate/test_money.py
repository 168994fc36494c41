"""`tenfold estimate month` and `own-or-rent`: bills that add up, and when to buy."""

import json
from pathlib import Path

import pytest

from tenfold.cli.main import main

EXAMPLE = {"gpus": 35_000, "storage": 5_000, "network": 3_000, "tooling": 2_000}
LINES = [word for name, usd in EXAMPLE.items() for word in ("--line", f"{name}={usd}")]
FLEET = """
[[site]]
name = "here"
pue = 1.2
usd_per_kwh = 0.1

[[pool]]
name = "rented"
accelerator = "H100"
nodes = 1
gpus_per_node = 8
price = { kind = "reserved", usd_per_gpu_hour = 2 }

[[pool]]
name = "bought"
accelerator = "H100"
nodes = 1
gpus_per_node = 8
power_kw_per_node = 10
price = { kind = "owned", usd_per_gpu_hour = 1 }

[[tier]]
name = "disks"
class = "hot"
capacity_tb = 100
usd_per_tb_month = 30
"""
OWN = ["--accelerator", "H100", "--capital-usd", "40000", "--power-kw", "1.2"]
OWN += ["--usd-per-kwh", "0.1", "--rent-usd-per-hour", "3", "--running-usd-per-year", "2000"]
FULL = [*OWN, "--salvage-percent", "10", "--interest-percent", "8"]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "fleet.toml").write_text(FLEET)
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str, str]:
        status = main(["estimate", *words])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.fixture
def ask(run):
    def call(*words: str) -> dict:
        status, out, err = run(*words, "--json")
        assert (status, err) == (0, "")
        return json.loads(out)

    return call


def test_a_month_of_eight_h100_is_45000_dollars(ask, run):
    found = ask("month", *LINES, "--gain-percent", "15")
    assert found["total_usd"] == 45_000
    assert {one["name"]: one["usd"] for one in found["lines"]} == EXAMPLE
    assert found["same_work_saved_usd"] == 5_869.565217
    assert found["extra_work_usd"] == 6_750
    text = run("month", *LINES, "--gain-percent", "15")[1]
    for words in ("45,000.00", "$5,869.57", "$6,750.00", "15% better utilisation"):
        assert words in text


def test_without_a_gain_none_is_priced(ask, run):
    assert ask("month", *LINES)["extra_work_usd"] is None
    assert "utilisation" not in run("month", *LINES)[1]


def test_a_fleet_pays_for_pools_tiers_and_the_energy_of_what_it_owns(ask):
    found = ask("month", "--fleet", "fleet.toml", "--line", "network=100")
    lines = {one["name"]: one["usd"] for one in found["lines"]}
    assert lines == pytest.approx(
        {
            "pool rented": 8 * 2 * 730,
            "pool bought": 8 * 1 * 730,
            "energy bought": 10 * 1.2 * 730 * 0.1,
            "tier disks": 3000,
            "network": 100,
        }
    )
    assert found["total_usd"] == pytest.approx(sum(lines.values()))
    dearer = ask("month", "--fleet", "fleet.toml", "--line", "tier disks=5k")
    assert {one["name"]: one["usd"] for one in dearer["lines"]}["tier disks"] == 5000


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([], "empty-bill"),
        (["--line", "gpus"], "bad-line"),
        (["--line", "=5"], "bad-line"),
        (["--line", "gpus=many"], "bad-number"),
    ],
)
def test_a_bill_that_cannot_be_read_says_how_to_write_it(run, words: list[str], code: str):
    status, out, err = run("month", *words, "--json")
    assert (status, out) == (2, "")
    assert json.loads(err)["error"]["code"] == code


def test_owning_beats_renting_above_the_break_even(ask):
    found = ask("own-or-rent", *FULL)
    assert found["always_usd_per_hour"] == pytest.approx(1.50, abs=0.01)
    assert found["load_usd_per_hour"] == pytest.approx(0.12)
    assert found["break_even"] == pytest.approx(0.52, abs=0.005)
    for busy, own in (("60", True), ("45", False)):
        assert ask("own-or-rent", *FULL, "--busy-percent", busy)["own"] is own


def test_months_to_pay_back_end_with_the_life(ask, run):
    rows = {row["busy"]: row["payback_months"] for row in ask("own-or-rent", *FULL)["by_busy"]}
    assert rows[0.25] is None
    assert 12 < rows[1.0] < rows[0.75] < 48
    assert "never" in run("own-or-rent", *FULL)[1]


def test_rent_and_power_come_from_the_facts_and_are_noted(ask):
    found = ask("own-or-rent", "--accelerator", "H100", "--capital-usd", "40000")
    assert found["rent_usd_per_hour"] > 0
    assert found["load_usd_per_hour"] > 0
    text = " ".join(found["notes"])
    for words in ("median on-demand price", "kW under load assumed", "no interest included"):
        assert words in text


def test_owning_that_never_pays_says_so(ask, run):
    dear = ["400000" if word == "40000" else word for word in OWN]
    assert ask("own-or-rent", *dear)["break_even"] > 1
    assert "owning is never cheaper" in run("own-or-rent", *dear)[1]
    powerless = ["0.1" if word == "3" else word for word in OWN]
    assert ask("own-or-rent", *powerless)["break_even"] is None
    assert "power alone" in run("own-or-rent", *powerless)[1]


def test_a_part_without_a_price_wants_a_rent(run):
    words = ["own-or-rent", "--accelerator", "Jetson-Orin-NX-16G", "--capital-usd", "800"]
    status, _, err = run(*words, "--json")
    assert status == 2
    assert json.loads(err)["error"]["code"] == "no-price"
