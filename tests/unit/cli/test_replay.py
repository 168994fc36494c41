"""`tenfold replay`, and `sim run` with --bundle and --shadow, from arguments to what is printed."""

import json
from pathlib import Path

import pytest

from tenfold.cli.main import main

FLEET = """
[[pool]]
name = "h100"
nodes = 2
accelerator = "H100-80G-SXM"
gpus_per_node = 8
"""
JOBS = """job_id,team,submit_s,duration_s,gpus
pretrain,language,0,36000,16
tune,vision,600,1800,4
sweep,vision,2400,7200,8
"""


@pytest.fixture(name="run")
def a_recorded_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    (tmp_path / "fleet.toml").write_text(FLEET)
    (tmp_path / "jobs.csv").write_text(JOBS)
    assert sim(tmp_path, "--policy", "fifo", "--bundle", str(tmp_path / "run.jsonl")) == 0
    capsys.readouterr()
    return tmp_path / "run.jsonl"


def sim(folder: Path, *words: str) -> int:
    files = ["--fleet", str(folder / "fleet.toml"), "--jobs", str(folder / "jobs.csv")]
    return main(["sim", "run", *files, *words])


def answer(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> dict[str, object]:
    assert main(["replay", *words, "--json"]) == status
    return json.loads(capsys.readouterr().out)


def test_a_recorded_run_is_verified(run: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["replay", str(run)]) == 0
    said = capsys.readouterr().out
    assert "match the recording; the final fleet state is the same" in said
    found = answer(capsys, str(run))
    assert found["same"] is True
    assert found["orders"] == 3


def test_a_doctored_run_ends_with_status_1_and_the_first_difference(
    run: Path, capsys: pytest.CaptureFixture[str]
):
    text = run.read_text()
    place = text.index('"job_id":"tune","slots":[{"node":"h100-1"')
    run.write_text(text[:place] + text[place:].replace("h100-1", "h100-2", 1))
    found = answer(capsys, str(run), status=1)
    assert found["same"] is False
    assert main(["replay", str(run)]) == 1
    said = capsys.readouterr().out
    assert "recorded: start `tune` on `h100-2`; replayed: start `tune` on `h100-1`" in said
    assert "state: 2 waiting, 0 starting, 0 running, 16 GPUs free, 2 nodes" in said


def test_every_job_of_a_comparison_is_counted_once(capsys: pytest.CaptureFixture[str], run: Path):
    for policy in ("las", "sjf"):
        found = answer(capsys, str(run), "--policy", policy)
        counted = found["earlier"]["jobs"] + found["later"]["jobs"] + found["alike"]
        counted += found["same_start_other_nodes"] + found["only_recorded"] + found["only_again"]
        assert counted == found["recorded"]["jobs"]


def test_a_run_in_which_every_job_is_rejected_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "fleet.toml").write_text(FLEET)
    (tmp_path / "jobs.csv").write_text("job_id,team,submit_s,duration_s,gpus\nbig,a,0,60,64\n")
    assert sim(tmp_path) == 0
    said = capsys.readouterr().out
    assert "0 finished, 1 rejected" in said
    assert "rejected: 1 job: needs" in said
    undefined = [line.rsplit(maxsplit=1)[0].strip() for line in said.splitlines() if " -" in line]
    assert {"mean job completion time", "mean wait", "GPUs allocated"} <= {*undefined}


def test_another_policy_is_compared(run: Path, capsys: pytest.CaptureFixture[str]):
    found = answer(capsys, str(run), "--policy", "las")
    assert (found["policy_recorded"], found["policy_again"]) == ("fifo", "las")
    assert found["earlier"]["jobs"] == 2
    assert found["preemptions_added"] == 1
    assert main(["replay", str(run), "--policy", "las"]) == 0
    said = capsys.readouterr().out
    assert "3 jobs recorded under `fifo`, rerun under `las`" in said
    assert "Largest changes" in said


def test_a_policy_may_be_a_file(run: Path, capsys: pytest.CaptureFixture[str]):
    policy = run.parent / "new.toml"
    policy.write_text('name = "las"\n[las]\nlimits_gpu_s = [60]\n')
    assert answer(capsys, str(run), "--policy", str(policy))["policy_again"] == "las"


def test_a_job_is_explained(run: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["replay", str(run), "--explain", "tune"]) == 0
    said = capsys.readouterr().out
    assert "`tune` (team `vision`): ended; waited 9h 50m, ran 30 min" in said
    assert "job `pretrain` ended" in said
    found = answer(capsys, str(run), "--explain", "tune")
    assert found["stages"][0]["code"] == "submitted"


def test_a_job_that_is_not_in_the_bundle_is_told_so(run: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["replay", str(run), "--explain", "nobody", "--json"]) == 2
    assert json.loads(capsys.readouterr().err)["error"]["code"] == "unknown-job"


def test_two_questions_at_once_are_refused(run: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["replay", str(run), "--explain", "tune", "--policy", "las"]) == 2
    assert "`--policy` and `--explain`" in capsys.readouterr().err


def test_a_shadow_is_summed_up(run: Path, capsys: pytest.CaptureFixture[str]):
    assert sim(run.parent, "--policy", "fifo", "--shadow", "las") == 0
    said = capsys.readouterr().out
    assert "shadow policy `las`: differs in" in said
    assert "would stop `pretrain`" in said
    assert sim(run.parent, "--policy", "fifo", "--shadow", "las", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["finished"] == 3
    assert found["shadow"]["policy"] == "las"
    assert found["shadow"]["would_stop"] == 1


def test_a_bundle_is_not_written_over(run: Path, capsys: pytest.CaptureFixture[str]):
    assert sim(run.parent, "--bundle", str(run)) == 2
    assert "already exists" in capsys.readouterr().err
    assert sim(run.parent, "--bundle", str(run), "--force") == 0


def test_a_filling_has_nothing_to_record(run: Path, capsys: pytest.CaptureFixture[str]):
    assert sim(run.parent, "--fill", "--shadow", "las", "--json") == 2
    assert json.loads(capsys.readouterr().err)["error"]["code"] == "nothing-to-record"
