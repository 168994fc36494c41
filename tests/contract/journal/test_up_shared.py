"""Two `tenfold up` on one PostgreSQL: the leader is killed, paused and stopped, and jobs go on."""

import json
import os
import signal
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import make_url

from engines.postgres import Server, new_database, running_server
from patience import HANG_S, until
from tenfold.cli.main import main
from tenfold.client.client import Client
from tenfold.client.endpoint import read_address
from tenfold.model.errors import TenfoldError
from unit.up_process import LAST_LINE, Up, commands_find

pytestmark = pytest.mark.engine

GATED = 'echo $$ begun; read word < "$GATE"; echo $$ $word'
STANDS_BY = "Tenfold is on standby"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as made:
        yield made


@pytest.fixture
def journal(server: Server, request: pytest.FixtureRequest) -> str:
    url = make_url(new_database(server.address, request.node.name[-40:]))
    return url.set(drivername="postgresql").render_as_string(hide_password=False)


@pytest.fixture
def gate(tmp_path: Path) -> Generator[Path, None, None]:
    path = tmp_path / "gate"
    os.mkfifo(path)
    yield path
    with suppress(OSError):
        os.write(os.open(path, os.O_WRONLY | os.O_NONBLOCK), b"go\n")


@pytest.fixture
def pair(tmp_path: Path) -> Generator[tuple[Up, Up], None, None]:
    """Two of one state folder."""
    made = Up(tmp_path / "home"), Up(tmp_path / "home")
    yield made
    for one in made:
        if one.process is not None:
            one.process.send_signal(signal.SIGCONT)
            one.interrupt()


def begin(up: Up, journal: str, name: str = "") -> str:
    named = ("--name", name) if name else ()
    said = up.start("--virtual-nodes", "2", "--journal", journal, "--lease", "2s", *named)
    assert said[-1].startswith(LAST_LINE)
    return said[0]


def leads(up: Up) -> bool:
    """Tell whether a process has left its address, as a leader does."""
    address = read_address(up.home)
    return address is not None and up.process is not None and address.pid == up.process.pid


def test_jobs_go_on_while_leaders_are_killed_paused_and_stopped(
    pair: tuple[Up, Up],
    journal: str,
    gate: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    one, two = pair
    commands_find(one, monkeypatch)
    assert begin(one, journal).startswith("Tenfold is running")
    assert begin(two, journal, "b").startswith(STANDS_BY)
    with Client(timeout_s=HANG_S) as client:
        until(lambda: len(client.control_planes().control_planes) == 2)
        job_id = client.submit(command=["sh", "-c", GATED], env={"GATE": str(gate)}).id
        until(lambda: client.job(job_id).state == "running")

        one.kill()
        # The client waits until the other one leads; so would a command.
        taken = [client.submit(command=["true"]).id]
        assert leads(two)
        assert begin(one, journal).startswith(STANDS_BY)

        assert two.process is not None
        two.process.send_signal(signal.SIGSTOP)
        until(lambda: leads(one))
    with Client(timeout_s=HANG_S) as client:
        taken.append(client.submit(command=["true"]).id)
        two.process.send_signal(signal.SIGCONT)
        until(lambda: roles(client) == ["standby", "leader"])
        assert main(["status", "--json"]) == 0
        shown = json.loads(capsys.readouterr().out)["control_planes"]
        assert [(each["name"], each["role"]) for each in shown] == [
            ("b", "standby"),
            ("main", "leader"),
        ]
        assert "1 job is still running" in one.interrupt()
        taken.append(client.submit(command=["true"]).id)
        assert leads(two)
        gate.write_text("go\n")
        for each in (job_id, *taken):
            job = client.wait(each, timeout_s=HANG_S)
            assert (job.state, len(job.attempts)) == ("succeeded", 1)
        first, last = client.logs(job_id).splitlines()
        assert last == f"{first.removesuffix(' begun')} go"
    assert main(["down", "--name", "b"]) == 0
    two.interrupt()
    assert not (one.home / "address.json").exists()


def roles(client: Client) -> list[str]:
    with suppress(TenfoldError):
        return [each.role for each in client.control_planes().control_planes]
    return []


def test_a_second_one_without_a_name_is_refused_and_told_how(pair: tuple[Up, Up], journal: str):
    one, two = pair
    begin(one, journal)
    with pytest.raises(AssertionError) as said:
        begin(two, journal)
    assert "`--name` starts a second one" in str(said.value)


def test_one_elsewhere_could_not_see_the_jobs_and_is_refused(
    pair: tuple[Up, Up], journal: str, tmp_path: Path
):
    one, _ = pair
    begin(one, journal)
    other = Up(tmp_path / "elsewhere")
    with pytest.raises(AssertionError) as said:
        begin(other, journal)
    assert "this control plane cannot see their processes" in str(said.value)
