"""The commands against a real control plane: hand in, look, follow, take back."""

import json
from collections.abc import Generator
from pathlib import Path

import pytest

import tenfold
from patience import HANG_S
from tenfold.cli.main import main
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


def handed_in(printed: Printed, folder: Path, text: str) -> str:
    return json.loads(said(printed, "job", "submit", job_file(folder, text), "--json"))["id"]


def test_a_job_is_followed_to_its_end(tmp_path: Path, capsys: Printed):
    file = job_file(tmp_path, 'name = "hello"\ncommand = ["echo", "a word"]\n')
    text = said(capsys, "job", "submit", file, "--follow")
    assert "submitted `" in text
    assert "\na word\n" in text
    assert "succeeded, exit code 0" in text


def test_a_job_that_fails_gives_its_own_status_and_says_how(tmp_path: Path, capsys: Printed):
    file = job_file(tmp_path, 'command = ["sh", "-c", "exit 7"]\n')
    text = said(capsys, "job", "submit", file, "--wait", status=7)
    assert "failed: the command failed with exit code 7" in text
    ended = json.loads(said(capsys, "job", "submit", file, "--wait", "--json", status=7))
    assert (ended["state"], ended["attempts"][0]["exit_code"]) == ("failed", 7)


def test_a_job_is_shown_with_the_keys_of_the_contract(tmp_path: Path, capsys: Printed):
    job_id = handed_in(capsys, tmp_path, 'command = ["true"]\nname = "shown"\n')
    with tenfold.Client() as client:
        client.wait(job_id, timeout_s=HANG_S)
    shown = json.loads(said(capsys, "job", "show", job_id, "--json"))
    first = ["id", "name", "team", "state", "attempts", "reason", "eta"]
    more = ["user", "gpus", "submitted_at", "elapsed_s", "gpu_hours", "requested"]
    assert list(shown) == [*first, *more]
    assert (shown["id"], shown["state"], shown["eta"]) == (job_id, "succeeded", None)
    keys = ["number", "started_at", "ended_at", "nodes", "exit_code", "reason"]
    assert list(shown["attempts"][0]) == keys
    assert shown["reason"] == {"code": "completed", "sentence": "completed"}
    listed = json.loads(said(capsys, "job", "list", "--state", "succeeded", "--json"))
    assert [shown[key] for key in first] in [[one[key] for key in first] for one in listed]
    assert f"`{job_id}` (team `admin`, user `" in said(capsys, "job", "show", job_id)
    assert job_id in said(capsys, "job", "list", "--team", "admin")
    assert said(capsys, "job", "list", "--team", "nobody") == "0 jobs\n"


def test_a_job_that_waits_says_why_and_can_be_taken_back(tmp_path: Path, capsys: Printed):
    wide = 'name = "wide"\ncommand = ["sleep", "600"]\nnodes = 2\ngpus_per_node = 8\n'
    first, second = (handed_in(capsys, tmp_path, wide) for _ in range(2))
    assert "reason: " in said(capsys, "job", "why", second)
    answer = json.loads(said(capsys, "job", "why", second, "--quick", "--json"))
    assert (answer["id"], answer["state"]) == (second, "pending")
    assert answer["why"]["reason"]["code"]
    assert said(capsys, "job", "cancel", second) == f"`{second}` is cancelled\n"
    history = said(capsys, "job", "why", first)
    assert f"`{first}` (team `admin`" in history
    assert "attempt  started" in history
    assert "[running]" not in history
    said(capsys, "job", "cancel", first)
    with tenfold.Client() as client:
        assert client.wait(first, timeout_s=HANG_S).state == "cancelled"
    assert main(["job", "cancel", first]) == 3
    assert f"error: job `{first}` was already cancelled" in capsys.readouterr().err


def test_logs_are_printed_as_they_were_written(tmp_path: Path, capsys: Printed):
    job_id = handed_in(capsys, tmp_path, 'command = ["printf", "[bold]x[/bold]\\t1\\n"]\n')
    with tenfold.Client() as client:
        client.wait(job_id, timeout_s=HANG_S)
    assert said(capsys, "job", "logs", job_id) == "[bold]x[/bold]\t1\n"
    assert (
        said(capsys, "job", "logs", job_id, "--follow", "--attempt", "1") == "[bold]x[/bold]\t1\n"
    )
    assert said(capsys, "job", "logs", job_id, "--tail", "2") == "1\n"


