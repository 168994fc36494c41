"""`tenfold up --burst`: a job that cannot run here gets rented nodes, which are given back."""

from pathlib import Path

import msgspec
import pytest

from patience import until
from tenfold.client.client import Client
from tenfold.server.background.burst import IDLE, BurstLedger
from unit.up_process import Up, commands_find

BURST = """\
budget_usd = 100
nodes_max = 2
idle_s = 1

[[zone]]
name = "north-1"
accelerator = "H100"
gpus_per_node = 8
usd_per_node_hour = 24
startup_s = 0
"""


def states(client: Client) -> dict[str, tuple[str, str]]:
    return {one.id: (one.state, one.cause) for one in client.nodes() if one.pool == "burst"}


def ledger(up: Up) -> BurstLedger:
    return msgspec.json.decode((up.home / "burst.json").read_bytes(), type=BurstLedger)


def test_a_node_is_rented_for_a_job_and_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    policy = tmp_path / "burst.toml"
    policy.write_text(BURST)
    up = Up(tmp_path / "home")
    up.start("--virtual-nodes", "1", "--team-users", "off", "--burst", str(policy))
    commands_find(up, monkeypatch)
    with Client() as client:
        job = client.submit(
            command=["true"],
            nodes=1,
            gpus_per_node=8,
            accelerator="H100",
            time_limit="10m",
            allow_pending=True,
        )
        until(lambda: client.job(job.id).state == "succeeded", explain=lambda: str(states(client)))
        assert list(states(client)) == ["burst-north-1-1"]
        until(
            lambda: states(client)["burst-north-1-1"] == ("down", "burst: released"),
            explain=lambda: str(states(client)),
        )
    # The ledger is written after the node is down.
    until(lambda: ledger(up).nodes == ())
    assert 0 < ledger(up).spent_usd_micros < 100_000_000
    up.interrupt()
    assert IDLE == "burst: idle"


def test_without_the_option_nothing_is_rented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    up = Up(tmp_path)
    up.start("--virtual-nodes", "1")
    commands_find(up, monkeypatch)
    with Client() as client:
        assert states(client) == {}
    assert not (tmp_path / "burst.json").exists()
    up.interrupt()


def test_a_node_rented_just_before_a_crash_is_found_and_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    policy = tmp_path / "burst.toml"
    policy.write_text(BURST)
    up = Up(tmp_path / "home")
    options = ("--virtual-nodes", "1", "--team-users", "off", "--burst", str(policy))
    up.start(*options)
    commands_find(up, monkeypatch)
    with Client() as client:
        job = client.submit(
            command=["sleep", "3"],
            nodes=1,
            gpus_per_node=8,
            accelerator="H100",
            time_limit="10m",
            allow_pending=True,
        )
        until(lambda: client.job(job.id).state == "running", explain=lambda: str(states(client)))
    up.kill()
    # As if it had ended before it wrote what it had rented.
    (up.home / "burst.json").unlink()
    up.start(*options)
    with Client() as client:
        until(lambda: client.job(job.id).state == "succeeded", explain=lambda: str(states(client)))
        until(
            lambda: states(client)["burst-north-1-1"] == ("down", "burst: released"),
            explain=lambda: str(states(client)),
        )
    up.interrupt()
