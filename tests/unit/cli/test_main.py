"""The command line: what it prints, where, and how it ends."""

import json
from pathlib import Path

import pytest

from tenfold.cli.main import main

SMALLEST = '[[pool]]\nname = "h100"\naccelerator = "H100"\nnodes = 4\ngpus_per_node = 8\n'


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    def call(*words: object) -> tuple[int, str, str]:
        status = main([str(word) for word in words])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "fleet.toml"
    path.write_text(SMALLEST)
    return path


def test_a_valid_file_exits_with_0(run, file: Path):
    status, out, err = run("fleet", "check", file)
    assert (status, err) == (0, "")
    assert "1 file checked: 0 errors, 0 warnings" in out


def test_errors_exit_with_2_and_are_json_with_json(run, file: Path):
    file.write_text(SMALLEST + "colour = 'red'\n")
    status, out, err = run("fleet", "check", file, "--json")
    assert (status, err) == (2, "")
    report = json.loads(out)
    assert list(report) == ["faults", "warnings"]
    [fault] = report["faults"]
    assert fault["file"] == str(file)
    assert (fault["line"], fault["code"]) == (6, "unknown-key")
    assert fault["message"]
    assert fault["hint"]


def test_a_warning_ends_with_0_unless_strict(run, file: Path):
    file.write_text(SMALLEST + "memory_gib_per_node = 128\n")
    assert run("fleet", "check", file)[0] == 0
    assert run("fleet", "check", file, "--strict")[0] == 1


def test_a_folder_is_checked_file_by_file(run, file: Path, tmp_path: Path):
    (tmp_path / "broken.yaml").write_text("pool: [")
    status, out, _ = run("fleet", "check", tmp_path)
    assert status == 2
    assert "2 files checked: 1 error" in out


def test_an_error_goes_to_standard_error_with_a_hint(run, tmp_path: Path):
    status, out, err = run("fleet", "show", tmp_path / "none.toml")
    assert (status, out) == (2, "")
    assert err.startswith("error: ")
    assert "hint: " in err


def test_an_error_is_json_on_standard_error_with_json(run, tmp_path: Path):
    status, out, err = run("fleet", "show", tmp_path / "none.toml", "--json")
    assert (status, out) == (2, "")
    error = json.loads(err)["error"]
    assert list(error) == ["code", "message", "hint", "file", "line", "field"]
    assert error["code"] == "no-such-file"


@pytest.mark.parametrize(
    "words",
    [["nonsense"], ["fleet", "show"], ["fleet", "show", "a.toml", "--colour"], ["fleet", "check"]],
)
def test_bad_usage_ends_with_2(run, words: list[str]):
    status, out, err = run(*words)
    assert (status, out) == (2, "")
    assert err.startswith("error: ")
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("alarms rules --idle-share 2", "`--idle-share` must be from 0 to 1, got 2"),
        ("alarms rules --wait-s -1", "`--wait-s` must be at least 0, got -1"),
        ("job list --limit 0", "`--limit` must be at least 1, got `0`"),
        ("job show j --attempts 0", "`--attempts` must be at least 1, got `0`"),
        ("job logs j --lines -1", "`--lines` must be at least 0, got `-1`"),
        ("job logs j --tail -1", "`--tail` must be at least 0, got `-1`"),
        ("job logs j --member -1", "`--member` must be at least 0, got `-1`"),
        ("down --timeout -1", "`--timeout` must be at least 0, got `-1`"),
        ("estimate month --line gpus=lots", "`--line` must be a positive number, got `lots`"),
        ("advise --bandwidth huge", "`--bandwidth` must be one of wan, ordinary, fast, got `huge`"),
        ("facts show H1000", "no entry named `H1000`"),
    ],
)
def test_a_value_out_of_range_is_named_with_its_bounds(run, words: str, message: str):
    status, _, errors = run(*words.split())
    assert status == 2
    assert message in errors


