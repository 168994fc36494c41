"""Slurm's commands: argv in, text out, and clear errors."""

from pathlib import Path

import pytest

from tenfold.live.slurm.attach.gather import slurm_environment
from tenfold.live.slurm.commands import SlurmCommands
from tenfold.model.errors import Unreachable

NODES = ("scontrol", "show", "nodes")


def fake(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str, name: str = "scontrol") -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin")


def test_slurm_with_json_is_queried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fake(tmp_path, monkeypatch, '[ "$3" = --json ] && echo "{}"')
    commands = SlurmCommands()
    assert commands.run_json(*NODES) == "{}\n"
    assert (commands.cost.calls, commands.cost.bytes_read) == (1, 3)
    assert commands.cost.seconds > 0


@pytest.mark.parametrize(
    "complaint",
    ["scontrol: unrecognized option '--json'", "fatal: cannot find serializer plugin for json"],
)
def test_slurm_without_json_is_queried_for_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, complaint: str
):
    body = f'[ -z "$3" ] && echo NodeName=n1 CPUTot=4 && exit 0; echo "{complaint}" >&2; exit 1'
    fake(tmp_path, monkeypatch, body)
    assert SlurmCommands().run_json(*NODES) == "NodeName=n1 CPUTot=4\n"


@pytest.mark.parametrize(
    "body", ["exit 1", "echo 'Unable to contact slurm controller' >&2; exit 1"]
)
def test_a_slurm_that_fails_is_unreachable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str
):
    fake(tmp_path, monkeypatch, body)
    with pytest.raises(Unreachable, match="`scontrol show nodes` failed: "):
        SlurmCommands().run_json(*NODES)


def test_a_slurm_that_hangs_is_unreachable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fake(tmp_path, monkeypatch, "exec sleep 60")
    with pytest.raises(Unreachable, match=r"timed out after 0\.2 s"):
        SlurmCommands(timeout_s=0.2).run_json(*NODES)


def test_a_machine_without_slurm_is_named_with_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unreachable, match="`scontrol` is not installed here") as caught:
        SlurmCommands().run(*NODES)
    assert "login node" in caught.value.hint


def test_input_reaches_the_command_and_nothing_is_a_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    fake(tmp_path, monkeypatch, 'cat; printf %s "$1"', name="sbatch")
    assert SlurmCommands().run("sbatch", "$(id); `id`", stdin="script\n") == "script\n$(id); `id`"


def test_settings_of_the_users_shell_do_not_narrow_what_is_read():
    shell = {"PATH": "/bin", "SLURM_CONF": "/c", "SQUEUE_STATES": "RUNNING", "SACCT_FORMAT": "User"}
    assert slurm_environment(shell) == {
        "PATH": "/bin",
        "SLURM_CONF": "/c",
        "SLURM_TIME_FORMAT": "%s",
        "SQUEUE_ALL": "1",
        "SCONTROL_ALL": "1",
    }
