"""Spans for those who collect them: each request, and each cycle of the loop.

They are sent where `OTEL_EXPORTER_OTLP_ENDPOINT` says, by the extra `otel`. Without that
variable nothing is imported and nothing is spent.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tenfold import __version__
from tenfold.clock.wall import now_ms
from tenfold.model.errors import InputError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Tracer

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
SERVICE = "tenfold"


class Traces:
    """Makes spans where somebody wants them, and else does nothing."""

    def __init__(self, tracer: "Tracer | None" = None) -> None:
        self._tracer = tracer

    @contextmanager
    def request(self, method: str, route: str) -> Generator[dict[str, int], None, None]:
        """Span one request; `status` is put into what is yielded."""
        told: dict[str, int] = {}
        if self._tracer is None:
            yield told
            return
        with self._tracer.start_as_current_span(f"{method} {route}") as span:
            span.set_attribute("http.request.method", method)
            span.set_attribute("http.route", route)
            yield told
            span.set_attribute("http.response.status_code", told.get("status", 0))

    def cycle(self, begun_ms: int | None, decider: str, actions: int, waits: int) -> None:
        """Span one cycle that is over: from its first fact to its last order."""
        if self._tracer is None or begun_ms is None:
            return
        span = self._tracer.start_span("cycle", start_time=begun_ms * 1_000_000)
        span.set_attribute("tenfold.decider", decider)
        span.set_attribute("tenfold.actions", actions)
        span.set_attribute("tenfold.jobs_waiting", waits)
        span.end(max(begun_ms, now_ms()) * 1_000_000)


def traces_here() -> Traces:
    """Return what the environment asks for."""
    if not os.environ.get(ENDPOINT):
        return Traces()
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
            OTLPSpanExporter,
        )
    except ImportError:
        raise InputError(
            "otel-not-installed",
            f"`{ENDPOINT}` is set, and what sends spans is not installed",
            "install `tenfold[otel]`, or unset the variable",
        ) from None
    return traces_to(OTLPSpanExporter())


def traces_to(exporter: "SpanExporter") -> Traces:
    """Return spans that an exporter is given, in batches and from a thread of their own."""
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    resource = Resource.create({"service.name": SERVICE, "service.version": __version__})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=1_000))
    return Traces(provider.get_tracer(SERVICE, __version__))
