"""A gateway as a process of its own, and routing states to run it with."""

import json
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from tenfold.model.service.routing import (
    Replica,
    Revision,
    RoutingState,
    Service,
    TokenDigest,
)
from tenfold.model.service.traffic import GatewayTraffic, ServiceTraffic

ROOT = Path(__file__).parents[2]


def digest_of(token: str) -> str:
    """Return the digest of a token, as a routing state has it."""
    return sha256(token.encode()).hexdigest()


def token_for(token: str, team: str, *services: str) -> TokenDigest:
    """Return a token of a team."""
    return TokenDigest(digest=digest_of(token), team=team, services=services)


def revision_of(name: str, urls: Mapping[str, str] | list[str], **fields: Any) -> Revision:
    """Return a revision with these replicas, by id or numbered."""
    named = urls if isinstance(urls, Mapping) else {f"{name}-{at}": u for at, u in enumerate(urls)}
    replicas = tuple(Replica(id=one, url=url) for one, url in named.items())
    return Revision(name=name, replicas=replicas, **fields)


def state_of(*services: Service, **fields: Any) -> RoutingState:
    """Return a routing state; requests need no token unless tokens are given."""
    if "tokens" not in fields:
        fields.setdefault("team_without_token", "anyone")
    return RoutingState(services=services, **fields)


def chat_service(urls: list[str], **fields: Any) -> Service:
    """Return the service `chat` with one revision."""
    return Service(name="chat", models=("stub",), revisions=(revision_of("v1", urls),), **fields)


class GatewayProcess:
    """A gateway that routes by a file; stop it with `close`."""

    def __init__(self, state: RoutingState, *options: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tenfold-gateway-"))
        self.routing = self.folder / "routing.yaml"
        self.write(state)
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        self._log = (self.folder / "log").open("w+")
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tenfold", "gateway", "run", "--json-log"),
                *("--routing", str(self.routing)),
                *("--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", *options),
            ],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self.url = self._line("gateway: ")
        self.admin = self._line("admin: ")
        while not self.get("/readyz").startswith(b'{"status":"ready"'):
            pass

    def _line(self, start: str) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        assert line.startswith(start), f"the gateway did not start: {line!r} {self.log()}"
        return line.removeprefix(start)

    def write(self, state: RoutingState) -> None:
        """Replace the routing file; JSON is YAML."""
        new = self.routing.with_suffix(".new")
        new.write_bytes(msgspec.json.encode(state))
        new.replace(self.routing)

    def log(self) -> str:
        """Return what it has logged."""
        return (self.folder / "log").read_text()

    def get(self, path: str) -> bytes:
        """Return the body of an answer of the admin address, whatever its status."""
        try:
            with urllib.request.urlopen(f"{self.admin}{path}", timeout=60) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            return error.read()

    def traffic(self) -> GatewayTraffic:
        """Return what it has counted."""
        return msgspec.json.decode(self.get("/gateway/load"), type=GatewayTraffic)

    def service(self, name: str = "chat") -> ServiceTraffic:
        """Return what it has counted of one service."""
        return next(one for one in self.traffic().services if one.name == name)

    def post(
        self, path: str, body: Mapping[str, Any] | bytes, headers: Mapping[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Send a request to it; return status, headers and body."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.send(
            "POST", path, data, {"Content-Type": "application/json", **(headers or {})}
        )

    def send(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        """Send a request to it; return status, headers and body."""
        request = urllib.request.Request(f"{self.url}{path}", body, dict(headers), method=method)
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                return answer.status, dict(answer.headers), answer.read()
        except urllib.error.HTTPError as error:
            return error.code, dict(error.headers), error.read()

    def rss_bytes(self) -> int:
        """Return its memory."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.partition("VmRSS:")[2].split()[0]) * 1_024

    def cpu_s(self) -> float:
        """Return the processor seconds it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def descriptors(self) -> int:
        """Return how many descriptors it has open."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def terminate(self) -> None:
        """Ask it to end."""
        self.process.terminate()

    def close(self) -> None:
        """End it."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._log.close()
