"""Acceptance tests over HTTP: refused nodes with figures, tests asked for, and who accepted."""

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from litestar import Litestar
from litestar.testing import TestClient

from patience import HANG_S, until
from tenfold.compose.node_rules import node_tester_of
from tenfold.decide.detect.acceptance import acceptance_rule
from tenfold.live.executor import Launch
from tenfold.model.acceptance import Figure, NodeTest
from tenfold.server.runtime.runtime import Runtime, ServerDeps
from unit.server.conftest import NODES
from unit.server.fake_executor import FakeExecutor, FakeProcesses

Client = TestClient[Litestar]
FIGURES = {"n1": 100.0, "n2": 40.0}


class Measured(FakeExecutor):
    """Tests end at once, with the figures of their node."""

    def __init__(self, processes: FakeProcesses) -> None:
        super().__init__(processes)
        self.processes = processes

    def start(self, launch: Launch) -> None:
        super().start(launch)
        node = launch.members[0].node
        if launch.job_id.startswith("acceptance/"):
            test = NodeTest(figures=(Figure("core-float", FIGURES[node], "GFLOP/s"),))
            said = msgspec.json.encode(test).decode()
            self.processes.write(launch.job_id, f"{said}\n", launch.attempt)
            self.processes.end(launch.job_id, launch.attempt)


@pytest.fixture
def runtime(tmp_path: Path, processes: FakeProcesses) -> Generator[Runtime, None, None]:
    (tmp_path / "acceptance").mkdir()
    made = Runtime(
        ServerDeps(
            journal=str(tmp_path / "journal.db"),
            executor=lambda: Measured(processes),
            logs=processes,
            node_tester=node_tester_of(acceptance_rule(0.2), ("measure",)),
            wait_s=HANG_S,
        )
    )
    made.start(NODES, tests_nodes=True)
    yield made
    made.stop()


@pytest.fixture
def operator(client: Client, token: Callable[..., str]) -> Client:
    client.headers["Authorization"] = f"Bearer {token('operator')}"
    return client


def nodes(client: Client) -> dict[str, dict[str, Any]]:
    return {node["id"]: node for node in client.get("/api/v1/nodes").json()["nodes"]}


def joined(client: Client) -> dict[str, dict[str, Any]]:
    until(lambda: [bool(node["test"]) for node in nodes(client).values()] == [True, True])
    return nodes(client)


def test_a_refused_node_is_listed_with_its_figures(operator: Client):
    found = joined(operator)
    assert (found["n1"]["state"], found["n1"]["test"]["basis"]) == ("up", "first")
    slow = found["n2"]
    assert (slow["state"], slow["cause"]) == ("cordoned", "acceptance-refused")
    assert "core-float 40 GFLOP/s, median 100" in slow["sentence"]
    assert slow["test"]["outcome"] == "refused"
    assert slow["test"]["figures"] == [
        {
            "name": "core-float",
            "value": 40.0,
            "unit": "GFLOP/s",
            "median": 100.0,
            "deviation": -0.6,
            "allowed": 0.2,
            "judged": "slow",
        }
    ]


def test_a_refused_node_is_not_uncordoned_but_accepted_with_who_did(operator: Client):
    joined(operator)
    answer = operator.post("/api/v1/nodes/n2/uncordon")
    assert (answer.status_code, answer.json()["code"]) == (409, "node-refused")
    assert "median 100" in answer.json()["detail"]
    assert operator.post("/api/v1/nodes/n2/accept").status_code == 200
    node = nodes(operator)["n2"]
    assert (node["state"], node["test"]["outcome"]) == ("up", "overridden")
    assert node["test"]["accepted_by"] == "operator-of-red"
    again = operator.post("/api/v1/nodes/n2/accept")
    assert (again.status_code, again.json()["code"]) == (409, "node-not-refused")


def test_a_mended_node_passes_the_test_that_an_operator_asks_for(
    operator: Client, monkeypatch: pytest.MonkeyPatch
):
    joined(operator)
    monkeypatch.setitem(FIGURES, "n2", 95.0)
    assert operator.post("/api/v1/nodes/n2/test").json()["state"] == "under test"
    until(lambda: nodes(operator)["n2"]["state"] == "up")
    assert nodes(operator)["n2"]["test"]["outcome"] == "accepted"


def test_a_node_that_is_not_there_cannot_be_tested(operator: Client):
    answer = operator.post("/api/v1/nodes/n9/test")
    assert (answer.status_code, answer.json()["code"]) == (404, "no-such-node")
