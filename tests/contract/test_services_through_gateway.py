"""A service through its gateway, all processes real: requests, a kill under load, a bad canary."""

import json
import os
import signal
import sys
import threading
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from contract.test_services import SERVER, are_ready, kinds, process_of, ready, when
from patience import until
from tenfold.client.client import Client
from unit.up_process import Up, commands_find

pytest.importorskip("aiohttp")

SPEC: dict[str, Any] = {
    "name": "chat",
    "command": [sys.executable, str(SERVER), "--port", "{port}", "--load-s", "0"],
    "replicas_min": 2,
    "drain_grace_s": 30,
    "readiness": {"interval_s": 0.1},
}


class Front:
    """A gateway, as its clients see it."""

    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url, token

    def ask(self, tokens: int = 2) -> int:
        """Send a completion; return the status of its answer, 0 for none."""
        body = json.dumps({"model": "chat", "prompt": "a b c", "max_tokens": tokens}).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/v1/completions", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status if json.load(answer)["choices"] else 0
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0


class Load:
    """Clients that send one request after the other."""

    def __init__(self, front: Front, clients: int) -> None:
        self.statuses: Counter[int] = Counter()
        self._front, self._ended = front, threading.Event()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(clients)]
        for one in self._threads:
            one.start()

    def _run(self) -> None:
        while not self._ended.is_set():
            self.statuses[self._front.ask()] += 1

    def end(self) -> Counter[int]:
        """Return the statuses of all answers."""
        self._ended.set()
        for one in self._threads:
            one.join()
        return self.statuses

    def more(self, count: int) -> None:
        """Return after so many more answers."""
        before = self.statuses.total()
        until(lambda: self.statuses.total() >= before + count)


@pytest.fixture
def front(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Front]:
    up = Up(tmp_path / "home")
    commands_find(up, monkeypatch)
    said = up.start("--virtual-nodes", "4", "--team-users", "off", "--gateway", "127.0.0.1:0")
    [url] = [line.removeprefix("gateway: ") for line in said if line.startswith("gateway: ")]
    with Client() as client:
        token = client.create_token("ann", team="admin").token
        yield Front(url, token)
        for one in client.services():
            client.remove_service(one.name)
        until(lambda: not client.services())
    up.interrupt()


def test_a_replica_killed_under_load_loses_no_request_and_a_bad_canary_is_rolled_back(
    front: Front,
):
    with Client() as client:
        client.deploy(**SPEC)
        found = when(client, are_ready(2))
        until(lambda: front.ask() == 200)
        load = Load(front, 4)
        load.more(20)
        os.kill(process_of(found.replicas[0]), signal.SIGKILL)
        when(client, lambda one: are_ready(2)(one) and one.replicas != found.replicas)
        load.more(20)
        # The stub answers whole, so no request had its first byte when its replica was killed.
        assert set(load.statuses) == {200}
        bad = [*SPEC["command"], "--fail-percent", "100"]
        # With the default rules: a breaker ejects it before it has the requests to be judged by.
        canary = {"steps": [50], "step_s": 3_600}
        client.deploy(**{**SPEC, "command": bad, "canary": canary})
        after = when(client, lambda one: one.rolled_back is not None and not one.canary)
        assert after.rolled_back is not None
        assert after.rolled_back.code == "canary-errors"
        assert "ServiceRolledBack" in kinds(client)
        when(client, are_ready(2))
        load.end()


def test_limits_of_a_team_in_the_policy_hold_at_the_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    policy = tmp_path / "policy.toml"
    policy.write_text(
        'name = "governed"\n'
        '[[teams]]\nid = "red"\nquota = { any = 8 }\ninference = { requests_per_minute = 2 }\n'
        '[[teams]]\nid = "blue"\nquota = { any = 8 }\n'
    )
    up = Up(tmp_path / "home")
    commands_find(up, monkeypatch)
    options = ("--virtual-nodes", "4", "--team-users", "off", "--gateway", "127.0.0.1:0")
    said = up.start(*options, "--policy", str(policy))
    [url] = [line.removeprefix("gateway: ") for line in said if line.startswith("gateway: ")]
    with Client() as client:
        red, blue = (
            Front(url, client.create_token(team, team=team).token) for team in ("red", "blue")
        )
        client.deploy(**SPEC)
        when(client, are_ready(2))
        until(lambda: blue.ask() == 200)
        statuses = [red.ask() for _ in range(4)]
        assert statuses == [200, 200, 429, 429]
        assert [blue.ask() for _ in range(4)] == [200] * 4
        client.remove_service("chat")
        until(lambda: not client.services())
    up.interrupt()


def test_a_request_that_finds_no_replica_is_held_until_one_is_ready(front: Front):
    rates = {"slots": 4, "prefill_tokens_per_s": 1_000, "decode_tokens_per_s": 50}
    with Client() as client:
        client.deploy(**{**SPEC, **rates, "replicas_min": 0, "replicas_max": 2})
        when(client, lambda one: one.state == "idle" and not one.replicas)
        # Before the gateway knows the service, it has no such model.
        until(lambda: front.ask() == 200, pause_s=0.2)
        assert ready(client.service("chat"))