def test_a_paragraph_of_help_is_wrapped_once(run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = run("fleet", "domains", "--help")[1]
    paragraph = text.split("\n\n")[2].splitlines()
    assert len(paragraph) == 2
    assert all(len(line) <= 80 for line in paragraph)


def test_a_bug_ends_with_70_and_no_traceback(run, file: Path, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr("tenfold.cli.fleet.command.open_fleet", broken)
    status, _, err = run("fleet", "show", file)
    assert status == 70
    assert "planted" in err
    assert "Traceback" not in err


def test_show_prints_tree_racks_and_totals(run, file: Path):
    status, out, _ = run("fleet", "show", file)
    assert status == 0
    for part in ("32 GPUs on 4 nodes", "h100-rack-1", "31.6 PFLOP/s", "assumed for pool"):
        assert part in out


def test_show_as_json_has_the_fleet_and_its_totals(run, file: Path):
    status, out, _ = run("fleet", "show", file, "--json")
    assert status == 0
    report = json.loads(out)
    assert report["totals"]["gpus"] == 32
    assert report["fleet"]["pools"][0]["accelerator"] == "H100-80G-SXM"


def test_a_picture_is_written_once(run, file: Path, tmp_path: Path):
    picture = tmp_path / "racks.svg"
    assert run("fleet", "show", file, "--svg", picture)[0] == 0
    assert picture.read_text().startswith("<svg")
    status, _, err = run("fleet", "show", file, "--svg", picture)
    assert status == 2
    assert "already exists" in err
    assert run("fleet", "show", file, "--svg", picture, "--force")[0] == 0


def test_domains_are_listed_and_filtered(run, file: Path):
    status, out, _ = run("fleet", "domains", file, "--kind", "rack", "--json")
    assert status == 0
    assert {row["kind"] for row in json.loads(out)["domains"]} == {"rack"}
    assert "max job" in run("fleet", "domains", file)[1]


def test_facts_are_listed_shown_and_checked(run, tmp_path: Path):
    assert "accelerator" in run("facts", "list")[1]
    assert json.loads(run("facts", "list", "--json")[1])["accelerator"] >= 35
    assert len(json.loads(run("facts", "list", "--kind", "failure", "--json")[1])) >= 4
    status, out, _ = run("facts", "show", "h100_sxm")
    assert status == 0
    assert "794.5" in out
    assert "measured" in out
    assert run("facts", "check")[0] == 0
    assert run("facts", "show", "nothing-like-it")[0] == 2
    assert run("facts", "list", "--kind", "colour")[0] == 2


def test_a_users_facts_are_used(run, file: Path, tmp_path: Path):
    own = tmp_path / "facts"
    own.mkdir()
    (own / "own.toml").write_text(
        '[[accelerator]]\nname = "acme-x1"\nvendor = "Acme"\nruntime = "acme"\nmemory_gib = 64\n'
        "memory_tb_per_s = 2.5\nbf16_tflops = 500\n"
        'source = "price list"\ndate = "2026-10"\nevidence = "assumption"\n'
    )
    file.write_text(SMALLEST.replace("H100", "acme-x1"))
    assert run("fleet", "check", file)[0] == 2
    status, out, _ = run("fleet", "show", file, "--facts", own, "--json")
    assert status == 0
    assert json.loads(out)["totals"]["pflops"] == pytest.approx(16.0)


def test_a_models_config_reads_as_a_shape(run, tmp_path: Path):
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps(
            {
                "model_type": "llama",
                "num_hidden_layers": 2,
                "hidden_size": 64,
                "num_attention_heads": 4,
                "num_key_value_heads": 2,
                "intermediate_size": 128,
                "vocab_size": 1000,
            }
        )
    )
    status, out, _ = run("facts", "show", config, "--json")
    assert status == 0
    assert json.loads(out)["shape"]["kv_heads"] == 2