def test_an_array_is_waited_for_as_a_whole(tmp_path: Path, capsys: Printed):
    text = 'array = 3\ncommand = ["sh", "-c", "exit $TENFOLD_ARRAY_INDEX"]\n'
    file = job_file(tmp_path, text)
    assert "1 succeeded\n2 failed: " in said(capsys, "job", "submit", file, "--wait", status=1)
    assert main(["job", "submit", file, "--follow"]) == 2
    assert "follow one task" in capsys.readouterr().err


def test_faults_of_a_job_file_are_named_with_their_lines(tmp_path: Path, capsys: Printed):
    bad = job_file(tmp_path, 'command = ["true"]\nnodes = 0\ncolour = "red"\n')
    assert main(["job", "submit", bad]) == 2
    told = capsys.readouterr().err
    assert "job.toml:2: " in told
    assert "job.toml:3: " in told
    good = job_file(tmp_path, 'command = ["true"]\n')
    assert "would start now on virtual-" in said(capsys, "job", "submit", good, "--dry-run")


def test_what_is_not_there_is_told_with_status_2(capsys: Printed):
    assert main(["job", "show", "nobody"]) == 2
    assert "no job `nobody`" in capsys.readouterr().err
    assert main(["job", "list", "--state", "asleep"]) == 2
    assert "states: pending, starting" in capsys.readouterr().err
    assert main(["job", "cancel"]) == 2
    capsys.readouterr()
    assert main(["node", "cordon", "nobody", "--json"]) == 2
    assert json.loads(capsys.readouterr().err)["error"]["code"] == "no-such-node"


def test_nodes_are_listed_as_virtual_and_taken_out_of_use_and_back(capsys: Printed):
    listed = said(capsys, "node", "list")
    row = next(line for line in listed.splitlines() if line.startswith("virtual-1 "))
    # GPUs allocated, GPUs free and the state.
    assert "0 8 up" in " ".join(row.split())
    assert "2 nodes, 16 GPUs" in listed
    assert said(capsys, "node", "cordon", "virtual-1") == "`virtual-1` is cordoned\n"
    nodes = json.loads(said(capsys, "node", "list", "--json"))
    assert {node["id"]: node["state"] for node in nodes}["virtual-1"] == "cordoned"
    assert said(capsys, "node", "uncordon", "virtual-1") == "`virtual-1` is up\n"


def test_a_token_sees_its_team_alone_and_nothing_once_it_is_revoked(
    up: Up, tmp_path: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
):
    foreign = handed_in(capsys, tmp_path, 'command = ["true"]\n')
    made = json.loads(said(capsys, "token", "create", "ann", "--team", "red", "--json"))
    token, record = made["token"], made["record"]
    assert token not in said(capsys, "token", "list")
    with monkeypatch.context() as ann:
        ann.setenv("TENFOLD_TOKEN", token)
        own = handed_in(capsys, tmp_path, 'command = ["true"]\n')
        listed = json.loads(said(capsys, "job", "list", "--json"))
        assert [job["id"] for job in listed] == [own]
        assert main(["job", "show", foreign]) == 2
        assert main(["token", "list"]) == 3
        capsys.readouterr()
    assert "revoked token" in said(capsys, "token", "revoke", record["id"])
    with tenfold.Client(token=token) as client, pytest.raises(tenfold.TenfoldError) as wrong:
        client.who_am_i()
    assert wrong.value.code == "token-revoked"


def test_a_second_control_plane_in_the_same_folder_is_refused(up: Up, capsys: Printed):
    assert up.process is not None
    assert main(["up", "--listen", "127.0.0.1:0"]) == 3
    assert f"with PID {up.process.pid}" in capsys.readouterr().err


def test_a_control_plane_says_what_is_wrong_with_its_options(tmp_path: Path, capsys: Printed):
    home = ["--home", str(tmp_path / "other")]
    assert main(["up", "--listen", "7410", *home]) == 2
    assert "must be an address and port" in capsys.readouterr().err
    assert main(["up", "--listen", "0.0.0.0:0", *home]) == 3
    assert "tokens would be sent unencrypted" in capsys.readouterr().err
    assert main(["up", "--fleet", "f.toml", "--virtual-nodes", "2", *home]) == 2
    assert "leave out one" in capsys.readouterr().err
    assert main(["up", "--virtual-nodes", "0", *home]) == 2
    capsys.readouterr()
    assert main(["up", "--policy", "magic", *home]) == 2
    assert "unknown policy `magic`" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main(["up", "--home", str(tmp_path / "file")]) == 2
    assert "cannot use the state directory" in capsys.readouterr().err
