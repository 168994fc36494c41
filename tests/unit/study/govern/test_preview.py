"""A change of policy before it is applied, and the commands about policies."""

import json
from functools import partial
from pathlib import Path

import pytest

from tenfold.cli.main import main
from tenfold.compose.inputs import SimFiles
from tenfold.study.govern.preview import Preview, lost_run, preview
from tenfold.study.parallel import process_map

FLEET = (
    '[[pool]]\nname = "h100"\naccelerator = "H100"\nnodes = 1\ngpus_per_node = 8\n'
    '[[team]]\nname = "long"\n[[team]]\nname = "short"\n'
)
JOBS = "job_id,team,submit_s,duration_s,gpus\n" + "".join(
    f"j{n},{'short' if n % 4 else 'long'},{n * 60},{600 if n % 4 else 36_000},{1 if n % 4 else 8}\n"
    for n in range(24)
)
POLICY = (
    'name = "governed"\n[[teams]]\nid = "long"\nquota = { H100 = 8 }\n[[teams]]\nid = "short"\n'
)


@pytest.fixture
def files(tmp_path: Path) -> SimFiles:
    (tmp_path / "fleet.toml").write_text(FLEET)
    (tmp_path / "jobs.csv").write_text(JOBS)
    return SimFiles(fleet=tmp_path / "fleet.toml", jobs=tmp_path / "jobs.csv")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    def call(*words: object) -> tuple[int, str, str]:
        status = main(["policy", *(str(word) for word in words)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def previewed(files: SimFiles, new: str, old: str, workers: int = 1) -> Preview:
    return preview(files, new, old, partial(process_map, workers=workers), lambda _: None)


def test_who_waits_less_gains_and_who_waits_more_loses(files: SimFiles):
    answer = previewed(files, "sjf", "fifo")
    old, new = answer.before.teams, answer.after.teams
    assert new["short"].wait_s_mean < old["short"].wait_s_mean
    assert answer.gains[0] == "short"
    assert "`short`" in answer.verdict.removeprefix("mean wait drops for ").split(";")[0]


def test_the_same_policy_changes_nothing(files: SimFiles):
    answer = previewed(files, "fifo", "fifo")
    assert (answer.gains, answer.loses) == ((), ())
    assert answer.verdict == "no difference for any team"


def test_shares_add_up_and_waits_are_those_of_the_jobs(files: SimFiles):
    side = previewed(files, "fifo", "tenfold").after
    assert side.whole is not None
    assert sum(team.share for team in side.teams.values()) == pytest.approx(1)
    assert sum(team.jobs for team in side.teams.values()) == side.whole.jobs == 24
    assert side.whole.unfinished == 0
    assert side.teams["long"].wait_s_mean <= side.teams["long"].wait_s_p90


def test_processes_give_what_one_process_gives(files: SimFiles):
    assert previewed(files, "sjf", "fifo", workers=2) == previewed(files, "sjf", "fifo")


def test_a_run_that_fails_is_said_and_nothing_is_concluded(files: SimFiles, tmp_path: Path):
    broken = SimFiles(fleet=tmp_path / "none.toml", jobs=files.jobs)
    answer = previewed(broken, "sjf", "fifo")
    assert answer.after.error is not None
    assert answer.after.error.code == "no-such-file"
    assert "failed" in answer.verdict
    lost = lost_run(files, "its machine went away")
    assert lost.error is not None
    assert lost.error.code == "cell-lost"


def test_one_side_that_fails_is_enough_to_conclude_nothing(files: SimFiles):
    def half(work, tasks, *, lost, done):
        first, second = tasks
        return [lost(first, "it went away"), work(second)]

    answer = preview(files, "fifo", "sjf", half, lambda _: None)
    assert (answer.gains, answer.loses) == ((), ())
    assert answer.after.teams
    assert "failed" in answer.verdict


def test_the_command_shows_teams_the_whole_and_a_verdict(run, files: SimFiles):
    words = ("preview", "sjf", "--against", "fifo", "--fleet", files.fleet, "--jobs", files.jobs)
    status, out, err = run(*words, "--workers", 1)
    assert (status, err) == (0, "")
    for part in (
        "long",
        "short",
        "fairness of slowdown (Jain)",
        "GPUs allocated",
        "Mean wait drops for",
    ):
        assert part in out
    status, out, _ = run(*words, "--workers", 1, "--json")
    answer = json.loads(out)
    assert status == 0
    assert list(answer) == ["before", "after", "verdict", "gains", "loses"]
    assert answer["before"]["policy"] == "fifo"


def test_the_command_ends_with_1_where_a_run_fails(run, files: SimFiles, tmp_path: Path):
    words = ("preview", "sjf", "--jobs", files.jobs, "--workers", 1)
    status, out, _ = run(*words, "--fleet", tmp_path / "none.toml")
    assert status == 1
    assert "[no-such-file]" in out


def test_an_unknown_policy_is_refused_before_anything_runs(run, files: SimFiles):
    words = ("preview", "lottery", "--fleet", files.fleet, "--jobs", files.jobs)
    status, out, err = run(*words)
    assert (status, out) == (2, "")
    assert "unknown policy `lottery`" in err


def test_check_ends_with_0_without_errors_and_2_with(run, files: SimFiles, tmp_path: Path):
    path = tmp_path / "policy.toml"
    path.write_text(POLICY)
    assert run("check", path, "--fleet", files.fleet)[0] == 0
    path.write_text(POLICY + 'parent = "nobody"\nquota = { H100 = -1 }\n')
    status, out, _ = run("check", path, "--json")
    assert status == 2
    faults = json.loads(out)["faults"]
    assert [one["code"] for one in faults] == ["unknown-team", "wrong-value"]
    assert faults[0]["field"] == "teams[1].parent"


def test_a_policy_that_cannot_be_read_is_a_fault_and_a_fleet_an_error(run, tmp_path: Path):
    broken = tmp_path / "broken.toml"
    broken.write_text("name = [")
    status, out, _ = run("check", broken)
    assert (status, "[syntax]" in out) == (2, True)
    (tmp_path / "policy.toml").write_text(POLICY)
    status, out, err = run("check", tmp_path / "policy.toml", "--fleet", tmp_path / "none.toml")
    assert (status, out) == (2, "")
    assert "no such file" in err


def test_show_prints_the_tree_and_the_sum_against_the_fleet(run, files: SimFiles, tmp_path: Path):
    path = tmp_path / "policy.toml"
    path.write_text(POLICY.replace('id = "short"', 'id = "short"\nparent = "long"'))
    status, out, _ = run("show", path, "--fleet", files.fleet)
    assert status == 0
    assert "\n  short " in out, "a team stands under its parent"
    assert "8 H100-80G-SXM" in out
    assert "fleet  unassigned" in out
    status, out, _ = run("show", path, "--json")
    answer = json.loads(out)
    assert [team["depth"] for team in answer["teams"]] == [0, 1]
    assert answer["sums"] == [{"counts": "H100", "granted": 8.0, "has": None, "at": ""}]


def test_a_name_is_shown_with_the_teams_of_the_fleet(run, files: SimFiles):
    status, out, _ = run("show", "governed", "--fleet", files.fleet)
    assert status == 0
    assert "2 teams, default rules" in out
    assert "no quotas" in run("show", "fair")[1]


def test_windows_and_hours_are_shown(run, tmp_path: Path):
    path = tmp_path / "policy.toml"
    path.write_text(
        POLICY + 'hours = [{ from = "22:00", to = "06:00", quota = { H100 = 2 } }]\n'
        '[[windows]]\nid = "fix"\nstart_h = 4\nhours = 2\nevery_h = 24\nnodes = ["n[1-3]"]\n'
    )
    out = run("show", path)[1]
    assert "22:00-06:00" in out
    assert "n[1-3]" in out
    assert "maintenance" in out
