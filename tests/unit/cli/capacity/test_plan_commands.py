"""`tenfold capacity plan`, `history`, `triggers` and `review` on the example of a bank."""

import json
from pathlib import Path

import pytest

from tenfold.cli.main import main

pytest.importorskip("scipy")
Printed = pytest.CaptureFixture[str]
BANK = Path(__file__).parents[4] / "examples" / "bank-three-sites"
RACK = BANK.parent / "one-rack"
FLEET = [str(BANK / "fleet.toml"), "--grow", str(BANK / "grow.toml")]


def plan(*more: str, shorter: Path | None = None) -> list[str]:
    words = ["capacity", "plan", *FLEET, "--axis", "nodes", *more]
    return words if shorter is None else [*words, "--plan", str(shorter)]


@pytest.fixture
def short(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text("[plan]\nmonths = 12\nscenarios = 2\ndraws = 50\n")
    return path


def test_a_plan_prints_phases_costs_and_limits(short: Path, capsys: Printed):
    assert main(plan(shorter=short)) == 0
    text = capsys.readouterr().out
    for part in ("bank: 12 months from 2026-11-15", "What to order", "Expected cost"):
        assert part in text
    assert "owning is cheaper above" in text


def test_the_same_files_give_the_same_json(short: Path, capsys: Printed):
    printed: list[str] = []
    for _ in range(2):
        assert main(plan("--json", shorter=short)) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    answer = json.loads(printed[0])
    assert answer["fleet"] == "bank"
    assert answer["phases"]


def test_a_report_and_terraform_are_written_beside_it(tmp_path: Path, capsys: Printed):
    page, cloud = tmp_path / "plan.html", tmp_path / "rented.tf.json"
    stated = (BANK / "plan.toml").read_text().replace("months = 36", "months = 12")
    short = tmp_path / "plan.toml"
    short.write_text(stated)
    more = ("--html", str(page), "--terraform", str(cloud), "--failures", "llama-3")
    assert main(plan(*more, shorter=short)) == 0
    assert "Demand and capacity" in page.read_text()
    assert "aws_instance" in json.loads(cloud.read_text())["resource"]
    capsys.readouterr()
    assert main(plan(*more, shorter=short)) == 2


def test_twenty_nodes_without_ports_are_refused(capsys: Printed):
    words = ["capacity", "plan", str(RACK / "fleet.toml"), "--grow", str(RACK / "grow.toml")]
    assert main([*words, "--add", "h100=20"]) == 3
    assert "20 nodes need 160 ports, 40 free, 120 short" in capsys.readouterr().err
    assert main([*words, "--add", "h100=2"]) == 0
    assert main([*words, "--add", "h100"]) == 2


def test_a_plan_without_growth_is_refused(capsys: Printed):
    assert main(["capacity", "plan", str(RACK / "fleet.toml")]) == 2
    assert "no growth rate given" in capsys.readouterr().err


def test_a_history_becomes_a_series_to_forecast(tmp_path: Path, capsys: Printed):
    out = tmp_path / "demand.csv"
    words = ["capacity", "history", str(BANK / "history.csv"), "--by", "team", "--out", str(out)]
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found["groups"]] == ["fraud", "risk", "swiss-clients"]
    assert main(["capacity", "forecast", "--in", str(out), "--horizon", "4"]) == 0


def test_a_trigger_opens_a_proposal_once(tmp_path: Path, capsys: Printed):
    store = tmp_path / "proposals.jsonl"
    words = ["capacity", "triggers", str(BANK / "fleet.toml"), "--start", "2026-10-01"]
    words += ["--rules", str(BANK / "triggers.toml"), "--jobs", str(BANK / "history.csv")]
    for new in (1, 0):
        assert main([*words, "--store", str(store)]) == 0
        printed = capsys.readouterr()
        assert f"{new} new proposal" in printed.err
        assert "threshold 4 has no evidence" in printed.out
    assert len(store.read_text().splitlines()) == 1


def test_a_plan_is_reviewed_against_what_came(short: Path, tmp_path: Path, capsys: Printed):
    assert main(plan("--json", shorter=short)) == 0
    written, came = tmp_path / "plan.json", tmp_path / "demand.csv"
    written.write_text(capsys.readouterr().out)
    rows = "".join(f"all,{day * 86_400},600\n" for day in range(100))
    came.write_text(f"id,t,value\n{rows}")
    words = ["capacity", "review", str(written), "--history", str(came), "--own-gpus", "512"]
    assert main(words) == 0
    assert "own GPUs: 512" in capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["months"]) == 3
