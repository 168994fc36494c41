"""The examples of growth: their commands, their histories, and the same bytes again."""

import csv
from pathlib import Path

import pytest

from benchmarks.grow.examples import EXAMPLES, HASH_SEEDS, ROOT, run_example

FOLDER = ROOT / "examples"
DAY_S = 86_400
QUICK = ("one-rack", "inference-startup")
HISTORIES = sorted(FOLDER.glob("*/history.csv"))


@pytest.mark.parametrize("name", QUICK)
def test_an_example_gives_the_same_bytes_whatever_the_hash_seed(name: str):
    first, again = (run_example(name, seed) for seed in HASH_SEEDS)
    assert first.printed == again.printed
    assert first.page == again.page


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_readme_of_an_example_shows_the_command_that_is_measured(name: str):
    command = EXAMPLES[name].format(f"examples/{name}")
    assert f"$ tenfold grow {command}\n" in (FOLDER / name / "README.md").read_text()


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.parent.name)
def test_a_history_spans_two_weeks_and_says_when_jobs_started(path: Path):
    with path.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    submitted = [float(row["submit_s"]) for row in rows]
    assert max(submitted) - min(submitted) >= 14 * DAY_S
    assert all(float(row["start_s"]) >= float(row["submit_s"]) for row in rows)


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.parent.name)
def test_a_simulated_history_is_said_to_be_simulated(path: Path):
    assert "The history is simulated" in (path.parent / "README.md").read_text()


def test_the_histories_are_there():
    assert [path.parent.name for path in HISTORIES] == ["bank-three-sites", "research-256"]
