"""`tenfold sim`: what a restart costs is stated where a result depends on it."""

import json
from pathlib import Path

import pytest

from tenfold.cli.main import main

EXAMPLE = Path(__file__).parents[3] / "examples" / "sixteen-gpus-three-teams"
FILES = ["--fleet", str(EXAMPLE / "fleet.toml"), "--jobs", str(EXAMPLE / "jobs.csv")]
ASSUMED = "assumed: a job loses 300 s on each restart (--restart-cost-s)"

Captured = pytest.CaptureFixture[str]


def test_a_preemption_costs_restart_time_by_default_and_the_output_says_so(capsys: Captured):
    assert main(["sim", "run", *FILES, "--policy", "las"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == ASSUMED
    assert main(["sim", "run", *FILES, "--policy", "las", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["assumptions"] == [ASSUMED]
    assert found["restart_cost_s"] == 300
    assert found["gpu_hours_lost"] > 0


@pytest.mark.parametrize("words", [["--policy", "fifo"], ["--policy", "las", "--restart-cost-s=0"]])
def test_nothing_is_assumed_where_no_job_restarts_or_the_cost_is_set(
    words: list[str], capsys: Captured
):
    assert main(["sim", "run", *FILES, *words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["assumptions"] == []


def test_a_comparison_states_the_assumption_once(capsys: Captured):
    words = ["--policy", "fifo,las,srtf", "--workers", "1"]
    assert main(["sim", "compare", *FILES, *words]) == 0
    assert capsys.readouterr().err.count(ASSUMED) == 1
