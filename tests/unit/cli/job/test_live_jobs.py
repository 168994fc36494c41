"""The job commands against a real control plane: dry runs, arrays, listings, exit codes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from patience import HANG_S
from tenfold.cli.job.live import exit_status
from tenfold.cli.main import main
from tenfold.model.api.jobs import Attempt, Job, Reason
from tenfold.model.job.job import JobState
from unit.up_process import Up, commands_find, running

Printed = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Generator[Up, None, None]:
    with running(tmp_path_factory.mktemp("up") / "home", "--virtual-nodes", "2") as made:
        yield made


@pytest.fixture(autouse=True)
def asked_here(up: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    commands_find(up, monkeypatch)


def job_file(folder: Path, text: str) -> str:
    path = folder / "job.toml"
    path.write_text(text)
    return str(path)


def said(printed: Printed, *words: str, status: int = 0) -> str:
    assert main(words) == status
    return printed.readouterr().out


def test_a_dry_run_says_what_would_become_of_a_job_and_hands_in_nothing(
    tmp_path: Path, capsys: Printed
):
    fits = job_file(tmp_path, 'name = "fits"\ncommand = ["true"]\nnodes = 2\ngpus_per_node = 8\n')
    text = said(capsys, "job", "submit", fits, "--dry-run")
    assert "`fits` of team `admin` would start now on virtual-[1-2]" in text
    assert "nodes large enough: 2 (virtual-[1-2])" in text
    told = json.loads(said(capsys, "job", "submit", fits, "--dry-run", "--json"))
    assert (told["outcome"], told["nodes"]) == ("starts", ["virtual-1", "virtual-2"])
    never = job_file(tmp_path, 'command = ["true"]\nnodes = 3\ngpus_per_node = 8\n')
    assert "could never start" in said(capsys, "job", "submit", never, "--dry-run", status=1)
    assert json.loads(said(capsys, "job", "list", "--json")) == []


def test_an_array_is_listed_shown_and_taken_back_by_its_name(tmp_path: Path, capsys: Printed):
    file = job_file(
        tmp_path, 'name = "many"\narray = 4\ngpus_per_node = 8\ncommand = ["sleep", "600"]\n'
    )
    base = json.loads(said(capsys, "job", "submit", file, "--json"))["id"]
    text = said(capsys, "job", "list", "--array", base)
    assert f"{base}[3]" in text
    assert "4 jobs" in text
    assert "members: " in said(capsys, "job", "show", base)
    shown = json.loads(said(capsys, "job", "show", base, "--json"))
    assert shown["array"]["count"] == 4
    assert "(4 tasks)" in said(capsys, "job", "cancel", base)
    assert main(["job", "cancel", "nobody-1", base, "nobody-2"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if "nobody" in line] == [
        "error: no job `nobody-1`",
        "error: no job `nobody-2`",
    ]


def test_jobs_are_listed_within_bounds(tmp_path: Path, capsys: Printed):
    file = job_file(tmp_path, 'name = "bound"\ncommand = ["true"]\n')
    for _ in range(3):
        said(capsys, "job", "submit", file, "--wait")
    two = json.loads(said(capsys, "job", "list", "--limit", "2", "--json"))
    assert len(two) == 2
    lately = json.loads(said(capsys, "job", "list", "--since", "1h", "--json"))
    assert {one["name"] for one in lately} >= {"bound"}
    assert json.loads(said(capsys, "job", "list", "--since", "2100-01-01", "--json")) == []
    over = json.loads(said(capsys, "job", "list", "--state", "succeeded", "--json"))
    assert {one["state"] for one in over} == {"succeeded"}
    assert json.loads(said(capsys, "job", "list", "--team", "nobody", "--json")) == []
    assert main(["job", "list", "--since", "lately"]) == 2
    assert "--since" in capsys.readouterr().err


def test_a_listing_counts_all_jobs_that_match_and_not_only_those_it_lists(
    tmp_path: Path, capsys: Printed
):
    file = job_file(tmp_path, 'name = "counted"\narray = 5\ncommand = ["true"]\n')
    base = json.loads(said(capsys, "job", "submit", file, "--json"))["id"]
    assert "2 of 5 jobs; -n lists more" in said(capsys, "job", "list", "--array", base, "-n", "2")
    assert "\n5 jobs\n" in said(capsys, "job", "list", "--array", base)
    assert main(["job", "list", "--array", base, "-n", "2", "--json"]) == 0
    printed = capsys.readouterr()
    assert len(json.loads(printed.out)) == 2
    assert printed.err == "note: 2 of 5 jobs; -n lists more\n"
    assert json.loads(said(capsys, "job", "list", "-u", "nobody", "--json")) == []
    assert len(json.loads(said(capsys, "job", "list", "--me", "-n", "1", "--json"))) == 1


def test_chosen_columns_are_one_line_for_each_job(tmp_path: Path, capsys: Printed):
    text = "nodes = 2\ngpus_per_node = 8\n" + 'name = "wide"\ncommand = ["true"]\n'
    said(capsys, "job", "submit", job_file(tmp_path, text), "--wait")
    lines = said(capsys, "job", "list", "-n", "1", "-o", "name,gpus,nodes,state").splitlines()
    assert lines == ["name  GPUs  nodes          state", "wide    16  virtual-[1-2]  succeeded"]
    assert main(["job", "list", "-o", "colour"]) == 2
    assert "columns: job, name, team" in capsys.readouterr().err


def test_a_watched_listing_is_printed_again_until_it_is_interrupted(up: Up):
    words = [sys.executable, "-m", "tenfold", "job", "list", "-w", "--interval", "0.1", "-o", "job"]
    environment = {**os.environ, "TENFOLD_STATE_DIR": str(up.home)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as watching:
        assert watching.stdout is not None, "it was asked for"
        frames = 0
        for line in watching.stdout:
            frames += ", every 0.1 s; Ctrl-C to stop" in line
            if frames == 3:
                break
        watching.send_signal(signal.SIGINT)
        watching.communicate(timeout=HANG_S)
    assert watching.returncode == 0
    assert main(["job", "list", "--watch", "--json"]) == 2


def test_a_job_is_shown_with_its_command_resources_limits_folder_and_use(
    tmp_path: Path, capsys: Printed
):
    text = """
