"""`tenfold estimate` and `tenfold plan` from arguments to exit status."""

import io
import json
import re
from pathlib import Path

import pytest

from tenfold.cli.main import main

FLEET = '[[pool]]\nname = "h100"\naccelerator = "H100"\nnodes = 8\ngpus_per_node = 8\n'
ROW = {"id": "a", "model": "Llama 3.1 8B", "accelerator": "h100", "gpus": 8, "global_batch": 64}


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "fleet.toml").write_text(FLEET)
    monkeypatch.chdir(tmp_path)

    def call(*words: object) -> tuple[int, str, str]:
        status = main([str(word) for word in words])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def rows(path: Path, *lines: object) -> Path:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts) + "\n")
    return path


def answers(out: str) -> list[dict]:
    return [json.loads(line) for line in out.splitlines()]


def test_training_rows_are_answered_in_order(run, tmp_path: Path):
    file = rows(tmp_path / "rows.jsonl", ROW, {**ROW, "id": 7, "gpus": 16})
    status, out, err = run("estimate", "train", "--in", file)
    assert (status, err) == (0, "")
    first, second = answers(out)
    assert [first["id"], second["id"]] == ["a", 7]
    keys = "id notes step_s interval_s tokens_per_s_per_gpu model_tflops_per_gpu mfu memory_gib"
    assert list(first) == [*keys.split(), "fits", "bottleneck", "breakdown_s"]
    assert sum(first["breakdown_s"].values()) == pytest.approx(first["step_s"])
    assert second["step_s"] < first["step_s"]


def test_a_row_that_cannot_be_is_told_in_its_place(run, tmp_path: Path):
    file = rows(tmp_path / "rows.jsonl", {**ROW, "tp": 3}, ROW)
    status, out, _ = run("estimate", "train", "--in", file)
    assert status == 1
    first, second = answers(out)
    assert list(first) == ["id", "error"]
    assert "step_s" in second


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("{not json", "not valid JSON"),
        ({**ROW, "gpu": 8}, "gpu"),
        ({**ROW, "gpus": "eight"}, "gpus"),
    ],
)
def test_a_bad_line_stops_with_its_number(run, tmp_path: Path, line: object, word: str):
    file = rows(tmp_path / "rows.jsonl", ROW, "", line)
    status, out, err = run("estimate", "train", "--in", file)
    assert (status, out) == (2, "")
    assert "rows.jsonl:3: " in err
    assert word in err


def test_rows_come_from_standard_input_too(run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(ROW).encode())))
    status, out, _ = run("estimate", "train", "--in", "-")
    assert status == 0
    assert len(answers(out)) == 1
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff")))
    status, _, err = run("estimate", "train", "--in", "-")
    assert status == 2
    assert "UTF-8" in err


def test_observed_runs_move_the_estimate(run, tmp_path: Path):
    row = {**ROW, "stack": "our-own-trainer", "micro_batch": 1}
    file = rows(tmp_path / "rows.jsonl", row)
    [before] = answers(run("estimate", "train", "--in", file)[1])
    seen = rows(tmp_path / "seen.jsonl", {**row, "step_s": before["step_s"] * 1.5})
    [after] = answers(run("estimate", "train", "--in", file, "--calibrate", seen)[1])
    assert after["step_s"] > before["step_s"] * 1.25
    width = [one["interval_s"][1] / one["interval_s"][0] for one in (before, after)]
    assert width[1] < width[0]


def test_observed_runs_without_a_time_are_refused(run, tmp_path: Path):
    file = rows(tmp_path / "rows.jsonl", ROW)
    status, _, err = run("estimate", "train", "--in", file, "--calibrate", file)
    assert status == 2
    assert "step_s" in err


def test_serving_rows_are_answered(run, tmp_path: Path):
    row = {"id": 1, "model": "Llama 3.1 8B", "accelerator": "h100", "input_tokens": 1000}
    file = rows(tmp_path / "rows.jsonl", {**row, "output_tokens": 100, "engine": "vllm"})
    status, out, _ = run("estimate", "serve", "--in", file)
    assert status == 0
    [answer] = answers(out)
    for key in ("output_tokens_per_s", "ttft_s", "tpot_s", "batch", "memory_gib", "fits"):
        assert key in answer


