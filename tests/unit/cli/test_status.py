"""`tenfold status` and `tenfold whoami` against a real control plane."""

import json
from collections.abc import Generator
from pathlib import Path

import pytest

from patience import until
from tenfold.cli.main import main
from tenfold.server.runtime.serve import local_name
from unit.up_process import Up, commands_find, running

Printed = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Generator[Up, None, None]:
    with running(tmp_path_factory.mktemp("up") / "home", "--virtual-nodes", "3") as made:
        yield made


@pytest.fixture(autouse=True)
def asked_here(up: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    commands_find(up, monkeypatch)


def said(printed: Printed, *words: str) -> str:
    assert main(words) == 0
    return printed.readouterr().out


def test_whoami_names_the_user_the_team_the_role_and_the_control_plane(capsys: Printed):
    text = said(capsys, "whoami")
    assert text.startswith(f"`{local_name()}`: team `admin`, role admin\n")
    assert "control plane: http://127.0.0.1:" in text
    told = json.loads(said(capsys, "whoami", "--json"))
    assert (told["token"]["name"], told["token"]["role"]) == (local_name(), "admin")


def test_status_shows_the_fleet_the_queue_the_alarms_and_my_jobs(tmp_path: Path, capsys: Printed):
    text = said(capsys, "status")
    assert ", ready\n" in text
    for line in ("nodes: 3 up", "GPUs: 24 free", "jobs: none", "alarms: none"):
        assert f"\n{line}" in text, line
    assert "your jobs: none pending or running" in text
    file = tmp_path / "job.toml"
    file.write_text('gpus_per_node = 8\nnodes = 2\ncommand = ["sleep", "600"]\narray = 12\n')
    said(capsys, "job", "submit", str(file))
    said(capsys, "node", "fail", "virtual-3", "--cause", "leaf-switch")
    # The fleet follows the journal and may be a few tenths of a second behind.
    down = "alarm: 1 node down (leaf-switch): virtual-3\n"
    until(lambda: down in said(capsys, "status"))
    text = said(capsys, "status")
    assert "10 of 12 jobs; `tenfold job list --me` lists more" in text
    said(capsys, "node", "cordon", "virtual-1", "--cause", "swap a DIMM")
    cordoned = "alarm: 1 node cordoned (swap a DIMM (by "
    until(lambda: cordoned in said(capsys, "status"))
    said(capsys, "node", "uncordon", "virtual-1")
    told = json.loads(said(capsys, "status", "--json"))
    assert sum(told["my_jobs"].values()) == 12
    assert len(told["jobs"]) == 10
    assert told["ready"] is True
    said(capsys, "job", "cancel", "job-1")


def test_a_member_sees_only_the_jobs_of_its_team(
    up: Up, capsys: Printed, monkeypatch: pytest.MonkeyPatch
):
    token = said(capsys, "token", "create", "ann", "--team", "red").strip()
    monkeypatch.setenv("TENFOLD_TOKEN", token)
    assert "`ann`: team `red`, role member" in said(capsys, "whoami")
    text = said(capsys, "status")
    assert "jobs of team `red`: none" in text
