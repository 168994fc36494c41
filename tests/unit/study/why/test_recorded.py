"""`tenfold job`, from a recorded run to what is printed."""

import json
from pathlib import Path

import pytest

from tenfold.cli.main import main

FLEET = """
[[pool]]
name = "h100"
nodes = 4
accelerator = "H100-80G-SXM"
gpus_per_node = 8
"""
TEAMS = """
name = "governed"
[[teams]]
id = "language"
quota = { H100 = 16 }
[[teams]]
id = "vision"
quota = { H100 = 16 }
borrow = { H100 = 4 }
"""
JOBS = """job_id,team,submit_s,duration_s,gpus,gpus_per_node,limit_s,preemptible
pretrain,language,0,36000,16,8,40000,no
tune-1,vision,0,30000,6,,36000,no
tune-2,vision,0,30000,6,,36000,no
eval,language,600,30000,2,,,
wide,language,1200,7200,16,8,10000,
vast,language,1300,7200,64,8,,
"""


@pytest.fixture(name="run", params=["governed", "fifo"])
def a_recorded_run(
    request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Path:
    (tmp_path / "fleet.toml").write_text(FLEET)
    (tmp_path / "jobs.csv").write_text(JOBS)
    (tmp_path / "teams.toml").write_text(TEAMS)
    policy = str(tmp_path / "teams.toml") if request.param == "governed" else "fifo"
    files = ["--fleet", str(tmp_path / "fleet.toml"), "--jobs", str(tmp_path / "jobs.csv")]
    bundle = tmp_path / "run.jsonl"
    assert main(["sim", "run", *files, "--policy", policy, "--bundle", str(bundle)]) == 0
    capsys.readouterr()
    return bundle


def said(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    assert main(["job", *words]) == status
    return capsys.readouterr().out


def job_file(folder: Path, text: str) -> str:
    path = folder / "job.toml"
    path.write_text(text)
    return str(path)


def test_a_waiting_job_is_told_why_under_any_policy(run: Path, capsys: pytest.CaptureFixture[str]):
    words = ["why", "wide", "--bundle", str(run), "--at", "1h"]
    found = json.loads(said(capsys, *words, "--json"))
    assert (found["state"], found["at_ms"]) == ("pending", 3_600_000)
    assert found["why"]["reason"]["code"] == "too-few-free"
    assert found["why"]["holders"]["jobs"][0]["job_id"] == "pretrain"
    text = said(capsys, *words, "--quick")
    assert "`wide` (team `language`): pending for 40 min" in text
    assert "reason: needs 16 GPUs on 2 nodes" in text
    assert "GPUs held: `language` 18, `vision` 12" in text


def test_the_cheapest_remedy_comes_first_and_the_others_where_all_are_asked_for(
    run: Path, capsys: pytest.CaptureFixture[str]
):
    words = ["why", "wide", "--bundle", str(run), "--at", "1h", "--json"]
    cheapest = json.loads(said(capsys, *words))["why"]
    every = json.loads(said(capsys, *words, "--all"))["why"]
    assert cheapest["cheapest"] == every["cheapest"]
    assert len(cheapest["remedies"]) <= len(every["remedies"])
    assert main(["job", *words, "--all", "--quick"]) == 2
    assert "`--quick` and `--all` cannot be used together" in capsys.readouterr().err


def test_a_job_that_is_over_is_told_what_became_of_it(
    run: Path, capsys: pytest.CaptureFixture[str]
):
    text = said(capsys, "why", "wide", "--bundle", str(run))
    assert "`wide` (team `language`): ended" in text
    text = said(capsys, "why", "vast", "--bundle", str(run))
    assert "`vast` (team `language`): rejected" in text


def test_jobs_are_listed_by_state_and_team(run: Path, capsys: pytest.CaptureFixture[str]):
    at = ["--bundle", str(run), "--at", "1h", "--json"]
    everybody = json.loads(said(capsys, "list", *at))
    assert next(one for one in everybody if one["state"] == "pending")["job_id"] == "wide"
    assert sum(one["state"] == "running" for one in everybody) == 4
    some = json.loads(said(capsys, "list", *at, "--team", "vision", "--state", "running"))
    assert [one["job_id"] for one in some] == ["tune-1", "tune-2"]
    assert "pending, 4 jobs running" in said(capsys, "list", *at[:-1])


def test_a_dry_run_says_where_a_job_would_start_or_why_not(
    run: Path, capsys: pytest.CaptureFixture[str]
):
    at = ["--dry-run", "--bundle", str(run), "--at", "1h", "--quick"]
    small = job_file(run.parent, 'job_id = "s"\nteam = "vision"\ngpus = 2\ngpu_type = "H100"\n')
    text = said(capsys, "submit", small, *at)
    in_line = '"name":"fifo"' in run.read_text()
    assert ("would be pending" if in_line else "`s` would start now on `h100-") in text
    large = job_file(run.parent, 'job_id = "l"\nteam = "vision"\ngpus = 64\ngpus_per_node = 8\n')
    assert "`l` could never start" in said(capsys, "submit", large, *at, status=1)


def test_without_a_dry_run_nothing_can_be_submitted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    small = job_file(tmp_path, 'command = ["true"]\ngpus = 1\n')
    assert main(["job", "submit", small]) == 4
    assert "no control plane is running" in capsys.readouterr().err


def test_without_a_control_plane_the_errors_of_a_file_are_reported_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    wrong = job_file(tmp_path, 'command = ["true"]\nwithin = "galaxy"\nenv = {A = 1}\n')
    assert main(["job", "submit", wrong]) == 2
    told = capsys.readouterr().err
    assert "no control plane is running" in told
    assert "`within` expects one of leaf, pod, rack, scale-up, got the string `galaxy`" in told
    assert "`env.A` expects a string" in told


def test_every_fault_of_a_job_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    bad = job_file(tmp_path, 'job_id = "s"\ngpus = 1.5\nleast_gpus = 4\nwithin = "room"\n')
    assert main(["job", "submit", bad, "--dry-run"]) == 2
    told = capsys.readouterr().err
    assert "job.toml:2: `gpus` is 1.5" in told
    assert "job.toml:3: `least_gpus` is 4, more than `gpus` 1.5" in told
    assert "job.toml:4: `within` expects" in told


def test_a_name_that_is_taken_or_unknown_is_refused(run: Path, capsys: pytest.CaptureFixture[str]):
    at = ["--bundle", str(run), "--at", "1h"]
    taken = job_file(run.parent, 'job_id = "wide"\ngpus = 1\n')
    assert main(["job", "submit", taken, "--dry-run", *at]) == 2
    assert "already pending or running" in capsys.readouterr().err
    assert main(["job", "why", "nobody", *at]) == 2
    assert "no job `nobody`" in capsys.readouterr().err


def test_a_forecast_says_that_nobody_has_checked_it_or_how_often_its_like_held(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "fleet.toml").write_text(FLEET.replace("nodes = 4", "nodes = 1"))
    rows = [f"job-{number},{number * 600},{900 + number % 7 * 60},8" for number in range(120)]
    (tmp_path / "jobs.csv").write_text("\n".join(["job_id,submit_s,duration_s,gpus", *rows]))
    bundle = tmp_path / "run.jsonl"
    files = ["--fleet", str(tmp_path / "fleet.toml"), "--jobs", str(tmp_path / "jobs.csv")]
    assert main(["sim", "run", *files, "--policy", "fifo", "--bundle", str(bundle)]) == 0
    capsys.readouterr()
    early = said(capsys, "why", "job-5", "--bundle", str(bundle), "--at", "1h", "--json")
    asked = json.loads(early)["why"]["eta"]
    assert not asked["calibrated"]
    assert "uncalibrated" in asked["basis"]
    late = said(capsys, "why", "job-110", "--bundle", str(bundle), "--at", "19h", "--json")
    assert "of the last" in json.loads(late)["why"]["eta"]["basis"]
