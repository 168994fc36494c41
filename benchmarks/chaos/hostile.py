"""A team that attacks while others work: hostile requests, half-sent bodies, streams unread."""

import json
import socket
from contextlib import ExitStack, suppress
from random import Random
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any
from urllib.parse import urlsplit

from benchmarks.chaos.plane import Plane
from tenfold.client.endpoint import read_address
from tests.rigs.hostile.generator import Case, Description
from tests.rigs.hostile.values import values
from tests.rigs.hostile.wire import Answer, Wire

API = "/api/v1"
TEAM = "red"
CONNECTIONS = 48
"""Opened at once, each with half a request or an answer that nobody reads."""
REQUESTS = 60
HELD_S = 2.0
PAUSE_S = 0.05


class Attackers(Thread):
    """Attacks until it is over; counts what it sent and which answers were bugs."""

    def __init__(self, plane: Plane, dice: Random) -> None:
        super().__init__(name="attackers", daemon=True)
        self._plane, self._dice = plane, dice
        self._token = ""
        self._cases: list[Case] = []
        self.is_over = False
        self.may_attack = Event()
        self.sent = self.connections = self.refused = 0
        self.bugs: list[str] = []

    def run(self) -> None:
        """Attack while it may."""
        while not self.is_over:
            if not self.may_attack.wait(0.2):
                continue
            address = read_address(self._plane.folder.path)
            # The control plane is killed at any moment: whatever breaks off is tried again.
            with suppress(OSError, ValueError, KeyError):
                if address is not None and self._prepare(address.url, address.token):
                    attack = self._dice.choice((self._requests, self._requests, self._hold))
                    attack(address.url)
            sleep(PAUSE_S)

    def _prepare(self, url: str, admin: str) -> bool:
        if self._cases:
            return True
        with Wire(url, admin) as wire:
            ask = {"name": "attacker", "team": TEAM, "role": "member", "days": 300}
            made = wire.post(f"{API}/tokens", ask)
            schema = wire.get(f"{API}/schema/openapi.json")
            if made.status != 201 or schema.status != 200:
                return False
            self._token = str(made.json()["token"])
            known = {"job_id": "job-1", "node_id": "n", "token_id": "t-none"}
            described = Description(schema.json(), known)
            found = list(values())
            self._cases = [
                case for field in described.fields() for case in described.cases(field, found)
            ]
        return True

    def _requests(self, url: str) -> None:
        """Send hostile requests one after another, and cancel the jobs that they made."""
        with Wire(url, self._token) as wire:
            for case in self._dice.choices(self._cases, k=REQUESTS):
                if self.is_over or not self.may_attack.is_set():
                    return
                answer = wire.ask(case.method, case.target, case.body, *case.headers)
                self.sent += 1
                self.refused += answer.status == 429
                if answer.status == 500:
                    self.bugs.append(f"{case.line()}: {answer.body[:200]!r}")
                if answer.status == 201 and case.operation == f"post {API}/jobs":
                    for name in _jobs_in(answer):
                        wire.delete(f"{API}/jobs/{name}")

    def _hold(self, url: str) -> None:
        """Open many connections that send half a body, or that read nothing of a stream."""
        parts = urlsplit(url)
        at = (parts.hostname or "", parts.port or 0)
        head = f"Host: x\r\nAuthorization: Bearer {self._token}\r\n"
        half = f"POST {API}/jobs HTTP/1.1\r\n{head}Content-Length: 3000000\r\n\r\n".encode()
        half += b'{"command": ["' + b"x" * 500_000
        stream = f"GET {API}/events?after=0 HTTP/1.1\r\n{head}\r\n".encode()
        with ExitStack() as held:
            for _ in range(CONNECTIONS):
                one = held.enter_context(socket.create_connection(at, timeout=1.0))
                with suppress(OSError):
                    one.sendall(self._dice.choice((half, stream)))
                self.connections += 1
            ends_s = monotonic() + HELD_S
            while monotonic() < ends_s and self.may_attack.is_set() and not self.is_over:
                sleep(0.1)


def _jobs_in(answer: Answer) -> list[str]:
    told: dict[str, Any] = json.loads(answer.body)
    rows: list[dict[str, Any]] = told.get("jobs", [told])
    return [str(one["id"]) for one in rows]
