"""OpenTelemetry spans: each request here and in gateways, each cycle, the stages of each job.

They are sent to `OTEL_EXPORTER_OTLP_ENDPOINT` and need the extra `otel`. Without that variable
nothing is imported and there is no cost. If the collector is down only spans are lost: they wait in
a bounded queue, are sent from another thread, and are dropped when it is full.
"""

import os
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING, Any

from tenfold import __version__
from tenfold.clock.wall import now_ms
from tenfold.model.errors import InputError

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span, Tracer

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
ENDPOINTS = (ENDPOINT, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
SERVICE = "tenfold"
PARENT = "traceparent"
"""The W3C header that names the trace of a request."""
END_S = 3.0
"""How long to wait for the last spans at the end."""
NS = 1_000_000


class Traces:
    """Creates spans if tracing is on, and does nothing otherwise."""

    def __init__(self, provider: "TracerProvider | None" = None) -> None:
        self._provider = provider
        self._tracer = None if provider is None else provider.get_tracer(SERVICE, __version__)

    @property
    def is_on(self) -> bool:
        """Whether tracing is on."""
        return self._tracer is not None

    @contextmanager
    def request(
        self, method: str, route: str, headers: Iterable[tuple[bytes, bytes]] = ()
    ) -> Generator[dict[str, int], None, None]:
        """Trace one request; set `status` in the yielded dict."""
        attributes: dict[str, int] = {}
        if self._tracer is None:
            yield attributes
            return
        parent = next((value for name, value in headers if name == PARENT.encode()), b"")
        above = _context(parent.decode("latin-1"))
        with self._tracer.start_as_current_span(f"{method} {route}", above) as span:
            span.set_attribute("http.request.method", method)
            span.set_attribute("http.route", route)
            yield attributes
            span.set_attribute("http.response.status_code", attributes.get("status", 0))

    def current(self) -> str:
        """Return the current trace as a `traceparent` header; empty if there is none."""
        if self._tracer is None:
            return ""
        from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415
            TraceContextTextMapPropagator,
        )

        carrier: dict[str, str] = {}
        TraceContextTextMapPropagator().inject(carrier)
        return carrier.get(PARENT, "")

    def cycle(self, started_ms: int | None, decider: str, actions: int, waits: int) -> None:
        """Trace one finished cycle, from its first event to its last action."""
        if started_ms is not None:
            attributes = {"decider": decider, "actions": actions, "jobs_waiting": waits}
            self.stage("cycle", "", started_ms, now_ms(), attributes)

    def stage(
        self,
        name: str,
        trace: str,
        started_ms: int,
        ended_ms: int,
        attributes: Mapping[str, str | int],
    ) -> None:
        """Trace something that has ended, in a trace begun elsewhere, or in its own."""
        if self._tracer is None:
            return
        span = self._tracer.start_span(name, _context(trace), start_time=started_ms * NS)
        for key, value in attributes.items():
            span.set_attribute(f"tenfold.{key}", value)
        span.end(max(started_ms, ended_ms) * NS)

    def requests(self) -> "RequestSpans | None":
        """Return what a gateway exports its spans with; None if tracing is off."""
        return None if self._tracer is None else RequestSpans(self, self._tracer)

    def close(self) -> None:
        """Send the remaining spans, waiting only briefly."""
        if self._provider is not None:
            # A collector that is down would delay the exit.
            last = Thread(target=self._provider.shutdown, name="tenfold-traces", daemon=True)
            last.start()
            last.join(END_S)


class RequestSpans:
    """Spans of the requests of a gateway, which run at the same time in one thread."""

    def __init__(self, traces: Traces, tracer: "Tracer") -> None:
        self._traces, self._tracer = traces, tracer

    def begin(self, name: str, parent: str) -> "RequestSpan":
        """Begin the span of a request whose header names `parent`."""
        from opentelemetry.trace import SpanKind  # noqa: PLC0415

        span = self._tracer.start_span(name, _context(parent), kind=SpanKind.SERVER)
        return RequestSpan(self._tracer, span)

    def close(self) -> None:
        """Send the remaining spans, waiting only briefly."""
        self._traces.close()


class RequestSpan:
    """A span that others may be within, without being the current one of a thread."""

    def __init__(self, tracer: "Tracer", span: "Span") -> None:
        self._tracer, self._span = tracer, span

    def note(self, name: str, value: str | int | float) -> None:
        """Add an attribute."""
        self._span.set_attribute(name, value)

    def child(self, name: str) -> "RequestSpan":
        """Begin a span within this one, for something that is sent on."""
        from opentelemetry.trace import SpanKind, set_span_in_context  # noqa: PLC0415

        above = set_span_in_context(self._span)
        return RequestSpan(self._tracer, self._tracer.start_span(name, above, kind=SpanKind.CLIENT))

    def header(self) -> str:
        """Return the header that names this span as the parent of others."""
        own = self._span.get_span_context()
        return f"00-{own.trace_id:032x}-{own.span_id:016x}-{int(own.trace_flags):02x}"

    def end(self, *, failed: bool = False) -> None:
        """End it."""
        from opentelemetry.trace import StatusCode  # noqa: PLC0415

        if failed:
            self._span.set_status(StatusCode.ERROR)
        self._span.end()


def traces_from_environment(service: str = SERVICE) -> Traces:
    """Return tracing as configured by the environment, under the name of a program."""
    if not any(os.environ.get(name) for name in ENDPOINTS):
        return Traces()
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
            OTLPSpanExporter,
        )
    except ImportError:
        raise InputError(
            "otel-not-installed",
            f"`{ENDPOINT}` is set, but the OpenTelemetry exporter is not installed",
            "install `tenfold[otel]`, or unset the variable",
        ) from None
    return traces_to(OTLPSpanExporter(), service)


def traces_to(exporter: "SpanExporter", service: str = SERVICE) -> Traces:
    """Return tracing to an exporter, in batches and from another thread."""
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    resource = Resource.create({"service.name": service, "service.version": __version__})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=1_000))
    return Traces(provider)


def _context(trace: str) -> "Context | Any":
    """Return the context that a header names; an empty one for a new trace."""
    from opentelemetry.context import Context  # noqa: PLC0415
    from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415
        TraceContextTextMapPropagator,
    )

    return TraceContextTextMapPropagator().extract({PARENT: trace}, Context())
