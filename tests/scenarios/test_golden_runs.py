"""Every scenario runs to its end and decides as it did when its golden run was reviewed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from patience import HANG_S
from scenarios.scenario import (
    EXAMPLES,
    GOLDEN,
    ROOT,
    SCENARIOS,
    SETTINGS,
    Scenario,
    golden_file,
    golden_text,
)
from tenfold.compose.inputs import SimFiles, prepare
from tenfold.compose.simulation import simulate

JOBS_BYTES_MOST = 150_000
REFRESH = "run .venv/bin/python tests/scenarios/refresh.py and review the difference"


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.folder)
def test_a_scenario_runs_as_it_did_when_it_was_reviewed(scenario: Scenario):
    assert golden_text(scenario) == golden_file(scenario).read_text(), REFRESH


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.folder)
def test_a_scenario_is_small_and_says_what_it_shows(scenario: Scenario):
    assert scenario.jobs.stat().st_size <= JOBS_BYTES_MOST
    text = (EXAMPLES / scenario.folder / "README.md").read_text()
    assert f"tenfold sim run --fleet examples/{scenario.folder}/" in text
    assert f"tenfold sim generate --fleet examples/{scenario.folder}/" in text
    page = (ROOT / "docs" / "reference" / "scenarios.md").read_text()
    assert f"`{scenario.folder}`" in page


def test_there_is_one_golden_run_for_each_scenario_and_no_other():
    assert sorted(GOLDEN.glob("*")) == sorted(golden_file(one) for one in SCENARIOS)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.folder)
def test_the_jobs_are_what_the_command_in_its_readme_generates(scenario: Scenario, tmp_path: Path):
    text = (EXAMPLES / scenario.folder / "README.md").read_text()
    [command] = [
        line
        for line in text.splitlines()
        if line.startswith("tenfold sim generate ") and "/jobs.csv" in line
    ]
    words = command.split()
    words[words.index("--out") + 1] = str(tmp_path / "jobs.csv")
    words = [word for word in words if word != "--force"]
    environment = {**os.environ, "PYTHONHASHSEED": str(len(scenario.folder))}
    subprocess.run(
        [sys.executable, "-m", *words],
        cwd=ROOT,
        check=True,
        capture_output=True,
        env=environment,
        timeout=HANG_S,
    )
    assert (tmp_path / "jobs.csv").read_bytes() == scenario.jobs.read_bytes()


def test_batch_work_fills_the_hours_that_people_leave():
    """Two kinds of work: most of the fleet is used, and people hardly wait for it."""
    scenario = next(one for one in SCENARIOS if one.folder == "batch-and-interactive")
    request = prepare(SimFiles(fleet=scenario.fleet, jobs=scenario.jobs, settings=SETTINGS)).request
    people = [job for job in request.jobs if job.qos == "interactive"]
    alone = simulate(replace(request, jobs=people)).summary
    both = simulate(request)
    assert alone.gpu_utilization < 0.3
    assert both.summary.gpu_utilization > 0.7
    assert both.teams["people"].avg_wait_s < 0.1 * both.teams["people"].avg_jct_s
