"""Several nodes in one request: all of them or none, and in one piece in the journal."""

from collections.abc import Callable

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from patience import until
from unit.server.fake_executor import FakeProcesses
from unit.server.routes.test_events import read
from unit.server.waiting import job_when

Client = TestClient[Litestar]


@pytest.fixture
def operator(client: Client, token: Callable[..., str]) -> Client:
    client.headers["Authorization"] = f"Bearer {token('operator')}"
    until(lambda: len(client.get("/api/v1/nodes").json()["nodes"]) == 2)
    return client


def ask(client: Client, verb: str, *nodes: str, status: int = 200, **more: str) -> dict:
    answer = client.post("/api/v1/nodes", json={"nodes": list(nodes), "verb": verb, **more})
    assert answer.status_code == status, answer.text
    return answer.json()


def states(client: Client) -> dict[str, str]:
    return {one["id"]: one["state"] for one in client.get("/api/v1/nodes").json()["nodes"]}


def kinds(client: Client) -> list[str]:
    return [kind for _, kind, _ in read(client)]


def test_nodes_are_marked_in_the_order_in_which_they_are_named(operator: Client):
    before = len(kinds(operator))
    told = ask(operator, "fail", "n2", "n1", "n2", cause="leaf-switch")
    assert told == {"nodes": [{"id": "n2", "state": "down"}, {"id": "n1", "state": "down"}]}
    made = read(operator)[before:]
    assert [kind for _, kind, _ in made] == ["NodeLost", "NodeLost"]
    assert [data.count('"n2"') for _, _, data in made] == [1, 0]
    ask(operator, "uncordon", "n1", "n2")
    assert states(operator) == {"n1": "up", "n2": "up"}


def test_a_name_that_nobody_knows_refuses_all_and_is_named(operator: Client):
    before = kinds(operator)
    for verb in ("cordon", "fail", "uncordon", "accept"):
        told = ask(operator, verb, "n1", "x1", "n2", "x2", status=404)
        assert told["code"] == "no-such-node"
        assert "`x1`, `x2`" in told["detail"]
    many = ask(operator, "fail", "n1", *(f"x{one}" for one in range(9)), status=404)
    assert many["detail"].endswith("`x3` and 5 more")
    assert kinds(operator) == before


def test_what_cannot_be_done_to_one_is_done_to_none(operator: Client):
    before = kinds(operator)
    assert ask(operator, "test", "n1", "n2", status=409)["code"] == "no-acceptance-test"
    assert ask(operator, "accept", "n1", "n2", status=409)["code"] == "node-not-refused"
    assert kinds(operator) == before


def test_jobs_on_all_of_them_are_ended_and_wait_again(operator: Client, processes: FakeProcesses):
    asked = {"command": ["x"], "nodes": 2, "gpus_per_node": 4}
    made = operator.post("/api/v1/jobs", json=asked).json()["id"]
    job_when(operator, made, "running")
    ask(operator, "fail", "n1", "n2")
    until(lambda: len(processes.ends) == 1)
    ask(operator, "uncordon", "n1", "n2")
    assert job_when(operator, made, "running", attempts=2)["attempts"][0]["reason"] == "node-lost"


def test_why_a_node_is_cordoned_is_kept_with_who_said_so(operator: Client):
    ask(operator, "cordon", "n1", cause="rack move")
    (one, _) = operator.get("/api/v1/nodes").json()["nodes"]
    assert (one["state"], one["cause"]) == ("cordoned", "by-hand")
    assert one["sentence"] == "rack move (by operator-of-red)"
    operator.post("/api/v1/nodes/n2/cordon", params={"cause": "noise"})
    (_, two) = operator.get("/api/v1/nodes").json()["nodes"]
    assert two["sentence"] == "noise (by operator-of-red)"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"nodes": [], "verb": "cordon"}, "nodes"),
        ({"nodes": ["n1"], "verb": "drown"}, "verb"),
        ({"nodes": "n1", "verb": "cordon"}, "nodes"),
        ({"nodes": ["n1"], "verb": "cordon", "force": True}, "force"),
    ],
)
def test_what_cannot_be_read_is_named(operator: Client, body: dict, field: str):
    answer = operator.post("/api/v1/nodes", json=body)
    assert answer.status_code == 422
    assert answer.json()["field"].startswith(field)
