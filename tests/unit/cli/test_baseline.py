"""`tenfold baseline`: what it keeps, what it prints, and how it ends."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tenfold.cli.main import main
from tenfold.files.measured.baselines import read_store
from tenfold.study.baseline import record


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)

    def call(*words: object) -> tuple[int, str, str]:
        status = main(["baseline", *[str(word) for word in words]])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def steps(path: Path, step_s: float, count: int = 12, **keys: object) -> Path:
    rows = [{"step": at, "step_s": step_s + 0.001 * (at % 3), **keys} for at in range(count)]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def test_record_check_list_show(run, tmp_path: Path):
    good, slow = steps(tmp_path / "g.jsonl", 0.5, gpus=8), steps(tmp_path / "s.jsonl", 0.7)
    status, out, err = run("record", "llm", "--in", good, "--note", "after the upgrade")
    assert (status, err) == (0, "")
    assert out.startswith("llm: recorded baseline 1 in baselines.json: 12 steps of 0.501 s")
    assert run("check", "llm", "--in", good)[0] == 0
    status, out, _ = run("check", "llm", "--in", slow)
    assert status == 1
    assert out.startswith("ALARM llm: 40% slower: 0.701 s per step, was 0.501 s")
    assert run("check", "llm", "--in", slow, "--slower-by", "0.5")[0] == 0
    assert "llm" in run("list")[1]
    assert "after the upgrade" in run("show", "llm")[1]


def test_history_is_kept_and_any_of_it_can_be_asked_for(run, tmp_path: Path):
    good, slow = steps(tmp_path / "g.jsonl", 0.5), steps(tmp_path / "s.jsonl", 0.7)
    for file in (good, slow):
        run("record", "llm", "--in", file)
    status, out, _ = run("check", "llm", "--in", slow, "--json")
    answer = json.loads(out)
    assert (status, answer["alarm"], answer["baseline"]["number"]) == (0, False, 2)
    status, out, _ = run("check", "llm", "--in", slow, "--against", 1, "--json")
    answer = json.loads(out)
    assert (status, answer["alarm"], answer["baseline"]["number"]) == (1, True, 1)
    assert answer["comparisons"][0]["part"] == "step"
    shown = json.loads(run("show", "llm", "--json")[1])
    assert [one["number"] for one in shown["baselines"]] == [1, 2]
    listed = json.loads(run("list", "--json")[1])
    assert listed["workloads"][0]["newest"]["step_s_median"] == pytest.approx(0.701)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("check", "other", "--in", "g.jsonl"), "no-baseline"),
        (("show", "other"), "no-baseline"),
        (("check", "llm", "--in", "g.jsonl", "--against", "7"), "no-baseline"),
        (("check", "llm", "--in", "more.jsonl"), "not-comparable"),
        (("check", "llm", "--in", "kernels.csv"), "not-comparable"),
        (("check", "llm", "--in", "kernels.csv", "--against", "1"), "not-comparable"),
        (("check", "llm", "--in", "few.jsonl"), "too-few-steps"),
        (("check", "llm", "--in", "g.jsonl", "--skip-steps", "6"), "too-few-steps"),
        (("record", " ", "--in", "g.jsonl"), "bad-name"),
        (("record", "llm", "--in", "none.jsonl"), "no-such-file"),
        (("record", "llm", "--in", "g.jsonl", "--store", "nowhere/b.json"), "cannot-write"),
        (("list", "--store", "none.json"), "no-such-file"),
        (("list", "--store", "old.json"), "store-version"),
        (("list", "--store", "odd.json"), "not-a-store"),
        (("list", "--store", "half.json"), "not-a-store"),
    ],
)
def test_what_cannot_be_answered_says_why(run, tmp_path: Path, words: tuple[str, ...], code: str):
    steps(tmp_path / "g.jsonl", 0.5, gpus=8)
    steps(tmp_path / "more.jsonl", 0.5, gpus=16)
    steps(tmp_path / "few.jsonl", 0.5, count=7)
    (tmp_path / "kernels.csv").write_text(
        "Total Time (ns),Instances,Avg (ns),Name\n100,10,10,gemm\n"
    )
    (tmp_path / "old.json").write_text('{"schema": 9, "workloads": {}}')
    (tmp_path / "odd.json").write_text('{"schema": 1, "workloads": {"a": []}}')
    (tmp_path / "half.json").write_text('{"schema": 1, "work')
    run("record", "llm", "--in", "g.jsonl")
    status, out, err = run(*words, "--json")
    assert (status, out) == (2, "")
    error = json.loads(err)["error"]
    assert error["code"] == code
    assert error["message"]
    assert error["hint"]


def test_a_newer_stack_is_compared_and_named(run, tmp_path: Path):
    run("record", "llm", "--in", steps(tmp_path / "a.jsonl", 0.5, stack="2.6"))
    newer = steps(tmp_path / "b.jsonl", 0.5, stack="2.7")
    status, out, _ = run("check", "llm", "--in", newer)
    assert status == 0
    assert "note: stack is 2.7, was 2.6" in out


def test_a_check_without_a_baseline_says_how_to_record_one(run, tmp_path: Path):
    steps(tmp_path / "g.jsonl", 0.5)
    status, _, err = run("check", "llm", "--in", "g.jsonl")
    assert status == 2
    assert "no baselines recorded yet" in err
    assert "tenfold baseline record" in err


def test_a_store_of_an_unknown_version_is_left_as_it_is(run, tmp_path: Path):
    store = tmp_path / "baselines.json"
    store.write_text('{"schema": 9}')
    assert run("record", "llm", "--in", steps(tmp_path / "a.jsonl", 0.5))[0] == 2
    assert store.read_text() == '{"schema": 9}'


def test_recording_at_once_loses_nothing(tmp_path: Path):
    store, good = tmp_path / "baselines.json", steps(tmp_path / "a.jsonl", 0.5)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda at: record(f"w{at % 2}", good, store), range(16)))
    found = read_store(store)
    assert {name: [one.number for one in kept] for name, kept in found.workloads.items()} == {
        "w0": list(range(1, 9)),
        "w1": list(range(1, 9)),
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "baselines.json"]
