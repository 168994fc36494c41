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
GET    /api/v1/control-planes                 401  401 401   200 200  200 200  200 200  200 200
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
GET    /api/v1/services                       401  401 401   200 200  200 200  200 200  200 200
POST   /api/v1/services                       401  401 401   403 403  200 403  200 200  200 200
GET    /api/v1/services/{name}                401  401 401   200 404  200 404  200 200  200 200
DELETE /api/v1/services/{name}                401  401 401   403 403  200 404  200 200  200 200
POST   /api/v1/services/{name}/scale          401  401 401   403 403  200 404  200 200  200 200
POST   /api/v1/services/{name}/canary         401  401 401   403 403  409 404  409 409  409 409
POST   /api/v1/services/{name}/promote        401  401 401   403 403  409 404  409 409  409 409
POST   /api/v1/services/{name}/rollback       401  401 401   403 403  409 404  409 409  409 409
GET    /api/v1/routing                        401  401 401   403 403  403 403  200 200  200 200
GET    /api/v1/nodes                          401  401 401   200 200  200 200  200 200  200 200
POST   /api/v1/nodes                          401  401 401   403 403  403 403  200 200  200 200
POST   /api/v1/nodes/join                     401  401 401   403 403  403 403  403 403  200 200
POST   /api/v1/nodes/leave                    401  401 401   403 403  403 403  403 403  404 404
POST   /api/v1/nodes/{node_id}/cordon         401  401 401   403 403  403 403  200 200  200 200
POST   /api/v1/nodes/{node_id}/uncordon       401  401 401   403 403  403 403  200 200  200 200
POST   /api/v1/nodes/{node_id}/fail           401  401 401   403 403  403 403  200 200  200 200
POST   /api/v1/nodes/{node_id}/test           401  401 401   403 403  403 403  409 409  409 409
POST   /api/v1/nodes/{node_id}/accept         401  401 401   403 403  403 403  409 409  409 409
GET    /api/v1/tokens                         401  401 401   403 403  403 403  403 403  200 200
POST   /api/v1/tokens                         401  401 401   403 403  403 403  403 403  201 201
DELETE /api/v1/tokens/{token_id}              401  401 401   403 403  403 403  403 403  200 200
GET    /api/v1/models                         401  401 401   200 200  200 200  200 200  200 200
GET    /api/v1/models/{model}                 401  401 401   200 404  200 404  200 200  200 200
POST   /api/v1/models/{model}/versions        401  401 401   403 403  201 403  201 201  201 201
GET    /api/v1/models/{model}/versions/{version} 401 401 401 200 404  200 404  200 200  200 200
POST   /api/v1/models/{model}/aliases         401  401 401   403 403  200 404  200 200  200 200
POST   /api/v1/models/{model}/stages          401  401 401   403 403  200 404  200 200  200 200
DELETE /api/v1/models/{model}/versions/{version} 401 401 401 403 403  200 404  200 200  200 200
GET    /api/v1/objects                        401  401 401   200 200  200 200  200 200  200 200
GET    /api/v1/objects/keys                   401  401 401   403 403  409 409  409 409  409 409
POST   /api/v1/objects/keys                   401  401 401   403 403  409 409  409 409  409 409
DELETE /api/v1/objects/keys/{key_id}          401  401 401   403 403  409 409  409 409  409 409
POST   /api/v1/objects/quotas/{team}          401  401 401   403 403  403 403  403 403  409 409
GET    /api/v1/schema                         401  401 401   200 200  200 200  200 200  200 200
GET    /api/v1/schema/openapi.json            401  401 401   200 200  200 200  200 200  200 200
GET    /api/v1/schema/{path}                  401  401 401   404 404  404 404  404 404  404 404
"""
"""Nodes have no team: both columns are the same. 409: no job is held or running, virtual nodes are
not tested, and no object store runs (`tests/contract/objects` has one). A shell can be used only
by the token that opened it: `test_shells.py`."""
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
        self._count = 0
        self.services = {team: self.service(team) for team in ("red", "blue")}
        for team in ("red", "blue"):
            for digest in ("0" * 64, "1" * 64):
                made = self._ops.post(
                    f"{API}/models/of-{team}/versions", model_version(team, digest)
                )
                assert made.status == 201, made

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

    def service(self, team: str) -> str:
        """Return a new service of a team whose replica waits for a GPU."""
        self._count += 1
        with self._plane.wire("member", team) as owner:
            made = owner.post(f"{API}/services", service_of(team, f"svc-{team}-{self._count}"))
        assert made.status == 200, made
        return made.json()["name"]

    def ask(self, cell: Cell) -> Answer:
        """Send the request of a cell, about something that is there."""
        target, body = cell.path, None
        if "{job_id}" in target:
            is_lost = cell.method == "DELETE"
            job = self.pending(cell.team) if is_lost else self.jobs[cell.team]
            target = target.replace("{job_id}", job)
        if "{name}" in target:
            is_lost = cell.method == "DELETE"
            service = self.service(cell.team) if is_lost else self.services[cell.team]
            target = target.replace("{name}", service)
        if "{token_id}" in target:
            target = target.replace("{token_id}", self._plane.new_token("viewer", cell.team)[1])
        target = target.replace("{node_id}", self.node).replace("{path}", "nothing.json")
        target = target.replace("{shell_id}", "none").replace("{model}", f"of-{cell.team}")
        target = target.replace("{key_id}", "none").replace("{team}", cell.team)
        target = target.replace("{version}", "2" if cell.method == "DELETE" else "1")
        if cell.path == f"{API}/events":
            target += "?after=0&follow=false"
        if cell.path == f"{API}/jobs" and cell.method == "GET":
            target += f"?team={cell.team}"
        if cell.path in BODIES and cell.method == "POST":
            body = BODIES[cell.path](cell.team, self.node)
        wire = self.wires[cell.caller]
        return wire.ask(cell.method, target) if body is None else wire.post(target, body)


def service_of(team: str, name: str) -> dict[str, object]:
    """Return a service with a secret, whose replica waits for a GPU."""
    return {
        "name": name,
        "command": ["serve", "{port}", SECRET if team == "blue" else "red"],
        "team": team,
        "gpus_per_node": 1,
        "env": {"PASSWORD": SECRET if team == "blue" else "red"},
    }


def model_version(team: str, digest: str) -> dict[str, object]:
    location = f"/{SECRET}" if team == "blue" else "/red"
    artefact = {"location": location, "kind": "folder", "digest": digest}
    return {"artefact": artefact, "team": team}


BODIES: dict[str, Callable[[str, str], object]] = {
    f"{API}/services": lambda team, _: service_of(team, f"made-{team}"),
    f"{API}/services/{{name}}/scale": lambda *_: {"replicas_min": 1, "replicas_max": 1},
    f"{API}/services/{{name}}/canary": lambda *_: {"weight": 5},
    f"{API}/jobs": lambda team, _: {"command": ["true"], "team": team, "gpus_per_node": 1},
    f"{API}/jobs/dry-run": lambda team, _: {"command": ["true"], "team": team},
    f"{API}/nodes": lambda _, node: {"nodes": [node], "verb": "uncordon"},
    f"{API}/nodes/leave": lambda *_: {"nodes": ["no-such-node"]},
    f"{API}/nodes/join": lambda _, node: {"nodes": [{"id": node, "pool": "p", "site": "s"}]},
    f"{API}/tokens": lambda team, _: {"name": "made", "team": team, "role": "viewer", "days": 1},
    f"{API}/objects/keys": lambda team, _: {"name": "made", "team": team},
    f"{API}/objects/quotas/{{team}}": lambda *_: {"objects": 1},
    f"{API}/models/{{model}}/versions": lambda team, _: model_version(team, "0" * 64),
    f"{API}/models/{{model}}/aliases": lambda team, _: {
        "alias": "prod",
        "version": "1",
        "team": team,
    },
    f"{API}/models/{{model}}/stages": lambda team, _: {
        "version": "1",
        "stage": "staging",
        "team": team,
    },
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
