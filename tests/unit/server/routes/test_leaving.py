"""Nodes leave a running control plane: jobs finish there or are requeued, and none starts."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from litestar import Litestar
from litestar.testing import TestClient

from patience import HANG_S, until
from tenfold.journal.store import open_store
from tenfold.journal.verify import verify
from tenfold.server.app import make_app
from tenfold.server.auth.tokens import Role
from tenfold.server.runtime.runtime import Runtime, ServerDeps
from unit.server.conftest import NODES
from unit.server.fake_executor import FakeExecutor, FakeProcesses
from unit.server.routes.test_joining import WHOLE, join, row
from unit.server.waiting import job_when

Client = TestClient[Litestar]


def leave(client: Client, *names: str, grace_s: float | None = None) -> Any:
    return client.post("/api/v1/nodes/leave", json={"nodes": names, "grace_s": grace_s})


def here(client: Client) -> dict[str, str]:
    return {one["id"]: one["state"] for one in client.get("/api/v1/nodes").json()["nodes"]}


def run_two(client: Client) -> dict[str, str]:
    """Let a job run on each of the two nodes; return the jobs by node."""
    made = [client.post("/api/v1/jobs", json=WHOLE).json()["id"] for _ in range(2)]
    running = [job_when(client, one, "running") for one in made]
    return {one["attempts"][-1]["nodes"][0]: one["id"] for one in running}


def test_an_idle_node_leaves_at_once_and_may_join_again(client: Client, token: Callable[..., str]):
    client.headers["Authorization"] = f"Bearer {token('admin')}"
    answer = leave(client, "n2", "n2")
    assert (answer.status_code, answer.json()) == (200, {"left": ["n2"], "leaving": []})
    assert here(client) == {"n1": "up"}
    gone = leave(client, "n1", "n2")
    assert (gone.status_code, gone.json()["code"]) == (404, "no-such-node")
    assert here(client) == {"n1": "up"}
    assert join(client, row("n2", gpus=8)).json()["joined"] == ["n2"]
    found = client.get("/api/v1/nodes").json()["nodes"]
    assert {one["id"]: one["gpus"] for one in found} == {"n1": 4, "n2": 8}
    wide = client.post("/api/v1/jobs", json={"command": ["true"], "gpus_per_node": 8}).json()
    assert job_when(client, wide["id"], "running")["attempts"][-1]["nodes"] == ["n2"]


def test_a_busy_node_leaves_when_its_job_has_ended_and_no_other_starts_there(
    client: Client, processes: FakeProcesses, token: Callable[..., str]
):
    client.headers["Authorization"] = f"Bearer {token('admin')}"
    jobs = run_two(client)
    answer = leave(client, "n1")
    assert answer.json() == {"left": [], "leaving": ["n1"]}
    assert here(client)["n1"] == "cordoned"
    waits = client.post("/api/v1/jobs", json=WHOLE).json()["id"]
    processes.end(jobs["n1"])
    job_when(client, jobs["n1"], "succeeded")
    until(lambda: here(client) == {"n2": "up"})
    assert client.get(f"/api/v1/jobs/{waits}").json()["state"] == "pending"
    processes.end(jobs["n2"])
    assert job_when(client, waits, "running")["attempts"][-1]["nodes"] == ["n2"]


def test_after_the_grace_jobs_are_requeued_and_the_node_is_gone(
    client: Client, processes: FakeProcesses, token: Callable[..., str]
):
    client.headers["Authorization"] = f"Bearer {token('admin')}"
    jobs = run_two(client)
    leave(client, "n1", grace_s=0)
    processes.end(jobs["n2"])
    moved = job_when(client, jobs["n1"], "running", attempts=2)
    assert moved["attempts"][-1]["nodes"] == ["n2"]
    until(lambda: here(client) == {"n2": "up"})


def test_uncordoning_a_node_that_leaves_keeps_it(
    client: Client, processes: FakeProcesses, token: Callable[..., str]
):
    client.headers["Authorization"] = f"Bearer {token('admin')}"
    jobs = run_two(client)
    leave(client, "n1")
    assert client.post("/api/v1/nodes/n1/uncordon").status_code == 200
    processes.end(jobs["n1"])
    job_when(client, jobs["n1"], "succeeded")
    assert here(client) == {"n1": "up", "n2": "up"}
    more = client.post("/api/v1/jobs", json=WHOLE).json()["id"]
    assert job_when(client, more, "running")["attempts"][-1]["nodes"] == ["n1"]


def test_a_restart_continues_and_does_not_bring_back_what_left(tmp_path: Path):
    processes = FakeProcesses(tmp_path)
    deps = ServerDeps(
        journal=str(tmp_path / "journal.db"),
        executor=lambda: FakeExecutor(processes),
        logs=processes,
        wait_s=HANG_S,
    )
    jobs: dict[str, str] = {}
    for turn in range(3):
        runtime = Runtime(deps)
        runtime.start(NODES)
        tokens = runtime.control.tokens
        secret, _ = tokens.create(name=f"a{turn}", team="red", role=Role.admin, days=1)
        with TestClient(make_app(runtime.control)) as client:
            client.headers["Authorization"] = f"Bearer {secret}"
            if turn == 0:
                jobs = run_two(client)
                leave(client, "n1")
            elif turn == 1:
                assert here(client) == {"n1": "cordoned", "n2": "up"}
                processes.end(jobs["n1"])
                until(lambda: here(client) == {"n2": "up"})
            else:
                # This request is handled after the nodes of the start.
                client.post("/api/v1/jobs", json=WHOLE)
                assert here(client) == {"n2": "up"}
        runtime.stop()
    with closing(open_store(tmp_path / "journal.db")) as store:
        assert not verify(store).findings


def test_only_an_admin_lets_nodes_leave(client: Client, token: Callable[..., str]):
    client.headers["Authorization"] = f"Bearer {token('operator')}"
    assert leave(client, "n1").status_code == 403
    client.headers["Authorization"] = f"Bearer {token('admin')}"
    assert leave(client).status_code == 422
    assert leave(client, "n1", grace_s=-1).status_code == 422
    assert here(client) == {"n1": "up", "n2": "up"}
