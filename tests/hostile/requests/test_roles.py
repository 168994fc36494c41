"""Every route, every kind of token, and the caller's own team or another: what is answered.

`EXPECTED` is the whole table. Routes are taken from the application, so a route without a row
fails here. Requests go to a real process; red asks, for what is red's and for what is blue's.
"""

from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from hostile.plane import API, Plane
from hostile.wire import Answer, Wire
from tenfold.live.local.executor import LocalExecutor
from tenfold.server.app import make_app
from tenfold.server.auth.access import routes_of
from tenfold.server.runtime.runtime import Runtime, ServerDeps
from tenfold.server.runtime.state_dir import LocalLogs

EXPECTED = """
                                              none bad rev.  viewer   member   operator admin
                                                             red blue red blue red blue red blue
GET    /healthz                               200  200 200   200 200  200 200  200 200  200 200
GET    /readyz                                200  200 200   200 200  200 200  200 200  200 200
GET    /metrics                               401  401 401   200 200  200 200  200 200  200 200
GET    /api/v1/events                         401  401 401   200 200  200 200  200 200  200 200
GET    /api/v1/fleet                          401  401 401   200 200  200 200  200 200  200 200
GET    /api/v1/fleet/idle                     401  401 401   200 200  200 200  200 200  200 200
GET    /api/v1/whoami                         401  401 401   200 200  200 200  200 200  200 200
GET    /api/v1/jobs                           401  401 401   200 200  200 200  200 200  200 200
POST   /api/v1/jobs                           401  401 401   403 403  201 403  201 201  201 201
POST   /api/v1/jobs/dry-run                   401  401 401   403 403  200 403  200 200  200 200
GET    /api/v1/jobs/{job_id}                  401  401 401   200 404  200 404  200 200  200 200
POST   /api/v1/jobs/{job_id}/rerun            401  401 401   403 403  201 404  201 201  201 201
POST   /api/v1/jobs/{job_id}/release          401  401 401   403 403  403 403  409 409  409 409
DELETE /api/v1/jobs/{job_id}                  401  401 401   403 403  202 404  202 202  202 202
GET    /api/v1/jobs/{job_id}/logs             401  401 401   200 404  200 404  200 200  200 200
POST   /api/v1/jobs/{job_id}/shells           401  401 401   403 403  409 404  409 409  409 409
GET    /api/v1/jobs/{job_id}/shells/{shell_id} 401 401 401   403 403  404 404  404 404  404 404
POST   /api/v1/jobs/{job_id}/shells/{shell_id} 401 401 401   403 403  404 404  404 404  404 404
GET    /api/v1/jobs/{job_id}/why              401  401 401   200 404  200 404  200 200  200 200
GET    /api/v1/nodes                          401  401 401   200 200  200 200  200 200  200 200
POST   /api/v1/nodes                          401  401 401   403 403  403 403  200 200  200 200
POST   /api/v1/nodes/{node_id}/cordon         401  401 401   403 403  403 403  200 200  200 200
POST   /api/v1/nodes/{node_id}/uncordon       401  401 401   403 403  403 403  200 200  200 200
POST   /api/v1/nodes/{node_id}/fail           401  401 401   403 403  403 403  200 200  200 200
POST   /api/v1/nodes/{node_id}/test           401  401 401   403 403  403 403  409 409  409 409
POST   /api/v1/nodes/{node_id}/accept         401  401 401   403 403  403 403  409 409  409 409
GET    /api/v1/tokens                         401  401 401   403 403  403 403  403 403  200 200
POST   /api/v1/tokens                         401  401 401   403 403  403 403  403 403  201 201
DELETE /api/v1/tokens/{token_id}              401  401 401   403 403  403 403  403 403  200 200
GET    /api/v1/schema                         401  401 401   200 200  200 200  200 200  200 200
GET    /api/v1/schema/openapi.json            401  401 401   200 200  200 200  200 200  200 200
GET    /api/v1/schema/{path}                  401  401 401   404 404  404 404  404 404  404 404
"""
"""Nodes have no team: both columns are the same. 409: no job is held or running, and virtual nodes
are not tested. A shell can be used only by the token that opened it: `test_shells.py`."""
ROLES = ("viewer", "member", "operator", "admin")
CALLERS = ("none", "bad", "revoked", *ROLES)
SECRET = "the-secret-of-blue"
HELD = {"command": ["sleep", "600"], "gpus_per_node": 8, "nodes": 2}
"""Holds every GPU, so that jobs which ask for one stay pending."""


class Cell(NamedTuple):
    """One request: who asks for what of which team."""

    method: str
    path: str
    caller: str
    team: str


def rows() -> dict[tuple[str, str], list[int]]:
    found: dict[tuple[str, str], list[int]] = {}
    for line in EXPECTED.splitlines()[3:]:
        method, path, *statuses = line.split()
        found[method, path] = [int(one) for one in statuses]
    return found


def cells() -> Iterator[tuple[Cell, int]]:
    columns = [(caller, "red") for caller in CALLERS[:3]]
    columns += [(role, team) for role in ROLES for team in ("red", "blue")]
    for (method, path), statuses in rows().items():
        for (caller, team), status in zip(columns, statuses, strict=True):
            yield Cell(method, path, caller, team), status


