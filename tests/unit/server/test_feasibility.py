"""Jobs that can never start are refused when they are submitted, unless nodes may still join."""

from collections.abc import Callable

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from patience import until
from tenfold.live.inbox import JoinNodes
from tenfold.model.fleet.node import Node
from tenfold.model.ids import NodeId, PoolId, SiteId
from tenfold.server.runtime.runtime import Runtime

Client = TestClient[Litestar]


@pytest.fixture(autouse=True)
def is_ready(runtime: Runtime) -> None:
    """Wait until the nodes have joined: before that, the loop decides alone."""
    follower, trouble = runtime.control.follower, runtime.control.trouble
    until(lambda: trouble() is None and len(follower.snapshot().fleet.nodes) == 2)


def job(**values: object) -> dict[str, object]:
    return {"command": ["true"], **values}


def big(name: str) -> Node:
    return Node(id=NodeId(name), pool=PoolId("big"), site=SiteId("s"), gpus=16, cpus_milli=8_000)


def test_a_job_that_can_never_start_is_refused_and_nothing_is_stored(member: Client):
    answer = member.post("/api/v1/jobs", json=job(gpus_per_node=8))
    body = answer.json()
    assert (answer.status_code, body["code"], body["field"]) == (
        422,
        "larger-than-a-node",
        "gpus_per_node",
    )
    assert "nodes = 2" in body["hint"]
    assert member.get("/api/v1/jobs").json()["jobs"] == []


def test_a_batch_names_every_job_that_can_never_start_and_submits_none(member: Client):
    jobs = [job(gpus_per_node=8), job(gpus_per_node=1), job(gpus=6), job(accelerator="H900")]
    answer = member.post("/api/v1/jobs", json={"jobs": jobs})
    assert answer.status_code == 422
    fields = [one["field"] for one in answer.json()["errors"]]
    assert sorted(fields) == ["jobs[0].gpus_per_node", "jobs[2].gpus", "jobs[3].accelerator"]
    assert member.get("/api/v1/jobs").json()["jobs"] == []


def test_a_large_batch_lists_the_first_errors_and_counts_the_others(member: Client):
    jobs = [job(gpus_per_node=8)] * 150
    body = member.post("/api/v1/jobs", json={"jobs": jobs}).json()
    assert (len(body["errors"]), body["errors_left_out"]) == (100, 50)


def test_cordoned_nodes_may_come_back(member: Client, token: Callable[..., str], client: Client):
    operator = {"Authorization": f"Bearer {token('operator')}"}
    for node in ("n1", "n2"):
        assert client.post(f"/api/v1/nodes/{node}/cordon", headers=operator).status_code == 200
    answer = member.post("/api/v1/jobs", json=job(nodes=2, gpus_per_node=4))
    assert answer.status_code == 201


def test_a_job_that_allows_it_waits_and_starts_when_its_node_joins(
    member: Client, runtime: Runtime
):
    answer = member.post("/api/v1/jobs", json=job(gpus_per_node=16, allow_pending=True))
    assert answer.status_code == 201
    made = answer.json()
    assert made["notes"] == [
        "the job will wait for nodes to join: needs 16 GPUs per node; the largest suitable node "
        "has 4"
    ]
    shown = member.get(f"/api/v1/jobs/{made['id']}").json()
    assert (shown["state"], shown["reason"]["code"]) == ("pending", "larger-than-a-node")
    why = member.get(f"/api/v1/jobs/{made['id']}/why").json()
    assert why["state"] == "pending"
    runtime.inbox.put(JoinNodes((big("b1"),)), lambda _: None)
    until(lambda: member.get(f"/api/v1/jobs/{made['id']}").json()["state"] != "pending")


def test_a_node_that_just_joined_counts(member: Client, runtime: Runtime):
    assert member.post("/api/v1/jobs", json=job(gpus_per_node=16)).status_code == 422
    joined: list[object] = []
    runtime.inbox.put(JoinNodes((big("b1"),)), joined.append)
    until(lambda: bool(joined))
    assert member.post("/api/v1/jobs", json=job(gpus_per_node=16)).status_code == 201


def test_a_dry_run_says_what_would_fit_and_agrees_with_a_submission(member: Client):
    found = member.post("/api/v1/jobs/dry-run", json=job(gpus_per_node=8)).json()
    assert found["outcome"] == "never"
    assert "nodes = 2" in found["notes"][0]
    for path in ("/api/v1/jobs/dry-run", "/api/v1/jobs"):
        answer = member.post(path, json=job(gpus=6))
        assert (answer.status_code, answer.json()["code"]) == (422, "gpus-not-divisible")


def test_the_whole_job_may_take_several_whole_nodes(member: Client):
    made = member.post("/api/v1/jobs", json=job(gpus=8)).json()
    until(lambda: member.get(f"/api/v1/jobs/{made['id']}").json()["state"] != "pending")
    (attempt,) = member.get(f"/api/v1/jobs/{made['id']}").json()["attempts"]
    assert sorted(attempt["nodes"]) == ["n1", "n2"]


def test_a_service_that_can_never_start_gets_no_hint_about_a_key_of_jobs(member: Client):
    body = {"name": "chat", "command": ["serve", "{port}"], "nodes": 9, "gpus_per_node": 4}
    answer = member.post("/api/v1/services", json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, "nodes")
    assert "allow_pending" in member.post("/api/v1/jobs", json=job(nodes=9, gpus_per_node=4)).text
    assert "allow_pending" not in answer.text