name = "shown"
command = ["sh", "-c", "echo a word"]
nodes = 2
gpus_per_node = 8
memory_gib_per_node = 2
time_limit = "90m"
workdir = "here"
"""
    made = said(capsys, "job", "submit", job_file(tmp_path, text), "--wait", "--json")
    job_id = json.loads(made)["id"]
    printed = said(capsys, "job", "show", job_id)
    for line in (
        "command: sh -c 'echo a word'",
        "resources: 16 GPUs, 8 per node; 2 CPUs; 4 GiB of memory",
        "time limit: 1h30m",
        "submitted: 20",
        "elapsed: ",
    ):
        assert f"\n{line}" in printed, line
    assert "/run/teams/admin/here\n" in printed
    shown = json.loads(said(capsys, "job", "show", job_id, "--json"))
    assert shown["requested"]["command"] == ["sh", "-c", "echo a word"]
    assert shown["requested"]["time_limit_s"] == 5_400
    assert (shown["gpus"], shown["gpu_hours"]) == (16, pytest.approx(0, abs=1))


def test_a_member_of_an_array_is_shown_with_its_command(tmp_path: Path, capsys: Printed):
    file = job_file(tmp_path, 'name = "each"\narray = 3\ncommand = ["echo", "x"]\n')
    base = json.loads(said(capsys, "job", "submit", file, "--json"))["id"]
    assert "command: echo x" in said(capsys, "job", "show", f"{base}[2]")


def test_the_last_lines_of_a_log_are_printed_and_followed(tmp_path: Path, capsys: Printed):
    file = job_file(tmp_path, 'name = "lines"\ncommand = ["seq", "1", "20000"]\n')
    made = said(capsys, "job", "submit", file, "--wait", "--json")
    job_id = json.loads(made)["id"]
    assert said(capsys, "job", "logs", job_id, "-n", "2") == "19999\n20000\n"
    assert said(capsys, "job", "logs", job_id, "-f", "--lines", "3") == "19998\n19999\n20000\n"
    assert said(capsys, "job", "logs", job_id, "--lines", "0") == ""
    # More than the first part of the log that is read.
    assert said(capsys, "job", "logs", job_id, "-n", "19000").startswith("1001\n1002\n")
    assert said(capsys, "job", "logs", job_id, "-n", "90000").startswith("1\n2\n")
    assert said(capsys, "job", "logs", job_id, "--tail", "6") == "20000\n"
    assert main(["job", "logs", job_id, "-n", "1", "--tail", "6"]) == 2
    assert "`--tail` and `--lines` cannot be used together" in capsys.readouterr().err
    assert main(["job", "logs", job_id, "-n", "-1"]) == 2


def test_the_old_use_of_state_for_a_recorded_run_still_works_with_a_note(
    tmp_path: Path, capsys: Printed
):
    run = tmp_path / "run.jsonl.gz"
    assert main(["job", "list", "--state", str(run)]) == 2
    old = capsys.readouterr().err
    assert f"note: --state {run} will be removed; use --bundle {run}" in old
    assert main(["job", "list", "--bundle", str(run), "--state", "failed"]) == 2
    assert "use --state pending or --state running" in capsys.readouterr().err
    assert main(["job", "list", "--state", "waiting"]) == 2
    assert "`waiting` is not a job state" in capsys.readouterr().err


def test_following_prints_what_it_wrote_and_ends_with_its_exit_code(
    tmp_path: Path, capsys: Printed
):
    file = job_file(tmp_path, 'command = ["sh", "-c", "echo a word; exit 5"]\n')
    assert "\na word\n" in said(capsys, "job", "submit", file, "--follow", status=5)
    killed = job_file(tmp_path, 'command = ["sh", "-c", "kill -9 $$"]\n')
    said(capsys, "job", "submit", killed, "--wait", status=137)


@pytest.mark.parametrize(
    ("state", "code", "status"),
    [
        ("succeeded", 0, 0),
        ("failed", 3, 3),
        ("failed", 256, 1),
        ("failed", 0, 1),
        ("failed", None, 1),
        ("cancelled", 143, 1),
        ("cancelled", None, 1),
    ],
)
def test_a_command_that_waited_ends_as_its_job_did(state: JobState, code: int | None, status: int):
    attempt = Attempt(number=1, started_at=None, ended_at=None, nodes=(), exit_code=code, reason="")
    job = Job(
        id="a-1",
        name="a",
        team="red",
        state=state,
        attempts=(attempt,),
        reason=Reason(code="c", sentence="s"),
    )
    assert exit_status(job) == status


def test_a_failure_on_another_node_is_named_with_its_log(capsys: Printed):
    script = '[ "$NODE_RANK" = 0 ] && exec sleep 60; echo broken; exit 3'
    submit = ("job", "submit", "-J", "gang", "--nodes", "2", "--gpus-per-node", "1", "--follow")
    assert main([*submit, "--", "bash", "-c", script]) == 3
    printed = capsys.readouterr()
    name = printed.out.split("`")[1]
    assert "broken" in printed.out
    how = f"process 1 on virtual-2 failed first; see `tenfold job logs {name} --rank 1`"
    assert how in printed.out
    assert how in said(capsys, "job", "show", name)
    assert main(["job", "logs", name]) == 0
    printed = capsys.readouterr()
    assert printed.out == "broken\n"
    assert "this is the log of process 0 of 2; process 1 on virtual-2 failed first" in printed.err
    assert said(capsys, "job", "logs", name, "--member", "0") == ""


def test_the_log_of_a_job_that_never_ran_says_so(capsys: Printed):
    submit = ("job", "submit", "--gpus", "99", "--allow-pending", "--json", "--", "true")
    name = json.loads(said(capsys, *submit))["id"]
    main(["job", "logs", name])
    assert f"`{name}` has no log: it has not started (pending)" in capsys.readouterr().err
    said(capsys, "job", "cancel", name)
    main(["job", "logs", name])
    assert f"`{name}` has no log: it never ran" in capsys.readouterr().err
