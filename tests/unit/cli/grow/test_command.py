"""`tenfold grow`: what it prints, and how it ends."""

import json
from pathlib import Path

import pytest

from tenfold.cli.grow.progress import noting
from tenfold.cli.main import main
from tenfold.cli.output import console

FLEET = """
name = "hall"

[[site]]
name = "hall"
power_kw = 708
rack_kw = 70
pue = 1.25

[[fabric]]
name = "net"
kind = "rail-optimised"
nodes_per_leaf = 16

[[pool]]
name = "h100"
accelerator = "H100"
nodes = 32
gpus_per_node = 8
nodes_per_rack = 4
power_kw_per_node = 10

[[tier]]
name = "fast"
class = "hot"
shelves = 4
"""
MEASURED = """layer,resource,factor,usage,limit,unit
monitoring,prometheus,1,0.1,0.5,cores
monitoring,prometheus,2,0.2,0.5,cores
monitoring,prometheus,3,0.3,0.5,cores
"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    # Whoever runs the tests may have a narrow terminal, and an earlier test have asked for one.
    monkeypatch.delenv("COLUMNS", raising=False)
    console.cache_clear()

    def call(*words: object) -> tuple[int, str, str]:
        status = main([str(word) for word in words])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    yield call
    console.cache_clear()


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    path = tmp_path / "fleet.toml"
    path.write_text(FLEET)
    return path


def test_the_result_names_the_first_break_and_what_comes_next(run, fleet: Path):
    status, out, err = run("grow", fleet, "--axis", "nodes")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("hall: nodes up to 10x; not calibrated: ")
    assert lines[1] == "first to break: Site power, site hall, at 1.75x nodes"
    assert out.index("Site power") < out.index("Switch ports")


def test_a_layer_without_evidence_is_unknown_and_says_what_it_needs(run, fleet: Path):
    _, out, _ = run("grow", fleet, "--axis", "nodes")
    assert (
        "not checked: Floor space (needs `floor_racks` under `[facility]` in the grow file)" in out
    )
    assert "not checked: Storage reads (needs `--profiles` with a job history" in out


def test_a_factor_that_is_required_sets_the_status(run, fleet: Path):
    words = ("grow", fleet, "--axis", "nodes", "--require", "1.5x")
    status, out, _ = run(*words)
    assert status == 1
    last = out.splitlines()[-1]
    assert last.startswith("required 1.5x: unknown: ")
    assert "Floor space not checked (needs `floor_racks` under `[facility]` in the " in last
    assert last.endswith("; `--allow-unknown` accepts this")
    status, out, _ = run(*words, "--allow-unknown")
    assert status == 0
    assert out.splitlines()[-1].startswith("required 1.5x: met for the limits checked; ")
    status, out, _ = run("grow", fleet, "--axis", "nodes", "--require", "2x")
    assert status == 1
    assert "required 2x: not met" in out


def test_only_what_could_break_along_the_axis_keeps_a_requirement_from_being_judged(
    run, fleet: Path
):
    _, out, _ = run("grow", fleet, "--axis", "nodes", "--require", "1.5x")
    last = out.splitlines()[-1]
    # A budget that was not set cannot be exceeded, and new nodes shorten the queue.
    assert "not checked: Budget" in out
    assert not any(name in last for name in ("Budget", "Spare nodes", "Queue wait", "Serving"))
    status, out, _ = run("grow", fleet, "--axis", "traffic", "--require", "1.5x")
    wanted = "Serving not checked (needs `[[service]]` in the grow file); "
    last = f"required 1.5x: unknown: {wanted}`--allow-unknown` accepts this"
    assert (status, out.splitlines()[-1]) == (1, last)


def test_json_holds_the_question_the_answer_and_what_was_required(run, fleet: Path):
    words = ("grow", fleet, "--axis", "nodes", "--to", "2,4", "--require", "2", "--json")
    status, out, err = run(*words)
    assert (status, err) == (1, "")
    report = json.loads(out)
    assert report["required"] == {"factor": 2.0, "verdict": "not met", "met": False}
    assert report["question"]["to"] == [2.0, 4.0]
    assert report["answer"]["first"]["layer"] == "site-power"
    missing = {"layer": "compute", "resource": "", "title": "GPU time", "needs": ""}
    assert {**missing, "could_break": False} in report["answer"]["unknown"]


def test_two_runs_give_the_same_bytes(run, fleet: Path):
    assert run("grow", fleet, "--json") == run("grow", fleet, "--json")


def test_what_was_measured_is_a_layer_of_its_own(run, fleet: Path, tmp_path: Path):
    table = tmp_path / "measured.csv"
    table.write_text(MEASURED)
    _, out, _ = run("grow", fleet, "--axis", "traffic", "--measured", table, "--json")
    row = json.loads(out)["answer"]["rows"][0]
    assert (row["layer"], row["resource"], row["grade"]) == ("monitoring", "prometheus", "measured")
    assert row["k"] == pytest.approx(5.0)
    assert row["symptom"] == "prometheus: 0.5 of 0.5 cores"
    assert row["relief"]["sentence"] == "raise prometheus to 1 cores (up from 0.5)"


def test_a_measurement_without_a_limit_leaves_its_layer_unknown(run, fleet: Path, tmp_path: Path):
    table = tmp_path / "measured.csv"
    table.write_text("layer,resource,factor,usage\nmonitoring,prometheus,1,0.1\n")
    _, out, _ = run("grow", fleet, "--axis", "traffic", "--measured", table)
    assert "not checked: Monitoring (needs `limit` for prometheus in `--measured`)" in out


def test_a_mix_stands_in_for_a_history(run, fleet: Path):
    status, out, _ = run(
        "grow", fleet, "--axis", "jobs", "--mix", "research", "--load", 0.2, "--to", "1.2"
    )
    assert status == 0
    assert "no job history: 14 days generated from mix `research`" in out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--to", "2,many"), "not-a-factor"),
        (("--to", "0.5"), "factor-out-of-range"),
        (("--require", "lots"), "not-a-factor"),
        (("--jobs", "a.csv", "--mix", "b"), "jobs-and-mix"),
        (("--axis", "colour"), "usage"),
    ],
)
def test_what_cannot_be_asked_is_refused(run, fleet: Path, words: tuple[str, ...], code: str):
    status, out, err = run("grow", fleet, *words, "--json")
    assert (status, out) == (2, "")
    assert json.loads(err)["error"]["code"] == code


def test_a_narrow_terminal_gets_a_table_without_broken_words(
    run, fleet: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "80")
    console.cache_clear()
    _, out, _ = run("grow", fleet, "--axis", "nodes")
    console.cache_clear()
    bottlenecks = out.split("\nwith all fixes")[0].splitlines()[2:]
    assert max(map(len, bottlenecks)) <= 80
    assert "Rack power" in out
    assert "(published)" in out
    assert "$/month: ~" in out


def test_layers_that_stand_everything_are_one_line(run, fleet: Path):
    _, out, _ = run("grow", fleet, "--axis", "data", "--to", "1.1")
    assert "not changed by this axis: Switch ports, Site power, Rack power\n" in out
    _, out, _ = run("grow", fleet, "--axis", "nodes", "--to", "1.1")
    assert "not changed by this axis: Rack power\n" in out


RACK = """
name = "rack"