def test_plan_train_as_json_holds_the_contract(run):
    status, out, _ = run(
        "plan", "train", "--model", "llama-3.1-8b", "--fleet", "fleet.toml", "--gpus", 64, "--json"
    )
    assert status == 0
    report = json.loads(out)
    for key in ("searched", "seconds", "plans", "scaling", "why"):
        assert key in report
    best = report["plans"][0]
    for key in ("tp", "pp", "dp", "shard", "step_s", "interval_s", "memory_gib", "usd_per_step"):
        assert key in best
    assert best["gpus"] == 64
    fields = ["gpus", "global_batch", "step_s", "tokens_per_s", "efficiency"]
    assert list(report["scaling"][0]) == fields


def test_plan_train_reads_days_and_dollars(run):
    words = ["plan", "train", "--model", "llama-3.1-8b", "--fleet", "fleet.toml", "--tokens", "1T"]
    assert run(*words, "--deadline", "400d")[0] == 0
    assert run(*words, "--deadline", "1h")[0] == 1
    status, _, err = run(*words, "--deadline", "soon")
    assert status == 2
    assert "--deadline" in err
    assert run(*words, "--budget", "many")[0] == 2


def test_degrees_larger_than_the_fleet_are_the_reason(run):
    words = ("plan", "train", "--fleet", "fleet.toml", "--model", "Llama 3.1 8B")
    status, out, err = run(*words, "--tp", 64, "--pp", 2)
    assert status == 1
    assert "needs at least 128 GPUs, more than the 64 available" in " ".join((out + err).split())


def test_an_accelerator_that_the_fleet_lacks_is_answered_with_those_it_has(run):
    words = ("plan", "train", "--fleet", "fleet.toml", "--model", "Llama 3.1 8B")
    status, _, err = run(*words, "--accelerator", "B200")
    assert status == 2
    assert "choose an accelerator in the fleet: H100-80G-SXM" in err


def test_a_model_that_does_not_fit_ends_with_1(run):
    words = ["plan", "train", "--model", "llama-3.1-405b", "--fleet", "fleet.toml", "--gpus", 8]
    status, out, _ = run(*words)
    assert status == 1
    assert "no plan" in out
    assert json.loads(run(*words, "--json")[1])["plans"] == []


def test_a_report_and_an_export_are_written(run, tmp_path: Path):
    words = ["plan", "train", "--model", "llama-2-7b", "--fleet", "fleet.toml", "--gpus", 8]
    status, _, _ = run(*words, "--html", "plan.html", "--export", "torchrun", "--out", "job")
    assert status == 0
    assert "<svg" in (tmp_path / "plan.html").read_text()
    assert (tmp_path / "job" / "torchrun.sh").is_file()
    assert run(*words, "--html", "plan.html")[0] == 2
    assert run(*words, "--export", "nonsense")[0] == 2


def test_plan_serve_answers_and_refuses(run):
    words = ["plan", "serve", "--model", "llama-3.1-8b", "--fleet", "fleet.toml"]
    words += [
        "--input-tokens",
        "500",
        "--output-tokens",
        "100",
        "--qps",
        "5",
        "--tpot-s",
        "0.05",
        "--json",
        "--ttft-s",
    ]
    status, out, _ = run(*words, 1)
    assert status == 0
    best = json.loads(out)["plans"][0]
    assert best["replicas"] >= 1
    assert best["usd_per_million_tokens"] > 0
    assert run(*words, 0.0001)[0] == 1


def test_a_step_that_costs_less_than_a_cent_is_not_free(run):
    words = ("plan", "train", "--model", "Llama 3.1 8B", "--fleet", "fleet.toml", "--gpus", 8)
    status, out, _ = run(*words, "--global-batch", 8)
    assert status == 0
    costs = re.findall(r"\$(0\.\d+)", out)
    assert costs
    assert min(float(cost) for cost in costs) > 0
    assert " 0.00\n" not in out


def test_an_unknown_model_says_what_is_near(run):
    status, _, err = run("plan", "train", "--model", "llama-3.1-9b", "--fleet", "fleet.toml")
    assert status == 2
    assert "did you mean" in err


