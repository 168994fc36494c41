"""Policies side by side: what is run, what is scored, and what a failure costs."""

import json
import sys
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tenfold.cli.main import main
from tenfold.compose.inputs import SimFiles
from tenfold.study.compare.cell import FIGURES, lost_cell, run_cell
from tenfold.study.compare.compare import CompareRequest, Comparison, cells_of, compare
from tenfold.study.parallel import process_map

FLEET = (
    '[[pool]]\nname = "h100"\naccelerator = "H100"\nnodes = 2\ngpus_per_node = 8\n'
    'price = { kind = "on-demand", usd_per_gpu_hour = 2 }\n'
)
JOBS = "job_id,team,submit_s,duration_s,gpus\n" + "".join(
    f"j{n},{'vision' if n % 3 else 'speech'},{n * 60},{36_000 if n % 5 == 0 else 600},"
    f"{16 if n % 5 == 0 else 2}\n"
    for n in range(40)
)


@pytest.fixture
def files(tmp_path: Path) -> SimFiles:
    (tmp_path / "fleet.toml").write_text(FLEET)
    (tmp_path / "jobs.csv").write_text(JOBS)
    return SimFiles(fleet=tmp_path / "fleet.toml", jobs=tmp_path / "jobs.csv")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    def call(*words: object) -> tuple[int, str, str]:
        status = main(["sim", *(str(word) for word in words)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def request(files: SimFiles, *policies: str, seeds: int = 1) -> CompareRequest:
    return CompareRequest(
        fleets=(files.fleet,), jobs=(files.jobs,), policies=policies, seeds=seeds, base=files
    )


def compared(question: CompareRequest, workers: int = 1) -> Comparison:
    return compare(question, partial(process_map, workers=workers), lambda _: None)


def test_every_policy_meets_every_fleet_and_every_seed(files: SimFiles):
    drawn = SimFiles(fleet=files.fleet, jobs=files.jobs, failures="rsc-1")
    cells = cells_of(request(drawn, "fifo", "las", seeds=3))
    assert [(cell.files.policy, cell.files.settings.seed) for cell in cells] == [
        (policy, seed) for policy in ("fifo", "las") for seed in range(3)
    ]


def test_where_nothing_is_drawn_one_seed_stands_for_all(files: SimFiles):
    answer = compared(request(files, "fifo", seeds=5))
    assert len(answer.cells) == 1
    assert any("so one seed was run" in note for note in answer.notes)


def test_processes_give_what_one_process_gives(files: SimFiles):
    question = request(files, "fifo", "sjf", "las")
    assert compared(question, workers=2) == compared(question)


def test_the_first_policy_is_what_the_others_are_scored_against(files: SimFiles):
    answer = compared(request(files, "fifo", "srsf"))
    waits = {row.policy: row.figures["avg_wait_s"].mean for row in answer.rows}
    [score] = [one for one in answer.scorecard if one.figure == "avg_wait_s"]
    assert (score.policy, score.before, score.after) == ("srsf", waits["fifo"], waits["srsf"])
    assert score.change == pytest.approx(waits["srsf"] / waits["fifo"] - 1)
    assert score.better is (waits["srsf"] < waits["fifo"])
    assert {one.figure for one in answer.scorecard} >= {"gpu_utilization", "goodput", "usd"}


def test_a_fleet_that_cannot_be_read_leaves_the_others_alone(files: SimFiles, tmp_path: Path):
    question = CompareRequest(
        fleets=(tmp_path / "none.toml", files.fleet),
        jobs=(files.jobs,),
        policies=("fifo",),
        base=files,
    )
    lost, good = compared(question).cells
    assert lost.error is not None
    assert lost.error.code == "no-such-file"
    assert good.figures is not None
    assert set(good.figures) == set(FIGURES)


def test_spread_is_that_of_the_seeds(files: SimFiles):
    drawn = SimFiles(fleet=files.fleet, jobs=files.jobs, failures="infinitehbd")
    answer = compared(request(drawn, "fifo", seeds=4))
    values = [cell.figures["avg_jct_s"] for cell in answer.cells if cell.figures]
    spread = answer.rows[0].figures["avg_jct_s"]
    assert answer.rows[0].seeds == len(values) == 4
    assert spread.mean == pytest.approx(sum(values) / 4)
    assert (spread.least, spread.most) == (min(values), max(values))


def test_a_lost_run_says_so(files: SimFiles):
    [cell] = cells_of(request(files, "fifo"))
    lost = lost_cell(cell, "its machine went away")
    assert lost.error is not None
    assert lost.error.code == "cell-lost"
    assert run_cell(cell).error is None


def test_the_command_prints_json_a_table_and_a_page(run, files: SimFiles, tmp_path: Path):
    html = tmp_path / "compare.html"
    words = ("compare", "--fleet", files.fleet, "--jobs", files.jobs, "--policy", "fifo,srsf")
    status, out, err = run(*words, "--html", html, "--json", "--workers", 1)
    assert status == 0
    answer = json.loads(out)
    assert list(answer) == ["baseline", "cells", "rows", "scorecard", "notes", "recorded"]
    assert "curves" not in answer["cells"][0]
    assert "report written" in err
    pictures = ElementTree.fromstring(html.read_text()).iter("{http://www.w3.org/2000/svg}svg")
    assert len(list(pictures)) == 4
    status, out, _ = run(*words, "--workers", 1)
    assert status == 0
    assert "Change relative to `fifo`" in out
    assert "*" in out
    assert run(*words, "--html", html)[0] == 2


def test_a_failed_run_ends_with_1_beside_the_answers(run, files: SimFiles, tmp_path: Path):
    status, out, _ = run(
        "compare", "--fleet", files.fleet, tmp_path / "no.toml", "--jobs", files.jobs
    )
    assert status == 1
    assert "2 runs failed" in out
    assert "[no-such-file]" in out
    assert "tenfold" in out


def test_an_unknown_policy_is_refused_before_anything_runs(run, files: SimFiles):
    words = ("compare", "--fleet", files.fleet, "--jobs", files.jobs)
    assert "unknown policy" in run(*words, "--policy", "fifo,lifo")[2]
    assert run(*words, "--policy", ",")[0] == 2
    assert run(*words, "--seeds", 0)[0] == 2


def test_ray_is_asked_for_only_where_it_is_installed(
    run, files: SimFiles, monkeypatch: pytest.MonkeyPatch
):
    # It may be installed here: then it is made to look as if it were not.
    monkeypatch.setitem(sys.modules, "ray", None)
    status, _, err = run(
        "compare", "--fleet", files.fleet, "--jobs", files.jobs, "--ray", "127.0.0.1:1"
    )
    assert status == 2
    assert "tenfold[ray]" in err


def test_a_run_is_drawn_as_a_page(run, files: SimFiles, tmp_path: Path):
    html = tmp_path / "run.html"
    words = ("run", "--fleet", files.fleet, "--jobs", files.jobs, "--policy", "las")
    status, out, _ = run(*words, "--html", html, "--json")
    assert status == 0
    figures = json.loads(out)
    assert figures["fragmentation"] >= 0
    assert figures["fairness"]["rho_mean"] > 0
    assert figures["usd"] == pytest.approx(16 * 2 * figures["makespan_s"] / 3600)
    pictures = ElementTree.fromstring(html.read_text()).iter("{http://www.w3.org/2000/svg}svg")
    assert len(list(pictures)) == 5
    status, _, err = run(*words, "--html", html)
    assert (status, "already exists" in err) == (2, True)
    assert run(*words, "--html", html, "--force")[0] == 0


def test_figures_that_take_a_closer_look_are_null_unless_asked_for(run, files: SimFiles):
    words = ("run", "--fleet", files.fleet, "--jobs", files.jobs, "--json")
    plain, closer = json.loads(run(*words)[1]), json.loads(run(*words, "--detail")[1])
    assert (plain["fairness"], plain["fragmentation"]) == (None, None)
    assert closer["fairness"]["late_share"] >= 0
    assert closer["kwh"] == plain["kwh"] > 0
    assert closer["goodput"] == plain["goodput"]


def test_the_table_of_a_run_has_charts_and_nothing_on_standard_error(run, files: SimFiles):
    status, out, err = run("run", "--fleet", files.fleet, "--jobs", files.jobs)
    assert (status, err) == (0, "")
    assert "allocated GPUs over time (of 16)" in out
    assert "up to 1 h" in out
    assert "fleet cost" in out


STARTED = "job_id,submit_s,start_s,duration_s,gpus\n" + "".join(
    f"j{n},{n * 60},{n * 60 + 7_200},600,2\n" for n in range(10)
)


@pytest.mark.parametrize("words", [("run",), ("compare", "--policy", "fifo,sjf")])
def test_a_trace_with_starts_shows_what_was_recorded(run, files: SimFiles, words: tuple[str, ...]):
    files.jobs.write_text(STARTED)
    verb, *more = words
    status, out, _ = run(verb, "--fleet", files.fleet, "--jobs", files.jobs, *more)
    assert status == 0
    assert "recorded" in out
    assert "2.0 h" in out
    _, out, _ = run(verb, "--fleet", files.fleet, "--jobs", files.jobs, *more, "--json")
    found = json.loads(out)["recorded"]
    wait_s = found["avg_wait_s"] if verb == "run" else found[0]["figures"]["avg_wait_s"]["mean"]
    assert wait_s == 7_200


def test_a_trace_without_starts_shows_no_such_column(run, files: SimFiles):
    _, out, _ = run("run", "--fleet", files.fleet, "--jobs", files.jobs)
    assert "recorded" not in out
    _, out, _ = run("compare", "--fleet", files.fleet, "--jobs", files.jobs, "--json")
    assert json.loads(out)["recorded"] == []