[[pool]]
name = "h100"
accelerator = "H100"
nodes = 4
gpus_per_node = 8
"""


def test_leave_for_what_is_unknown_needs_a_requirement(run, fleet: Path):
    status, _, err = run("grow", fleet, "--allow-unknown")
    assert status == 2
    assert "has no effect without `--require`" in err


def test_a_break_based_on_assumed_values_is_named_and_not_called_met(run, tmp_path: Path):
    rack = tmp_path / "rack.toml"
    rack.write_text(RACK)
    status, out, _ = run("grow", rack, "--axis", "nodes", "--require", "3x")
    assert status == 1
    ports = "Switch ports, fabric main-fabric"
    assert out.splitlines()[1] == (
        f"first to break, based on assumed values: {ports}, at 2.00x nodes"
    )
    assert out.splitlines()[-1].startswith(
        f"required 3x: unknown: {ports} (assumed) breaks at 2.00x; "
    )
    status, out, _ = run("grow", rack, "--axis", "nodes", "--require", "3x", "--count-assumed")
    assert (status, out.splitlines()[-1]) == (1, "required 3x: not met")


def test_an_assumed_range_that_starts_below_today_is_said_as_such(run, tmp_path: Path):
    rack = tmp_path / "rack.toml"
    rack.write_text(RACK.replace("nodes = 4", "nodes = 5"))
    _, out, _ = run("grow", rack, "--axis", "nodes", "--require", "1.2x")
    assert "(assumed) may be over its limit today; " in out.splitlines()[-1]


def test_a_layer_that_is_over_its_limit_today_is_not_called_not_applicable(run, tmp_path: Path):
    """Jobs that request 150% of the GPU time, along an axis that adds nodes with them."""
    rack, jobs = tmp_path / "rack.toml", tmp_path / "jobs.csv"
    rack.write_text(RACK)
    rows = "".join(f"j{n},{n * 3600},32,5400\n" for n in range(50))
    jobs.write_text(f"job_id,submit_s,gpus,duration_s\n{rows}")
    _, out, _ = run("grow", rack, "--jobs", jobs, "--axis", "nodes", "--to", "2")
    assert "already over its limit: GPU time" in out
    not_applicable = [line for line in out.splitlines() if line.startswith("not applicable: ")]
    assert not any("GPU time" in line for line in not_applicable)


def test_pools_whose_racks_are_not_described_are_named(run, fleet: Path):
    pool = '[[pool]]\nname = "viz"\naccelerator = "L40S"\nnodes = 2\ngpus_per_node = 4\n'
    fleet.write_text(f"{fleet.read_text()}\n{pool}")
    _, out, _ = run("grow", fleet, "--axis", "nodes")
    assert "not checked: Rack power (needs `nodes_per_rack` for pool `viz`)" in out


def test_a_layer_of_which_one_part_is_unknown_names_the_part(run, tmp_path: Path):
    two = tmp_path / "two.toml"
    sites = '[[site]]\nname = "a"\npower_kw = 100\n[[site]]\nname = "b"\n'
    pools = "".join(
        f'[[pool]]\nname = "{site}"\nsite = "{site}"\naccelerator = "H100"\n'
        "nodes = 4\ngpus_per_node = 8\npower_kw_per_node = 10\n"
        for site in "ab"
    )
    two.write_text(f'name = "two"\n{sites}{pools}')
    _, out, _ = run("grow", two, "--axis", "nodes")
    assert "Site power, site" in out
    assert "not checked: Site power, site b (needs `power_kw` for site `b`)" in out
    _, out, _ = run("grow", two, "--axis", "nodes", "--require", "1.1x")
    assert "Site power, site b not checked (needs " in out.splitlines()[-1]


def test_progress_is_a_line_at_times_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]):
    seconds = iter([3.0, 11.0, 14.0, 30.0])
    done = noting("simulation runs", lambda: next(seconds))
    for many in (1, 20, 25, 1_500):
        done(many)
    assert capsys.readouterr().err.splitlines() == [
        "note: 20 simulation runs done after 11 s",
        "note: 1,500 simulation runs done after 30 s",
    ]
