"""One's own script against a real control plane: in the foreground, by command, from a pipe."""

import io
import json
import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import pytest

from patience import HANG_S, until
from tenfold.cli.main import main
from tenfold.client.client import Client
from tenfold.model.errors import Refused
from unit.up_process import Up, commands_find, running

Printed = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Generator[Up, None, None]:
    with running(tmp_path_factory.mktemp("up") / "home", "--virtual-nodes", "2") as made:
        yield made


@pytest.fixture
def project(up: Up, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    commands_find(up, monkeypatch)
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_a_command_runs_in_the_folder_of_the_submitter_and_passes_its_exit_code_on(
    project: Path, capfd: pytest.CaptureFixture[str]
):
    (project / "train.sh").write_text("pwd; echo trouble >&2; exit 7\n")
    assert main(["job", "run", "--gpus", "8", "--", "sh", "train.sh"]) == 7
    printed = capfd.readouterr()
    assert printed.out.splitlines() == [str(project), "trouble"]
    assert "submitted `train-" in printed.err
    assert "failed: the command failed with exit code 7" in printed.err


def test_a_signal_is_passed_on_as_shells_do(project: Path):
    assert main(["job", "run", "--", "sh", "-c", "kill -9 $$"]) == 128 + signal.SIGKILL


def test_lines_of_several_processes_are_labelled(project: Path, capfd: pytest.CaptureFixture[str]):
    words = ["--nodes", "2", "--gpus-per-node", "1", "-l", "--", "sh", "-c", "echo one; echo two"]
    assert main(["job", "run", *words]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert sorted(lines) == ["0: one", "0: two", "1: one", "1: two"]


def test_the_job_gets_the_programs_of_the_submitter_and_the_variables_that_are_passed(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    (project / "bin").mkdir()
    (project / "bin" / "mine").write_text('#!/bin/sh\necho "$A $B ${C-unset}"\n')
    (project / "bin" / "mine").chmod(0o755)
    monkeypatch.setenv("PATH", f"{project / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("B", "own")
    monkeypatch.setenv("C", "kept here")
    assert main(["job", "run", "--env", "A=given", "-e", "B", "--", "mine"]) == 0
    assert capfd.readouterr().out == "given own unset\n"


def test_ctrl_c_cancels_the_job_and_is_the_exit_status(project: Path, up: Up):
    words = [sys.executable, "-m", "tenfold", "job", "run", "--", "sh", "-c"]
    script = 'trap "echo stopping; exit 0" TERM; echo started; while :; do sleep 0.05; done'
    with subprocess.Popen([*words, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as one:
        assert one.stdout is not None
        assert one.stdout.readline() == b"started\n"
        one.send_signal(signal.SIGINT)
        out, err = one.communicate(timeout=HANG_S)
    assert out.endswith(b"stopping\n")
    assert one.returncode == 130
    assert b"cancelling `sh-" in err


def test_while_it_is_pending_the_reason_is_printed(
    project: Path, capfd: pytest.CaptureFixture[str]
):
    held = ["--nodes", "2", "--gpus-per-node", "8", "--", "sleep", "600"]
    assert main(["job", "submit", "--name", "held", "--json", *held]) == 0
    held_id = json.loads(capfd.readouterr().out)["id"]
    words = [sys.executable, "-m", "tenfold", "job", "run", "--gpus", "1", "--", "echo", "through"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as one:
        assert one.stderr is not None
        assert b"submitted" in one.stderr.readline()
        assert b"is pending: " in one.stderr.readline()
        assert main(["job", "cancel", held_id]) == 0
        out, _ = one.communicate(timeout=HANG_S)
    assert (one.returncode, out) == (0, b"through\n")


def test_a_job_file_of_one_line_comes_over_a_pipe_and_options_override_it(
    project: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
):
    text = b'command = ["sh", "-c", "exit 4"]\n'
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert main(["job", "submit", "-", "--wait", "--name", "piped"]) == 4
    assert "submitted `piped-" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--", "true"], ""),
        (["run"], "no command given"),
        (["run", "job.toml"], "`job.toml` is a job file, not a command"),
        (["submit"], "no job file and no command given"),
        (["run", "--nodes", "0", "--", "true"], "`--nodes` expects a whole number from 1"),
        (["run", "--time-limit", "soon", "--", "true"], "`--time-limit` expects a duration"),
        (["run", "--env", "CUDA_VISIBLE_DEVICES=1", "--", "true"], "which only Tenfold may set"),
        (["run", "--env", "NOT_SET_HERE", "--", "true"], "but it is not set"),
        (["run", "--mem", "64", "--", "true"], "a size with a unit"),
        (["submit", "own.py"], "tenfold job submit -- python own.py"),
        (["submit", "own.sh"], "tenfold job submit -- bash own.sh"),
    ],
)
def test_options_are_checked_as_keys_of_a_job_file(
    words: list[str], said: str, project: Path, capsys: Printed
):
    for name in ("own.py", "own.sh"):
        (project / name).touch()
    assert main(["job", *words]) == (2 if said else 0)
    assert said in capsys.readouterr().err


def test_the_state_of_the_code_is_recorded_without_secrets(project: Path, capsys: Printed):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    (project / "train.py").write_text("lr = 1\n")
    (project / ".env").write_text("KEY=old\n")
    for words in (["init", "-qb", "main"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True)
    (project / "train.py").write_text('lr = 2\napi_key = "sk-aaaaaaaaaaaaaaaaaaaa"\n')
    (project / ".env").write_text("KEY=hunter2\n")
    (project / "new.py").touch()
    assert main(["job", "submit", "--env", "PASSWORD=letmein", "--json", "--", "true"]) == 0
    job_id = json.loads(capsys.readouterr().out)["id"]
    assert main(["job", "show", job_id]) == 0
    text = capsys.readouterr().out
    assert f"working directory: {project}\n" in text
    assert "on main, uncommitted changes (diff of " in text
    assert "1 untracked file" in text
    assert "PASSWORD" in text
    assert main(["job", "show", job_id, "--diff"]) == 0
    diff = capsys.readouterr().out
    assert "+lr = 2" in diff
    assert "api_key = ***" in diff
    for secret in ("hunter2", "sk-aaa", "letmein"):
        assert secret not in diff + text
    assert main(["job", "submit", "--no-snapshot", "--json", "--", "true"]) == 0
    bare = json.loads(capsys.readouterr().out)["id"]
    assert main(["job", "show", bare, "--diff"]) == 1


@pytest.fixture
def running_job(project: Path, capsys: Printed) -> Generator[str, None, None]:
    assert main(["job", "submit", "--gpus", "2", "--json", "--", "sleep", "600"]) == 0
    job_id = json.loads(capsys.readouterr().out)["id"]
    with Client() as client:
        until(lambda: client.job(job_id).state == "running")
        yield job_id
        with suppress(Refused):
            client.cancel(job_id)


def test_a_command_in_a_running_job_has_its_folder_and_devices_and_passes_its_exit_code_on(
    running_job: str, project: Path
):
    words = [sys.executable, "-m", "tenfold", "job", "shell", running_job]
    script = 'pwd; echo "$CUDA_VISIBLE_DEVICES"; cat; echo oops >&2; exit 5'
    words += ["--", "sh", "-c", script]
    done = subprocess.run(words, input=b"typed\n", capture_output=True, timeout=HANG_S, check=False)
    assert done.stdout.decode().splitlines() == [str(project), "0,1", "typed"]
    assert (done.stderr, done.returncode) == (b"oops\n", 5)


def test_a_shell_on_a_terminal_gets_one_and_ends_with_its_job(running_job: str):
    terminal, theirs = pty.openpty()
    words = [sys.executable, "-m", "tenfold", "job", "shell", running_job]
    one = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    # Typed once the shell has printed its prompt: until then, keys may be echoed by this terminal.
    seen = _seen(terminal, b"$ ", b"# ")
    os.write(terminal, b"tty; echo a$((40 + 2))b\n")
    seen += _seen(terminal, b"a42b")
    assert b"/dev/pts/" in seen
    assert main(["job", "cancel", running_job]) == 0
    _seen(terminal, b"ended")
    assert one.wait(HANG_S) == 1
    os.close(terminal)


def _seen(terminal: int, *wanted: bytes) -> bytes:
    """Read a terminal until one of these is printed."""
    seen = b""
    while not any(one in seen for one in wanted):
        assert select.select([terminal], [], [], HANG_S)[0], seen
        seen += os.read(terminal, 4_096)
    return seen


def test_no_shell_is_opened_in_a_job_that_does_not_run(project: Path, capsys: Printed):
    assert main(["job", "submit", "--wait", "--json", "--", "true"]) == 0
    job_id = json.loads(capsys.readouterr().out)["id"]
    assert main(["job", "shell", job_id, "--", "true"]) == 3
    told = capsys.readouterr().err
    assert f"job `{job_id}` has ended (succeeded)" in told
    assert f"`tenfold job logs {job_id}` shows its output" in told
    assert main(["job", "shell", "nobody-1"]) == 2