class Callers:
    """Connections of red with every kind of token, and what there is to ask for."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._ops = plane.wire("admin", "ops")
        secret, record = plane.new_token("admin", "red")
        assert self._ops.delete(f"{API}/tokens/{record}").status == 200
        good = plane.token("admin", "red")
        self.wires = {role: plane.wire(role, "red") for role in ROLES}
        self.wires |= {
            "none": plane.wire(""),
            "bad": Wire(plane.url, good[:-1] + ("A" if good[-1] != "A" else "B")),
            "revoked": Wire(plane.url, secret),
        }
        self.node = self._ops.get(f"{API}/nodes").json()["nodes"][0]["id"]
        self.jobs = {team: self.pending(team) for team in ("red", "blue")}

    def close(self) -> None:
        for one in (*self.wires.values(), self._ops):
            one.close()

    def pending(self, team: str) -> str:
        """Return a new job of a team that waits for a GPU."""
        ask = {
            "command": ["echo", SECRET if team == "blue" else "red"],
            "name": f"of-{team}",
            "env": {"PASSWORD": SECRET if team == "blue" else "red"},
            "gpus_per_node": 1,
        }
        with self._plane.wire("member", team) as owner:
            made = owner.post(f"{API}/jobs", ask)
        assert made.status == 201, made
        return made.json()["id"]

    def ask(self, cell: Cell) -> Answer:
        """Send the request of a cell, about something that is there."""
        target, body = cell.path, None
        if "{job_id}" in target:
            is_lost = cell.method == "DELETE"
            job = self.pending(cell.team) if is_lost else self.jobs[cell.team]
            target = target.replace("{job_id}", job)
        if "{token_id}" in target:
            target = target.replace("{token_id}", self._plane.new_token("viewer", cell.team)[1])
        target = target.replace("{node_id}", self.node).replace("{path}", "nothing.json")
        target = target.replace("{shell_id}", "none")
        if cell.path == f"{API}/events":
            target += "?after=0&follow=false"
        if cell.path == f"{API}/jobs" and cell.method == "GET":
            target += f"?team={cell.team}"
        if cell.path in BODIES and cell.method == "POST":
            body = BODIES[cell.path](cell.team, self.node)
        wire = self.wires[cell.caller]
        return wire.ask(cell.method, target) if body is None else wire.post(target, body)


BODIES: dict[str, Callable[[str, str], object]] = {
    f"{API}/jobs": lambda team, _: {"command": ["true"], "team": team, "gpus_per_node": 1},
    f"{API}/jobs/dry-run": lambda team, _: {"command": ["true"], "team": team},
    f"{API}/nodes": lambda _, node: {"nodes": [node], "verb": "uncordon"},
    f"{API}/tokens": lambda team, _: {"name": "made", "team": team, "role": "viewer", "days": 1},
}


@pytest.fixture(scope="module")
def callers(plane: Plane) -> Generator[Callers, None, None]:
    with plane.wire("operator", "ops") as ops:
        assert ops.post(f"{API}/jobs", HELD).status == 201
    made = Callers(plane)
    yield made
    made.close()
    plane.cancel_all()
    with plane.wire("operator", "ops") as ops:
        assert ops.post(f"{API}/nodes/{made.node}/uncordon", {}).status == 200


def test_every_route_of_the_application_has_a_row(tmp_path: Path):
    runtime = Runtime(
        ServerDeps(
            journal=str(tmp_path / "journal.db"),
            executor=lambda: LocalExecutor(str(tmp_path / "run")),
            logs=LocalLogs(tmp_path / "run"),
            wait_s=1.0,
        )
    )
    served = {
        (method, path.replace(":str}", "}"))
        for path, methods, _ in routes_of(make_app(runtime.control))
        for method in methods
        if method not in ("OPTIONS", "HEAD")
    }
    assert served == set(rows())


def test_every_cell_of_the_table_is_what_is_answered(callers: Callers):
    wrong: list[str] = []
    count = 0
    for cell, expected in cells():
        answer = callers.ask(cell)
        count += 1
        if answer.status != expected:
            wrong.append(f"{cell} is answered {answer.status} {answer.code()}, not {expected}")
        if cell.caller not in ("operator", "admin") and SECRET.encode() in answer.body:
            wrong.append(f"{cell} is told blue's secret")
        # A refusal may repeat the name that was asked for.
        is_shown = cell.caller in ("viewer", "member") and answer.status < 400
        if is_shown and callers.jobs["blue"].encode() in answer.body:
            wrong.append(f"{cell} is told the name of blue's job")
    assert wrong == []
    assert count == 11 * len(rows())


def test_operators_and_admins_are_not_told_the_values_of_environments(callers: Callers):
    for role in ("operator", "admin"):
        for target in (f"{API}/jobs/{callers.jobs['blue']}", f"{API}/events?after=0&follow=false"):
            told = callers.wires[role].get(target)
            assert told.status == 200
            assert f'"PASSWORD","{SECRET}"'.encode() not in told.body.replace(b" ", b"")
