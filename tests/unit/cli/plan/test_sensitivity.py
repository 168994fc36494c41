"""`tenfold plan --sensitivity`, notes about memory, and the choices that help lists."""

import json
from pathlib import Path

import pytest

from tenfold.cli.main import main
from tenfold.files.launch.formats import FORMATS
from tenfold.study.plan.train import tight_memory

FLEET = (
    '[[pool]]\nname = "h100"\naccelerator = "H100"\nnodes = 8\ngpus_per_node = 8\n'
    'price = { kind = "reserved", usd_per_gpu_hour = 2 }\n'
)
TRAIN = ["plan", "train", "--model", "llama-3.1-8b", "--fleet", "fleet.toml"]
RUN = [*TRAIN, "--tokens", "1T", "--deadline", "24d", "--sensitivity"]
SERVE = ["plan", "serve", "--model", "llama-3.1-8b", "--fleet", "fleet.toml", "--qps", "20"]
SERVE += ["--input-tokens", "500", "--output-tokens", "100", "--ttft-s", "1", "--tpot-s", "0.05"]
SERVE += ["--precision", "fp8"]
DRIVERS = {"model", "data", "concurrency", "latency", "cost"}
KEYS = ["driver", "stated", "holds_to", "factor", "step", "at_double", "sentence"]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "fleet.toml").write_text(FLEET)
    monkeypatch.chdir(tmp_path)

    def call(*words: object) -> tuple[int, str, str]:
        status = main([str(word) for word in words])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def test_a_training_plan_says_which_driver_moves_it_first(run, tmp_path: Path):
    status, out, err = run(*RUN, "--json", "--html", "plan.html")
    assert (status, err) == (0, "note: report written to plan.html\n")
    rows = json.loads(out)["sensitivity"]
    assert {row["driver"] for row in rows} == DRIVERS
    assert list(rows[0]) == KEYS
    assert rows[0]["factor"] == min(row["factor"] for row in rows if row["factor"])
    page = (tmp_path / "plan.html").read_text()
    assert "Sensitivity" in page
    assert rows[0]["sentence"] in page


def test_the_table_says_how_far_each_driver_may_move(run):
    status, out, _ = run(*RUN)
    assert status == 0
    for words in ("most sensitive to", "still OK at", "changes at", "deadline", "no budget set"):
        assert words in out
    assert "most sensitive to" not in run(*TRAIN)[1]


def test_runs_that_share_the_fleet_leave_less_room(run):
    alone, shared = (
        json.loads(run(*RUN, "--json", *more)[1])["sensitivity"]
        for more in ([], ["--concurrent-runs", 2])
    )
    assert {row["driver"] for row in alone} == DRIVERS
    # Half of the fleet cannot meet the deadline: there is no plan to move.
    assert shared == []


def test_a_serving_plan_counts_cost_where_it_is_limited(run, tmp_path: Path):
    words = [*SERVE, "--sensitivity", "--usd-per-hour-max", "5", "--html", "plan.html"]
    status, out, _ = run(*words, "--json")
    assert status == 0
    found = {row["driver"]: row for row in json.loads(out)["sensitivity"]}
    assert set(found) == DRIVERS
    assert found["cost"]["step"] == "nothing-fits"
    assert found["cost"]["stated"] is True
    assert "Sensitivity" in (tmp_path / "plan.html").read_text()


def test_without_the_flag_nothing_is_raised(run):
    report = json.loads(run(*SERVE, "--json")[1])
    assert list(report) == ["searched", "seconds", "plans", "why", "notes"]


def test_a_plan_that_nearly_fills_a_gpu_is_noted(run):
    assert tight_memory(75.0, 80.0) == ()
    [note] = tight_memory(77.0, 80.0)
    assert "77.0 of 80.0 GiB" in note
    report = json.loads(run(*TRAIN, "--gpus", 8, "--json")[1])
    full = report["plans"][0]["memory_gib"] > 0.95 * 79.6
    assert any("per GPU" in one for one in report["notes"]) == full


def test_help_lists_the_launch_formats(run):
    text = " ".join(run("plan", "train", "--help")[1].replace("│", " ").split())
    assert all(name in text for name in FORMATS)
