"""A real HAProxy for tests, run by a gateway: its counters, by the socket of its worker."""

import os
import shutil
import socket
from pathlib import Path

import pytest

from tenfold.gateway.haproxy.control import BACKEND, Counters, Stats, pid_of, read_stats

ANSWER_S = 60.0


def require_haproxy() -> None:
    """Skip the test where HAProxy is missing; fail instead where engines are required."""
    if shutil.which("haproxy", path=f"{os.environ.get('PATH', '')}:/usr/sbin") is not None:
        return
    reason = "no haproxy here: apt-get install haproxy"
    if os.environ.get("TENFOLD_REQUIRE_ENGINES") == "1":
        pytest.fail(f"TENFOLD_REQUIRE_ENGINES=1, but {reason}")
    pytest.skip(reason)


class HaproxyWatch:
    """Reads what the HAProxy of a gateway has done; `folder` is the gateway's `TMPDIR`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def config(self) -> str:
        """Its configuration."""
        return (self._own() / "haproxy.cfg").read_text()

    def ask(self, command: str) -> str:
        """Return the answer of its worker."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(ANSWER_S)
            client.connect(str(self._own() / "worker.sock"))
            client.sendall(f"{command}\n".encode())
            client.shutdown(socket.SHUT_WR)
            answer = b""
            while part := client.recv(65_536):
                answer += part
        return answer.decode()

    def stats(self) -> Stats:
        """Return its counters."""
        return read_stats(self.ask("show stat"))

    def served(self, service: str = "chat") -> int:
        """Return the requests that it gave to replicas since its last reload."""
        return self.stats().get((f"svc.{service}", BACKEND), Counters()).total

    def servers(self, service: str = "chat") -> list[str]:
        """Return its servers of a service."""
        return sorted(
            name for at, name in self.stats() if at == f"svc.{service}" and name != BACKEND
        )

    def pid(self) -> int:
        """Return its worker."""
        return pid_of(self.ask("show info"))

    def _own(self) -> Path:
        [found] = self._folder.glob("tenfold-haproxy-*")
        return found
