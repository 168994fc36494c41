"""What the Ray engine makes of the answers of a head, which here are written by hand."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tenfold.live.executor import Launch, Member
from tenfold.live.external.engine import EngineRefusal, Submission
from tenfold.live.local.spawner.launches import launch_line
from tenfold.live.ray.api import RayApi
from tenfold.live.ray.engine import RayEngine
from tenfold.live.ray.nodes import ray_inventory
from tenfold.model.errors import Unreachable
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.run_spec import RunSpec


class Head:
    """Answers like the head of a Ray cluster, and keeps what it was asked."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.jobs: list[dict[str, Any]] = []
        self.submitted: list[dict[str, Any]] = []
        self.refusal = (0, "")
        self.tokens: set[str | None] = set()
        head = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                head.tokens.add(self.headers["Authorization"])
                nodes = {"data": {"summary": head.nodes}}
                self.answer(200, head.jobs if self.path.startswith("/api/jobs") else nodes)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if head.refusal[0]:
                    self.answer(*head.refusal)
                    return
                head.submitted.append(json.loads(body))
                self.answer(200, {})

            def answer(self, status: int, content: object) -> None:
                text = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def head() -> Iterator[Head]:
    made = Head()
    yield made
    made.server.shutdown()
    made.server.server_close()


def node(name: str, state: str = "ALIVE", **resources: float) -> dict[str, Any]:
    raylet = {"nodeName": name, "state": state, "resourcesTotal": resources}
    return {"ip": "10.0.0.1", "hostname": "host", "raylet": raylet}


def order() -> Launch:
    spec = RunSpec(name="x", command=("true",))
    members = (Member(node=NodeId("a"), gpus=(0, 1), cpus_milli=500, memory_mib=8),)
    return Launch(job_id=JobId("t-1"), attempt=3, team=TeamId("t"), run_spec=spec, members=members)


def submission(folder: Path) -> Submission:
    return Submission(launch=launch_line(order(), {}, "", 1), folder=str(folder), fence=5)


def test_a_job_carries_its_attempt_and_what_it_needs_where(head: Head, tmp_path: Path):
    token = {"RAY_AUTH_TOKEN": "secret"}
    engine = RayEngine(str(tmp_path), head.url, environment=token, names={"a": "ray-a"})
    handle = engine.submit(submission(tmp_path))
    [job] = head.submitted
    assert job["submission_id"] == handle
    assert job["metadata"] == {
        "tenfold_job": "t-1",
        "tenfold_attempt": "3",
        "tenfold_epoch": "5",
    }
    [member] = json.loads((tmp_path / "ray.json").read_text())["members"]
    assert member == {"node": "ray-a", "cpus": 0.5, "gpus": 2, "memory_bytes": 8 << 20}
    row = {"submission_id": handle, "metadata": job["metadata"], "status": "RUNNING"}
    by_hand = {"submission_id": None, "metadata": None, "status": "RUNNING"}
    other = {**row, "submission_id": "tenfold-other-1"}
    head.jobs = [row, by_hand, other]
    [listed] = engine.listing().jobs
    assert (listed.handle, listed.mark.job_id, listed.mark.attempt) == (handle, "t-1", 3)
    assert head.tokens == {"Bearer secret"}


def test_a_job_that_ray_has_already_is_not_refused(head: Head, tmp_path: Path):
    engine = RayEngine(str(tmp_path), head.url, environment={})
    handle = engine.submit(submission(tmp_path))
    head.refusal = (500, "ValueError: Job with submission_id x already exists.")
    assert engine.submit(submission(tmp_path)) == handle
    head.refusal = (400, "no such thing")
    with pytest.raises(EngineRefusal, match="no such thing"):
        engine.submit(submission(tmp_path))


def test_a_node_that_was_there_is_down_until_one_of_its_name_is_there_again(
    head: Head, tmp_path: Path
):
    engine = RayEngine(str(tmp_path), head.url, environment={})
    head.nodes = [node("a"), node("b")]
    assert {one.id: one.is_up for one in engine.listing().nodes} == {"a": True, "b": True}
    # A node that is lost may have lost its name, too.
    head.nodes = [node("a"), {"hostname": "host", "raylet": {"state": "DEAD"}}]
    assert {one.id: one.is_up for one in engine.listing().nodes} == {"a": True, "b": False}
    head.nodes = [node("a"), node("b", "DEAD"), node("b")]
    assert {one.id: one.is_up for one in engine.listing().nodes} == {"a": True, "b": True}


def test_nodes_are_listed_with_what_ray_counts(head: Head):
    head.nodes = [
        node("a", CPU=64.0, GPU=8.0, memory=float(100 << 30), **{"accelerator_type:H100": 1.0}),
        node("gone", "DEAD", CPU=1.0),
    ]
    [found] = ray_inventory(RayApi(head.url, ""), head.url).nodes
    assert (found.name, found.accelerator, found.gpus, found.cpus) == ("a", "H100", 8, 64)
    assert found.memory_gib == 100


def test_what_is_no_head_is_unreachable_with_a_hint(head: Head):
    head.jobs = [{"status": 3}]
    with pytest.raises(Unreachable, match="cannot be read") as raised:
        RayApi(head.url, "").jobs()
    assert "dashboard" in raised.value.hint
    with pytest.raises(Unreachable, match="cannot reach"):
        RayApi("http://127.0.0.1:9", "").jobs()
