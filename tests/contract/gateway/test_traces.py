"""A gateway exports a span for each request and attempt, and passes the trace on."""

import json
import threading
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from contract.gateway.clients import CHAT, chat
from tests.rigs.gateway import GatewayProcess, chat_service, state_of
from tests.rigs.openai_replica import ReplicaProcess

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
Span = dict[str, Any]


class Collector:
    """Takes spans over OTLP."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        spans = self.spans

        class Taking(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                sent = ExportTraceServiceRequest.FromString(self.rfile.read(length))
                for resource in sent.resource_spans:
                    for scope in resource.scope_spans:
                        spans.extend(_fields(one) for one in scope.spans)
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = HTTPServer(("127.0.0.1", 0), Taking)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _fields(span: Any) -> Span:
    attributes = {one.key: one.value.string_value or one.value.int_value for one in span.attributes}
    return {
        "name": span.name,
        "trace": span.trace_id.hex(),
        "id": span.span_id.hex(),
        "parent": span.parent_span_id.hex(),
        **attributes,
    }


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Generator[Collector, None, None]:
    made = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", made.url)
    yield made
    made.close()


def test_a_request_is_a_span_of_its_trace_and_each_attempt_one_within_it(
    collector: Collector, replica: Callable[..., ReplicaProcess]
):
    broken, own = replica("--name", "broken"), replica("--name", "own")
    broken.control("status", value=500)
    front = GatewayProcess(state_of(chat_service([broken.url, own.url], affinity="none")))
    try:
        headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "vendor=1"}
        for _ in range(6):
            assert front.post(CHAT, chat(), headers)[0] == 200
        plain = front.send("GET", "/v1/models", None, {"traceparent": "not a trace\ttext"})
        assert plain[0] == 200
        assert front.post(CHAT, chat(model="absent-secret"), headers)[0] == 404
        sent = own.stats()["seen"][-1]
        # The last spans are sent when it ends.
        front.terminate()
        front.process.wait()
    finally:
        front.close()
    requests = [one for one in collector.spans if one["name"] == f"POST {CHAT}"]
    attempts = [one for one in collector.spans if one["name"] == "attempt"]
    answered = [one for one in requests if one["http.response.status_code"] == 200]
    assert len(answered) == 6
    assert {(one["trace"], one["parent"]) for one in requests} == {(TRACE, PARENT)}
    assert {one["parent"] for one in attempts} == {one["id"] for one in answered}
    assert len(attempts) > len(answered), "a retry is an attempt of its own"
    # What the replica got names the attempt as its parent.
    assert sent["traceparent"] in {f"00-{TRACE}-{one['id']}-01" for one in attempts}
    assert sent["tracestate"] == "vendor=1"
    assert {one["tenfold.service"] for one in answered} == {"chat"}
    assert all(one["tenfold.tokens"] > 0 for one in answered)
    [models] = [one for one in collector.spans if one["name"] == "GET /v1/models"]
    assert models["trace"] != TRACE
    [refused] = [one for one in requests if one["http.response.status_code"] == 404]
    assert refused["error.type"] == "model_not_found"
    assert "secret" not in json.dumps(collector.spans)


def test_without_a_collector_the_trace_is_passed_on_as_it_came(
    gateway: Callable[..., GatewayProcess], replica: Callable[..., ReplicaProcess]
):
    own = replica()
    front = gateway(state_of(chat_service([own.url])))
    parent = f"00-{TRACE}-{PARENT}-01"
    assert front.post(CHAT, chat(), {"traceparent": parent})[0] == 200
    assert own.stats()["seen"][-1]["traceparent"] == parent
