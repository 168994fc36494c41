"""The server as a program: who can reach it, what it leaves behind, and that jobs go on."""

import json
import signal
import stat
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import httpx
import pytest

from patience import HANG_S, until
from tenfold.client.endpoint import read_address
from tenfold.live.local.executor import LocalExecutor
from tenfold.model.errors import InputError, Refused
from tenfold.server.runtime.serve import local_name
from tenfold.server.runtime.settings import Settings, check, is_loopback, listen, url_of

PROGRAM = """
import sys
from pathlib import Path
import msgspec
from tenfold.model.fleet.node import Node
from tenfold.server.runtime.serve import run
from tenfold.server.runtime.settings import Settings
node = Node(id="n1", pool="p", site="s", gpus=4, cpus_milli=8000)
def say(what):
    print(msgspec.json.encode(what).decode(), flush=True)
say(run(Settings(state_dir=Path(sys.argv[1]), nodes=(node,), port=0), say))
"""


@pytest.fixture
def home(tmp_path: Path) -> Generator[Path, None, None]:
    path = tmp_path / "home"
    yield path
    if (path / "run").exists():
        executor = LocalExecutor(str(path / "run"))
        for one in executor.attempts():
            executor.stop(one.job_id, one.attempt, 0)
        until(lambda: all(one.end for one in executor.attempts()))
        executor.stop_spawner()
        executor.close()


class Served:
    """A server in a process of its own."""

    def __init__(self, home: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(home)], stdout=subprocess.PIPE, text=True
        )
        self.said = self._line()

    def _line(self) -> dict[str, str]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def client(self, token: str) -> httpx.Client:
        return httpx.Client(
            base_url=self.said["url"], headers={"Authorization": f"Bearer {token}"}, timeout=HANG_S
        )

    def stop(self, by: int) -> dict[str, str]:
        self.process.send_signal(by)
        last = self._line()
        assert self.process.wait(30) == 0
        return last


def test_jobs_go_on_while_the_server_is_down_and_are_found_again(home: Path):
    first = Served(home)
    admin = first.said["admin_token"]
    with first.client(admin) as client:
        ask = {"command": ["sh", "-c", "echo begun; sleep 600"]}
        made = client.post("/api/v1/jobs", json=ask).json()["id"]
        until(lambda: client.get(f"/api/v1/jobs/{made}").json()["state"] == "running")
        until(lambda: client.get(f"/api/v1/jobs/{made}/logs").text == "begun\n")
        found = read_address(home)
        assert found is not None
        assert found.url == first.said["url"]
        with first.client(found.token) as local:
            assert local.get("/api/v1/whoami").json()["name"] == local_name()
    assert first.stop(signal.SIGTERM) == {"jobs_alive": 1}
    assert read_address(home) is None
    assert [
        path.name for path in home.rglob("*") if stat.S_IMODE(path.lstat().st_mode) & 0o077
    ] in (
        [],
        ["cwd"],
    )
    second = Served(home)
    assert second.said["admin_token"] is None
    with second.client(admin) as client:
        until(lambda: client.get("/readyz").status_code == 200)
        told = client.get(f"/api/v1/jobs/{made}").json()
        assert (told["state"], len(told["attempts"])) == ("running", 1)
        assert client.delete(f"/api/v1/jobs/{made}").status_code == 202
        until(lambda: client.get(f"/api/v1/jobs/{made}").json()["state"] == "cancelled")
        with second.client(found.token) as old:
            assert old.get("/api/v1/whoami").status_code == 401
    assert second.stop(signal.SIGINT) == {"jobs_alive": 0}
    for path in home.rglob("*"):
        if path.is_file() and not path.is_symlink():
            assert admin.encode() not in path.read_bytes(), path


def test_others_reach_it_over_tls_or_when_told_so(tmp_path: Path):
    with pytest.raises(Refused) as refused:
        check(Settings(state_dir=tmp_path, host="0.0.0.0"))
    assert refused.value.code == "not-encrypted"
    check(Settings(state_dir=tmp_path, host="0.0.0.0", insecure=True))
    check(Settings(state_dir=tmp_path, host="::1"))
    with pytest.raises(InputError) as half:
        check(Settings(state_dir=tmp_path, tls_certificate=tmp_path / "cert.pem"))
    assert half.value.code == "tls-half"
    pair = {"tls_certificate": tmp_path / "cert.pem", "tls_key": tmp_path / "key.pem"}
    with pytest.raises(InputError) as missing:
        check(Settings(state_dir=tmp_path, host="0.0.0.0", **pair))
    assert missing.value.code == "no-such-file"
    for path in pair.values():
        path.touch()
    check(Settings(state_dir=tmp_path, host="0.0.0.0", **pair))


def test_only_addresses_of_this_machine_are_loopback():
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost"))
    assert not any(is_loopback(host) for host in ("0.0.0.0", "::", "10.0.0.1", "example.org", ""))


def test_the_address_that_is_told_can_be_asked_from_this_machine(tmp_path: Path):
    for host, told in (("0.0.0.0", "127.0.0.1"), ("127.0.0.1", "127.0.0.1")):
        made = Settings(state_dir=tmp_path, host=host, port=0)
        with listen(made) as bound:
            assert url_of(made, bound) == f"http://{told}:{bound.getsockname()[1]}"


def test_a_port_that_is_taken_is_told_so(tmp_path: Path):
    with listen(Settings(state_dir=tmp_path, port=0)) as bound:
        port = bound.getsockname()[1]
        with pytest.raises(InputError) as refused:
            listen(Settings(state_dir=tmp_path, port=port))
    assert refused.value.code == "cannot-listen"


def test_only_a_journal_in_a_database_server_is_shared(tmp_path: Path):
    with pytest.raises(Refused) as refused:
        check(Settings(state_dir=tmp_path, name="b"))
    assert refused.value.code == "journal-not-shared"
    url = "postgresql://127.0.0.1/none"
    check(Settings(state_dir=tmp_path, name="b", journal=url))
    for wrong in ({"name": "B c"}, {"lease_ms": 999}, {"lease_ms": 60_001}):
        with pytest.raises(InputError):
            check(Settings(state_dir=tmp_path, journal=url, **wrong))
