"""Nodes join a running control plane: no job notices, and the next one may run there."""

from collections.abc import Callable
from typing import Any

from litestar import Litestar
from litestar.testing import TestClient

from unit.server.waiting import job_when

Client = TestClient[Litestar]
WHOLE = {"command": ["true"], "gpus_per_node": 4}


def row(name: str, **keys: Any) -> dict[str, Any]:
    return {"id": name, "pool": "p", "site": "s", "gpus": 4, "cpus_milli": 8_000, **keys}


def join(client: Client, *rows: dict[str, Any]) -> Any:
    return client.post("/api/v1/nodes/join", json={"nodes": rows})


def test_a_pending_job_starts_on_a_node_that_joins(client: Client, token: Callable[..., str]):
    client.headers["Authorization"] = f"Bearer {token('admin')}"
    held = [client.post("/api/v1/jobs", json=WHOLE).json()["id"] for _ in range(3)]
    running = [job_when(client, one, "running") for one in held[:2]]
    job_when(client, held[2], "pending")
    answer = join(client, row("n1"), row("n9"))
    assert (answer.status_code, answer.json()) == (
        200,
        {"joined": ["n9"], "known": ["n1"], "differing": []},
    )
    started = job_when(client, held[2], "running")
    assert started["attempts"][-1]["nodes"] == ["n9"]
    for before in running:
        now = client.get(f"/api/v1/jobs/{before['id']}").json()
        assert (now["state"], now["attempts"]) == ("running", before["attempts"])
    again = join(client, row("n9"))
    assert again.json() == {"joined": [], "known": ["n9"], "differing": []}


def test_a_node_of_the_fleet_stays_as_it_is(client: Client, token: Callable[..., str]):
    client.headers["Authorization"] = f"Bearer {token('admin')}"
    answer = join(client, row("n7"), row("n1", gpus=8), row("n2"))
    assert answer.json() == {"joined": ["n7"], "known": ["n1", "n2"], "differing": ["n1"]}
    found = {one["id"]: one["gpus"] for one in client.get("/api/v1/nodes").json()["nodes"]}
    assert found == {"n1": 4, "n2": 4, "n7": 4}
    twice = join(client, row("n8"), row("n8", gpus=8))
    assert (twice.status_code, twice.json()["code"]) == (422, "node-named-twice")
    assert len(client.get("/api/v1/nodes").json()["nodes"]) == 3


def test_what_is_no_node_is_named(client: Client, token: Callable[..., str]):
    client.headers["Authorization"] = f"Bearer {token('admin')}"
    for rows in ([row("n[1-9]")], [row("n3", gpus=-1)], [row("n3", wheels=4)], []):
        assert join(client, *rows).status_code == 422
    operator = {"Authorization": f"Bearer {token('operator')}"}
    answer = client.post("/api/v1/nodes/join", json={"nodes": [row("n3")]}, headers=operator)
    assert answer.status_code == 403
