"""`tenfold up` with its journal in a PostgreSQL that really runs, and that goes away."""

import os
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from sqlalchemy import make_url

import tenfold
from engines.postgres import Server, new_database, running_server
from patience import HANG_S, until
from tenfold.cli.main import main
from tenfold.client.endpoint import read_address
from unit.up_process import Up

pytestmark = pytest.mark.engine

PASSWORD = "sesame-open-4711"
GATED = 'echo $$ begun; read word < "$GATE"; echo $$ $word'


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as made:
        yield made


@pytest.fixture
def journal(server: Server, request: pytest.FixtureRequest) -> str:
    """The address of an empty database, with a password in it."""
    name = request.node.name[-40:]
    url = make_url(new_database(server.address, name))
    # A plain address, as people write it.
    plain = url.set(drivername="postgresql", password=PASSWORD)
    return plain.render_as_string(hide_password=False)


@pytest.fixture
def gate(tmp_path: Path) -> Generator[Path, None, None]:
    path = tmp_path / "gate"
    os.mkfifo(path)
    yield path
    with suppress(OSError):
        os.write(os.open(path, os.O_WRONLY | os.O_NONBLOCK), b"go\n")


def asking(up: Up) -> httpx.Client:
    """Return a client that asks once, and is told of trouble."""
    at = read_address(up.home)
    assert at is not None
    headers = {"Authorization": f"Bearer {at.token}"}
    return httpx.Client(base_url=at.url, headers=headers, timeout=HANG_S)


def begun(client: httpx.Client, gate: Path) -> str:
    ask = {"name": "gated", "command": ["sh", "-c", GATED], "env": {"GATE": str(gate)}}
    made = client.post("/api/v1/jobs", json=ask).json()["id"]
    until(lambda: state_of(client, made) == "running")
    return made


def state_of(client: httpx.Client, job_id: str) -> str:
    return client.get(f"/api/v1/jobs/{job_id}").json().get("state", "")


def is_ready(client: httpx.Client) -> bool:
    return client.get("/readyz").status_code == 200


def hand_in(client: httpx.Client, taken: list[str]) -> int:
    """Hand in a job; note it where it was acknowledged."""
    answer = client.post("/api/v1/jobs", json={"command": ["true"]})
    if answer.status_code == 201:
        taken.append(answer.json()["id"])
    else:
        assert answer.status_code == 503, answer.text
        assert PASSWORD not in answer.text
    return answer.status_code


def check_no_password(home: Path, said: str) -> None:
    assert PASSWORD not in said
    for path in home.rglob("*"):
        if path.is_file() and not path.is_symlink():
            assert PASSWORD.encode() not in path.read_bytes(), path


def test_jobs_are_found_again_after_the_control_plane_was_killed(up: Up, journal: str, gate: Path):
    said = up.start("--virtual-nodes", "2", "--journal", journal)
    assert not (up.home / "journal.db").exists()
    with asking(up) as client:
        ask = {"name": "ann", "team": "red", "role": "member"}
        made = client.post("/api/v1/tokens", json=ask)
        assert made.status_code == 201
        job_id = begun(client, gate)
    up.kill()
    said += up.start("--virtual-nodes", "2", "--journal", journal)
    with asking(up) as client:
        red = {"Authorization": f"Bearer {made.json()['token']}"}
        assert client.get("/api/v1/whoami", headers=red).json()["team"] == "red"
        (told,) = client.get("/api/v1/jobs").json()["jobs"]
        assert (told["id"], told["state"], len(told["attempts"])) == (job_id, "running", 1)
        gate.write_text("go\n")
        until(lambda: state_of(client, job_id) == "succeeded")
        first, last = client.get(f"/api/v1/jobs/{job_id}/logs").text.splitlines()
        assert last == f"{first.removesuffix(' begun')} go"
    check_no_password(up.home, "\n".join([*said, up.interrupt()]))


def test_nothing_acknowledged_is_lost_when_connections_are_cut(
    up: Up, journal: str, server: Server
):
    database = make_url(journal).database
    assert database is not None
    up.start("--virtual-nodes", "2", "--journal", journal)
    taken: list[str] = []
    with asking(up) as client, ThreadPoolExecutor() as pool:
        statuses = [pool.submit(hand_in, client, taken) for _ in range(200)]
        cut = [
            server.cut_off(database)
            for place, _ in enumerate(as_completed(statuses))
            if place % 25 == 10
        ]
        told = [one.result() for one in statuses]
        assert sum(cut) > 5
        until(lambda: hand_in(client, taken) == 201)
        assert set(told) <= {201, 503}
        assert told.count(201) + 1 == len(taken)
        until(lambda: is_ready(client))
        for job_id in taken:
            until(lambda job_id=job_id: state_of(client, job_id) == "succeeded")
        told = client.get("/api/v1/jobs", params={"limit": 1000}).json()["jobs"]
        assert all(len(one["attempts"]) == 1 for one in told)
        assert {one["id"] for one in told} >= set(taken)
    check_no_password(up.home, up.interrupt())


def test_it_says_that_the_database_is_away_and_goes_on_when_it_is_back(
    up: Up, journal: str, server: Server, gate: Path
):
    up.start("--virtual-nodes", "2", "--journal", journal)
    taken: list[str] = []
    with asking(up) as client:
        job_id = begun(client, gate)
        assert hand_in(client, taken) == 201
        server.stop()
        try:
            until(lambda: not is_ready(client))
            said = client.get("/readyz").text
            assert client.get("/healthz").status_code == 200
            assert hand_in(client, taken) == 503
            # It ends while nobody can write that down.
            gate.write_text("go\n")
        finally:
            server.start()
        until(lambda: is_ready(client))
        until(lambda: hand_in(client, taken) == 201)
        for one in (*taken, job_id):
            until(lambda one=one: state_of(client, one) == "succeeded")
        assert len(client.get(f"/api/v1/jobs/{job_id}").json()["attempts"]) == 1
    check_no_password(up.home, said + up.interrupt())


def test_the_journal_commands_work_on_it(
    up: Up, journal: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    up.start("--virtual-nodes", "2", "--journal", journal)
    with tenfold.Client() as client:
        client.wait(client.submit(command=["true"]).id, timeout_s=HANG_S)
    monkeypatch.setenv("TENFOLD_JOURNAL", journal)
    for verb in ("info", "verify"):
        assert main(["journal", verb]) == 0
    assert main(["journal", "compact", "--keep-days", "0"]) == 0
    assert main(["journal", "verify"]) == 0
    assert main(["journal", "backup", "copy.db"]) == 2
    up.interrupt()
    told = capsys.readouterr()
    assert "1 event" not in told.err
    assert "pg_dump" in told.err
    assert PASSWORD not in told.out + told.err
    assert "postgresql+psycopg://postgres:***@" in told.out


def test_a_database_that_is_not_there_is_told_without_its_password(up: Up):
    url = f"postgresql://tenfold:{PASSWORD}@127.0.0.1:9/tenfold"
    with pytest.raises(AssertionError) as said:
        up.start("--virtual-nodes", "2", "--journal", url)
    assert "the journal `postgresql+psycopg://tenfold:***@127.0.0.1:9/tenfold" in str(said.value)
    check_no_password(up.home, str(said.value))
