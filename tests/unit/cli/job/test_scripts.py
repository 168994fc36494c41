"""What a script may rely on: exit codes, Ctrl-C, words and JSON, against a real control plane."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from patience import HANG_S
from tenfold.cli.main import main
from tenfold.server.runtime.serve import local_name
from unit.up_process import Up, commands_find, running

Printed = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Generator[Up, None, None]:
    # A home that nobody would choose, to be lived in all the same.
    home = tmp_path_factory.mktemp("up") / "mein häuschen 家"
    with running(home, "--virtual-nodes", "3") as made:
        yield made


@pytest.fixture(autouse=True)
def asked_here(up: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    commands_find(up, monkeypatch)


def job_file(folder: Path, script: str, more: str = "") -> str:
    path = folder / "job.toml"
    path.write_text(f"command = ['sh', '-c', '''{script}''']\n{more}\n")
    return str(path)


def asked(printed: Printed, *words: str) -> tuple[int, str, str]:
    status = main(words)
    said = printed.readouterr()
    return status, said.out, said.err


@pytest.mark.parametrize("how", ["--wait", "--follow"])
@pytest.mark.parametrize(
    ("script", "status", "said"),
    [
        ("exit 0", 0, "completed"),
        ("exit 7", 7, "the command failed with exit code 7"),
        ("kill -9 $$", 137, "the command failed with exit code 137 (SIGKILL)"),
    ],
)
def test_a_command_that_waited_ends_as_the_job_did(
    tmp_path: Path, capsys: Printed, how: str, script: str, status: int, said: str
):
    found, out, _ = asked(capsys, "job", "submit", job_file(tmp_path, script), how)
    assert found == status
    assert out.splitlines()[-1].endswith(said)


def test_a_job_whose_time_was_up_ends_with_its_signal_and_is_listed_so(
    tmp_path: Path, capsys: Printed
):
    file = job_file(tmp_path, "exec sleep 600", 'time_limit = "500ms"')
    status, out, _ = asked(capsys, "job", "submit", file, "--wait")
    assert status == 143
    assert "exceeded its time limit" in out
    assert "timeout" in asked(capsys, "job", "list", "--limit", "1")[1]


def test_an_array_of_which_one_failed_gives_1_and_all_of_it_as_json(
    tmp_path: Path, capsys: Printed
):
    file = job_file(tmp_path, "exit $TENFOLD_ARRAY_INDEX", "array = 3")
    status, out, _ = asked(capsys, "job", "submit", file, "--wait", "--json")
    assert status == 1
    assert [one["attempts"][0]["exit_code"] for one in json.loads(out)] == [0, 1, 2]
    status, out, _ = asked(capsys, "job", "submit", file, "--json")
    made = json.loads(out)
    assert (status, made["count"], len(made["members"])) == (0, 3, 3)
    assert asked(capsys, "job", "submit", file, "--follow")[0] == 2


def test_faults_give_2_and_a_control_plane_that_is_not_there_4(
    tmp_path: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
):
    wrong = job_file(tmp_path, "true", "nodes = 0")
    assert asked(capsys, "job", "submit", wrong, "--wait")[0] == 2
    monkeypatch.setenv("TENFOLD_STATE_DIR", str(tmp_path / "nobody"))
    right = job_file(tmp_path, "true")
    assert asked(capsys, "job", "submit", right, "--wait")[0] == 4


@pytest.mark.parametrize("words", [("job", "submit"), ("job", "logs")])
def test_ctrl_c_leaves_the_job_and_says_so(tmp_path: Path, capsys: Printed, words: tuple[str, ...]):
    what = job_file(tmp_path, "echo begun; exec sleep 600", 'grace = "1s"')
    if words == ("job", "logs"):
        what = json.loads(asked(capsys, "job", "submit", what, "--json")[1])["id"]
    child = subprocess.Popen(
        [sys.executable, "-m", "tenfold", *words, what, "--follow"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ},
    )
    assert child.stdout is not None
    while child.stdout.readline() != "begun\n":
        pass
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=HANG_S)
    assert child.returncode == 130
    assert "keeps running; cancel it with `tenfold job cancel" in said
    (newest,) = json.loads(asked(capsys, "job", "list", "--limit", "1", "--json")[1])
    assert newest["state"] == "running"
    assert newest["id"] in said
    assert asked(capsys, "job", "cancel", newest["id"])[0] == 0
    status, out, _ = asked(capsys, "job", "logs", newest["id"], "--follow")
    assert (status, out) == (0, "begun\n")
    assert f"cancelled by {local_name()}" in asked(capsys, "job", "list", "--limit", "1")[1]


def test_what_is_not_looked_at_is_said_beside_the_name(tmp_path: Path, capsys: Printed):
    file = job_file(tmp_path, "true", "priority = 3")
    _, out, _ = asked(capsys, "job", "submit", file)
    assert "note: policy `tenfold` ignores `priority`" in out
    assert json.loads(asked(capsys, "job", "submit", file, "--json")[1])["notes"]
    _, out, _ = asked(capsys, "job", "submit", file, "--dry-run")
    assert "note: policy `tenfold` ignores `priority`" in out


def test_a_log_that_was_too_long_says_what_is_gone_and_what_is_not_shown(
    tmp_path: Path, capsys: Printed
):
    file = job_file(tmp_path, "yes 0123456789 | head -c 90000000; echo end")
    _, out, _ = asked(capsys, "job", "submit", file, "--wait", "--json")
    made = json.loads(out)["id"]
    _, out, err = asked(capsys, "job", "logs", made)
    assert out.endswith("end\n")
    assert "showing the last 64 KiB" in err
    assert "bytes of the log of attempt 1 were dropped" in err
    assert "bytes of the log of attempt 1 were dropped" in asked(capsys, "job", "show", made)[1]
    assert "note" not in asked(capsys, "job", "logs", made, "--tail", "4")[2].split("dropped")[1]


def test_nodes_are_asked_for_all_at_once(capsys: Printed):
    status, out, err = asked(capsys, "node", "fail", "virtual-[1-9]")
    assert (status, out) == (2, "")
    assert "no such node: `virtual-4`, `virtual-5`" in err
    status, out, _ = asked(
        capsys, "node", "cordon", "virtual-[1-2]", "virtual-3", "--cause", "rack"
    )
    assert status == 0
    assert len(out.splitlines()) == 3
    _, out, _ = asked(capsys, "node", "list")
    assert out.count("rack") == 3
    assert out.count("cordoned") == 3
    assert asked(capsys, "node", "uncordon", "virtual-[1-3]")[0] == 0
    assert asked(capsys, "node", "fail")[0] == 2


def test_a_log_of_an_attempt_or_process_that_does_not_exist_is_an_error(
    tmp_path: Path, capsys: Printed
):
    _, out, _ = asked(capsys, "job", "submit", job_file(tmp_path, "echo here"), "--wait", "--json")
    made = json.loads(out)["id"]
    assert asked(capsys, "job", "logs", made)[:2] == (0, "here\n")
    status, out, err = asked(capsys, "job", "logs", made, "--attempt", "7")
    assert (status, out) == (2, "")
    assert err.splitlines()[0] == f"error: `{made}` has no attempt 7: it has 1 attempt"
    status, out, err = asked(capsys, "job", "logs", made, "--member", "9")
    assert (status, out) == (2, "")
    assert err.splitlines() == [
        f"error: `{made}` has no process 9",
        "hint: attempt 1 has only process 0",
    ]


@pytest.mark.parametrize("words", [("job", "why"), ("job", "logs")])
def test_an_array_is_not_taken_for_a_missing_job(
    tmp_path: Path, capsys: Printed, words: tuple[str, str]
):
    file = job_file(tmp_path, "true", "array = 3")
    made = json.loads(asked(capsys, "job", "submit", file, "--json")[1])["id"]
    status, _, err = asked(capsys, *words, made)
    assert status == 2
    assert err.splitlines() == [
        f"error: `{made}` is an array of 3 jobs",
        f"hint: name one of its jobs, such as `{made}[0]`",
    ]


def test_a_change_that_was_made_before_says_so(capsys: Printed):
    assert asked(capsys, "node", "cordon", "virtual-2")[1] == "`virtual-2` is cordoned\n"
    assert asked(capsys, "node", "cordon", "virtual-2")[1] == "`virtual-2` is already cordoned\n"
    assert asked(capsys, "node", "uncordon", "virtual-2")[1] == "`virtual-2` is up\n"
    _, out, _ = asked(capsys, "token", "create", "ops", "--team", "ops", "--json")
    made = json.loads(out)["record"]["id"]
    assert asked(capsys, "token", "revoke", made)[1] == f"revoked token `{made}` of `ops`\n"
    again = asked(capsys, "token", "revoke", made)[1]
    assert again.startswith(f"token `{made}` of `ops` was already revoked (20")


def test_a_running_job_does_not_give_its_state_as_the_reason(tmp_path: Path, capsys: Printed):
    file = job_file(tmp_path, "echo begun; exec sleep 600", 'grace = "1s"')
    made = json.loads(asked(capsys, "job", "submit", file, "--json")[1])["id"]
    while json.loads(asked(capsys, "job", "show", made, "--json")[1])["state"] != "running":
        pass
    assert "reason:" not in asked(capsys, "job", "show", made)[1]
    assert asked(capsys, "job", "cancel", made)[0] == 0