@pytest.mark.parametrize(
    "more",
    [
        {"tp": 3, "gpus": 24},
        {"pp": 64, "gpus": 64},
        {"ep": 8},
        {"model": {"layers": 4, "hidden": 64, "heads": 4, "experts": 4, "topk": 9}},
    ],
)
def test_degrees_that_a_model_cannot_be_divided_by_are_told(run, tmp_path: Path, more: dict):
    file = rows(tmp_path / "rows.jsonl", {**ROW, **more})
    status, out, _ = run("estimate", "train", "--in", file)
    assert status == 1
    assert "error" in answers(out)[0]


def test_a_number_that_json_has_not_is_told(run, tmp_path: Path):
    file = rows(tmp_path / "rows.jsonl", '{"id": NaN, "model": "x", "accelerator": "y", "gpus": 1}')
    status, _, err = run("estimate", "train", "--in", file)
    assert status == 2
    assert "NaN" in err


@pytest.mark.parametrize(
    "words",
    [
        ["--deadline", "30d"],
        ["--budget", "100"],
        ["--tokens", "1e400"],
        ["--gpus", "0"],
        ["--tp", "0"],
        ["--gradient-bits", "7"],
    ],
)
def test_options_that_make_no_sense_are_refused(run, words: list[str]):
    status, out, _ = run(
        "plan", "train", "--model", "llama-3.1-8b", "--fleet", "fleet.toml", *words
    )
    assert (status, out) == (2, "")


def test_a_budget_without_a_price_cannot_be_judged(run, tmp_path: Path):
    fleet = FLEET.replace("H100", "Jetson-Orin-NX-16G").replace("_node = 8", "_node = 1")
    (tmp_path / "fleet.toml").write_text(fleet)
    words = ["plan", "train", "--model", "GPT-2 124M", "--fleet", "fleet.toml", "--tokens", "1B"]
    status, _, err = run(*words, "--budget", "100")
    assert status == 2
    assert "price" in err
    plans = json.loads(run(*words, "--json")[1])["plans"]
    assert plans[0]["usd_per_step"] is None


def test_observed_runs_of_another_stack_are_ignored_with_a_note(run, tmp_path: Path):
    seen = rows(tmp_path / "seen.jsonl", {**ROW, "stack": "our-own", "step_s": 9})
    words = ["plan", "train", "--model", "llama-3.1-8b", "--fleet", "fleet.toml", "--gpus", 8]
    assert "1 observed run ignored" in run(*words, "--calibrate", seen)[1]


def test_an_odd_sequence_length_is_planned_where_it_divides(run):
    words = ["plan", "train", "--model", "llama-3.1-8b", "--fleet", "fleet.toml", "--gpus", 8]
    assert run(*words, "--seq", 4097, "--global-batch", 8)[0] == 0
    status, out, _ = run(*words, "--tp", 3)
    assert status == 1
    assert "and tp=3" in out


def test_a_replica_carries_the_same_whatever_is_asked_of_it(run):
    words = ["plan", "serve", "--model", "llama-3.1-8b", "--fleet", "fleet.toml", "--json"]
    words += [
        "--input-tokens",
        "500",
        "--output-tokens",
        "100",
        "--ttft-s",
        "1",
        "--tpot-s",
        "0.05",
    ]
    few, many = (json.loads(run(*words, "--qps", qps)[1])["plans"] for qps in (0.01, 10))

    def single(plans: list[dict]) -> float:
        kind = {"precision": "fp8", "tp": 1, "pp": 1}
        return next(
            one["qps_per_replica_max"]
            for one in plans
            if all(one[key] == value for key, value in kind.items())
        )

    assert single(few) == pytest.approx(single(many), rel=0.01)


def test_rows_as_data_frames_write_them_are_read(run, tmp_path: Path):
    framed = {**ROW, "gpus": 8.0, "tp": 0, "sequence_parallel": 1, "seq": 2048.0, "cp": None}
    plain = {**ROW, "sequence_parallel": True, "seq": 2048}
    file = rows(tmp_path / "rows.jsonl", framed, plain)
    status, out, _ = run("estimate", "train", "--in", file)
    assert status == 0
    first, second = answers(out)
    assert first == second
