"""One job is one trace, from the request to the end, and a collector that is away does no harm."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

import tenfold
from patience import HANG_S, until
from tenfold.client.endpoint import read_address
from unit.up_process import Up

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
STAGES = ["submit", "queue", "decide", "launch", "run", "end"]
SECRET = "a-value-of-the-environment"


class Collector:
    """A server that takes spans as OTLP over HTTP has them."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        taken = self.bodies

        class Takes(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                taken.append(self.rfile.read(int(self.headers["Content-Length"])))
                assert self.path == "/v1/traces"
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Takes)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def spans(self) -> list:
        return [
            span
            for body in list(self.bodies)
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def stages(self, job_id: str) -> list:
        """Return the stages of a job, in their order."""
        return sorted(
            (span for span in self.spans() if told(span).get("tenfold.job") == job_id),
            key=lambda span: STAGES.index(span.name),
        )


def told(span) -> dict[str, str | int]:
    return {one.key: one.value.string_value or one.value.int_value for one in span.attributes}


@contextmanager
def collecting() -> Generator[Collector, None, None]:
    made = Collector()
    thread = Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.server.shutdown()
        made.server.server_close()
        thread.join(10)


def submit_traced(up: Up, script: str, **more: str) -> str:
    """Hand in a job by a request that is part of a trace."""
    at = read_address(up.home)
    assert at is not None
    ask = {"command": ["sh", "-c", script], "env": {"WORD": SECRET, **more}}
    headers = {"Authorization": f"Bearer {at.token}", "traceparent": PARENT}
    made = httpx.post(f"{at.url}/api/v1/jobs", json=ask, headers=headers, timeout=HANG_S)
    assert made.status_code == 201, made.text
    return made.json()["id"]


def test_the_trace_of_a_job_shows_all_its_stages_through_a_kill(
    up: Up, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    limiter = tmp_path / "gate"
    os.mkfifo(limiter)
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        up.start("--virtual-nodes", "2")
        job_id = submit_traced(up, 'echo $TRACEPARENT; read word < "$GATE"', GATE=str(limiter))
        until(lambda: [one.name for one in collector.stages(job_id)] == STAGES[:4])
        up.kill()
        up.start("--virtual-nodes", "2")
        limiter.write_text("go\n")
        with tenfold.Client() as client:
            assert client.wait(job_id, timeout_s=HANG_S).state == "succeeded"
            inside = client.logs(job_id).strip()
        said = up.interrupt()
        assert "stopped" in said
        stages = collector.stages(job_id)
        assert [one.name for one in stages] == STAGES
        (request,) = [
            one
            for one in collector.spans()
            if one.name == "POST /api/v1/jobs" and one.trace_id.hex() == TRACE
        ]
    assert {one.trace_id.hex() for one in stages} == {TRACE}
    assert {one.parent_span_id for one in stages} == {request.span_id}
    assert request.parent_span_id.hex() == "b7ad6b7169203331"
    assert inside == f"00-{TRACE}-{request.span_id.hex()}-01"
    for one in stages:
        assert one.start_time_unix_nano <= one.end_time_unix_nano
    run = stages[4]
    assert (told(run)["tenfold.outcome"], told(run)["tenfold.attempt"]) == ("completed", 1)
    for body in collector.bodies:
        assert SECRET.encode() not in body
        assert b"tf_" not in body


def test_a_collector_that_is_away_does_no_harm(up: Up, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    up.start("--virtual-nodes", "2")
    with tenfold.Client() as client:
        made = [client.submit(command=["true"]) for _ in range(5)]
        for one in made:
            assert client.wait(one.id, timeout_s=HANG_S).state == "succeeded"
    said = up.interrupt()
    assert said.splitlines()[-1].startswith("stopped")
    assert len(said.splitlines()) == 1
    log = (up.home / "logs" / "server.jsonl").read_text()
    assert '"logger":"opentelemetry' in log


def test_without_a_collector_nothing_of_it_is_loaded(up: Up, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    up.start("--virtual-nodes", "2")
    assert up.process is not None
    with tenfold.Client() as client:
        client.wait(client.submit(command=["true"]).id, timeout_s=HANG_S)
    maps = Path(f"/proc/{up.process.pid}/maps")
    assert "protobuf" not in maps.read_text()
    up.interrupt()
