"""Services for real: `tenfold up`, replicas that are processes, probes over HTTP, and kills."""

import os
import signal
import sys
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

from patience import until
from stub_gateway import StubGateway, stub_gateway
from tenfold.client.client import Client
from tenfold.model.api.services import Replica, Service
from tenfold.model.service.traffic import RolledBack
from unit.up_process import Up, commands_find

SERVER = Path(__file__).parents[2] / "examples" / "serve-stub" / "server.py"
SPEC: dict[str, Any] = {
    "name": "chat",
    "command": [sys.executable, str(SERVER), "--port", "{port}", "--load-s", "0"],
    "replicas_min": 2,
    "drain_grace_s": 300,
    "readiness": {"interval_s": 0.1},
}


@pytest.fixture
def gateway() -> Generator[StubGateway]:
    with stub_gateway() as made:
        yield made


@pytest.fixture
def up(tmp_path: Path, gateway: StubGateway, monkeypatch: pytest.MonkeyPatch) -> Generator[Up]:
    made = Up(tmp_path / "home")
    commands_find(made, monkeypatch)
    start(made, gateway)
    try:
        yield made
    finally:
        with Client() as client:
            for one in client.services():
                client.remove_service(one.name)
            gateway.busy.clear()
            until(lambda: not client.services())
        made.interrupt()


def start(up: Up, gateway: StubGateway) -> None:
    up.start("--virtual-nodes", "4", "--team-users", "off", "--gateway-admin", gateway.url)


def when(client: Client, is_so: Callable[[Service], bool]) -> Service:
    """Return the service once something is so."""
    found: list[Service] = []

    def check() -> bool:
        found[:] = [client.service("chat")]
        return is_so(found[0])

    until(check, pause_s=0.05, explain=lambda: str(found))
    return found[0]


def ready(one: Service) -> list[Replica]:
    return [each for each in one.replicas if each.state == "ready"]


def are_ready(count: int) -> Callable[[Service], bool]:
    return lambda one: len(ready(one)) == count == len(one.replicas)


def process_of(replica: Replica) -> int:
    """Return the process that listens on the port of a replica."""
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if str(replica.port).encode() in words and str(SERVER).encode() in words:
            return int(entry.name)
    raise AssertionError(f"no process listens on port {replica.port}")


def kinds(client: Client) -> list[str]:
    return [event.kind for event in client.events(after=0, follow=False)]


def starts(client: Client) -> Sequence[str]:
    return [kind for kind in kinds(client) if kind == "JobStarted"]


def test_a_killed_replica_is_replaced_and_survives_the_control_plane(up: Up, gateway: StubGateway):
    with Client() as client:
        client.deploy(**SPEC)
        first = when(client, are_ready(2))
        assert len({one.nodes for one in first.replicas}) == 2, "they are spread"
        killed = first.replicas[0]
        os.kill(process_of(killed), signal.SIGKILL)
        second = when(
            client, lambda one: are_ready(2)(one) and killed.id not in {r.id for r in one.replicas}
        )
        assert first.replicas[1].id in {one.id for one in second.replicas}
        assert len(starts(client)) == 3
        processes = sorted(process_of(one) for one in second.replicas)
    up.kill()
    assert sorted(process_of(one) for one in second.replicas) == processes
    start(up, gateway)
    with Client() as client:
        third = when(client, are_ready(2))
        assert [one.id for one in third.replicas] == [one.id for one in second.replicas]
        # It controls again: a second kill is noticed, and only that replica was started.
        os.kill(process_of(third.replicas[0]), signal.SIGKILL)
        when(client, lambda one: are_ready(2)(one) and one.replicas != third.replicas)
        assert len(starts(client)) == 4


def test_a_new_revision_replaces_the_old_one_which_drains_until_it_is_idle(
    up: Up, gateway: StubGateway
):
    with Client() as client:
        client.deploy(**SPEC)
        old = when(client, are_ready(2))
        gateway.busy = {old.replicas[0].id: 1}
        # The stub knows every state of routing, so what it said before must be gone first.
        said = gateway.readings
        until(lambda: gateway.readings >= said + 2)
        made = client.deploy(**{**SPEC, "env": {"VERSION": "2"}})
        assert made.canary == "r2"
        draining = when(client, lambda one: one.current == "r2" and len(one.replicas) == 3)
        assert [one.id for one in draining.replicas if one.state == "draining"] == [
            old.replicas[0].id
        ]
        gateway.busy.clear()
        new = when(client, are_ready(2))
        assert {one.revision for one in new.replicas} == {"r2"}
        rolled = client.roll_back_service("chat")
        assert (rolled.canary, rolled.current) == ("r1", "r2")
        back = when(client, lambda one: one.current == "r1" and are_ready(2)(one))
        assert back.rolled_back is not None
        assert back.rolled_back.code == "rolled-back-by"


def test_a_canary_that_the_gateway_takes_out_is_rolled_back_and_the_journal_shows_it(
    up: Up, gateway: StubGateway
):
    with Client() as client:
        client.deploy(**SPEC)
        when(client, are_ready(2))
        canary = {"steps": [10], "step_s": 3_600}
        client.deploy(**{**SPEC, "canary": canary, "env": {"VERSION": "bad"}})
        when(client, lambda one: len(ready(one)) == 3 and one.canary_weight == 10)
        gateway.rolled_back = (
            RolledBack(
                service="chat",
                revision="r2",
                at_ms=0,
                cause="errors",
                requests=20,
                percent=100.0,
                percent_others=0.0,
            ),
        )
        found = when(client, lambda one: not one.canary and are_ready(2)(one))
        assert found.rolled_back is not None
        assert found.rolled_back.code == "canary-errors"
        assert "ServiceRolledBack" in kinds(client)


def test_a_service_without_replicas_gets_one_when_a_request_waits(up: Up, gateway: StubGateway):
    rates = {"slots": 4, "prefill_tokens_per_s": 1_000, "decode_tokens_per_s": 50}
    with Client() as client:
        client.deploy(**{**SPEC, **rates, "replicas_min": 0, "replicas_max": 2})
        when(client, lambda one: one.state == "idle" and not one.replicas)
        gateway.wants(3)
        found = when(client, lambda one: bool(ready(one)))
        assert found.scaled is not None
        assert "ServiceScaled" in kinds(client)
        # Scaling in waits for minutes of history, as laws and unit tests show; users need not.
        client.scale_service("chat", replicas_min=1, replicas_max=1)
        when(client, are_ready(1))
