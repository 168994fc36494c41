"""Spans: one for a request, one for a cycle, and none where nobody asked for them."""

import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from litestar.testing import TestClient
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from patience import until
from tenfold.model.errors import InputError
from tenfold.server.app import make_app
from tenfold.server.auth.tokens import Role
from tenfold.server.metrics.traces import ENDPOINT, traces_from_environment, traces_to
from tenfold.server.runtime.runtime import Runtime, ServerDeps
from unit.server.fake_executor import FakeExecutor, FakeProcesses

EXPORTER = "opentelemetry.exporter.otlp.proto.http.trace_exporter"


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def runtime(
    tmp_path: Path, processes: FakeProcesses, spans: InMemorySpanExporter
) -> Generator[Runtime, None, None]:
    deps = ServerDeps(
        journal=str(tmp_path / "journal.db"),
        executor=lambda: FakeExecutor(processes),
        logs=processes,
        traces=traces_to(spans),
    )
    made = Runtime(deps)
    made.start()
    yield made
    made.stop()


def test_requests_and_cycles_are_spanned(runtime: Runtime, spans: InMemorySpanExporter):
    secret, _ = runtime.control.tokens.create(name="a", team="red", role=Role.member)
    with TestClient(make_app(runtime.control)) as client:
        client.headers["Authorization"] = f"Bearer {secret}"
        client.post("/api/v1/jobs", json={"command": ["true"]})

    def found() -> set[str]:
        return {span.name for span in spans.get_finished_spans()}

    until(lambda: found() >= {"POST /api/v1/jobs", "cycle"})
    (request,) = [one for one in spans.get_finished_spans() if one.name == "POST /api/v1/jobs"]
    assert request.attributes is not None
    assert request.attributes["http.response.status_code"] == 201
    assert not any(secret in str(span.attributes) for span in spans.get_finished_spans())


def test_spans_are_made_when_the_environment_asks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(ENDPOINT, raising=False)
    with traces_from_environment().request("GET", "/") as told:
        assert told == {}
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:1")
    monkeypatch.setitem(sys.modules, EXPORTER, None)
    with pytest.raises(InputError) as refused:
        traces_from_environment()
    assert refused.value.code == "otel-not-installed"


def test_a_gateways_spans_join_the_trace_of_the_request(spans: InMemorySpanExporter):
    requests = traces_to(spans, "tenfold-gateway").requests()
    assert requests is not None
    trace = "0af7651916cd43dd8448eb211c80319c"
    span = requests.begin("POST /v1/chat/completions", f"00-{trace}-b7ad6b7169203331-01")
    attempt = span.child("attempt")
    assert attempt.header().startswith(f"00-{trace}-")
    assert attempt.header() != span.header()
    attempt.end(failed=True)
    span.note("tenfold.service", "chat")
    span.end()
    broken = requests.begin("GET /", "00-no trace")
    assert trace not in broken.header()
    broken.end()
    requests.close()
    inner, outer, alone = spans.get_finished_spans()
    assert inner.parent is not None
    assert outer.context is not None
    assert inner.parent.span_id == outer.context.span_id
    assert outer.parent is not None
    assert f"{outer.parent.span_id:016x}" == "b7ad6b7169203331"
    assert outer.attributes == {"tenfold.service": "chat"}
    assert alone.parent is None
    assert outer.resource.attributes["service.name"] == "tenfold-gateway"
