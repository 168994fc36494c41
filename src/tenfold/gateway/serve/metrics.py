"""Prometheus metrics, made from the gateway's counters when they are asked for."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from tenfold.model.service.traffic import (
    TTFT_BOUNDS_MS,
    GatewayTraffic,
    RevisionTraffic,
    ServiceTraffic,
)

PREFIX = "tenfold_gateway"
SERVICE_COUNTERS = {
    "arrivals": ("requests", "Authorised requests for the service"),
    "ended": ("answered", "Requests that got a response"),
    "failed": ("failed", "Accepted requests that got a gateway error"),
    "shed": ("shed", "Requests rejected because the service was overloaded"),
    "limited": ("limited", "Requests rejected because of their team's limits"),
    "retries": ("retries", "Retries before the first byte of a response"),
    "hedges": ("hedges", "Hedged requests"),
    "arrived_input_tokens": ("input_tokens", "Input tokens, estimated on arrival"),
    "output_tokens": ("output_tokens", "Output tokens"),
}
SERVICE_GAUGES = {
    "outstanding_requests": ("outstanding_requests", "Requests in progress on replicas"),
    "outstanding_tokens": (
        "outstanding_tokens",
        "Expected tokens of requests in progress on replicas",
    ),
    "waiting_requests": ("waiting_requests", "Queued requests"),
    "waiting_tokens": ("waiting_tokens", "Tokens of queued requests"),
}
BREAKER = {"closed": 0, "half-open": 1, "open": 2}


class _Now(Collector):
    def __init__(self, traffic: GatewayTraffic, gauges: dict[str, float]) -> None:
        self._traffic = traffic
        self._gauges = gauges

    def collect(self) -> Iterable[Metric]:
        services = self._traffic.services
        for name, value in self._gauges.items():
            yield GaugeMetricFamily(f"{PREFIX}_{name}", GAUGES[name], value=value)
        for field, (name, text) in SERVICE_COUNTERS.items():
            counter = CounterMetricFamily(f"{PREFIX}_{name}", text, labels=["service"])
            for one in services:
                counter.add_metric([one.name], getattr(one, field))
            yield counter
        for field, (name, text) in SERVICE_GAUGES.items():
            gauge = GaugeMetricFamily(f"{PREFIX}_{name}", text, labels=["service"])
            for one in services:
                gauge.add_metric([one.name], getattr(one, field))
            yield gauge
        yield from _seconds(services)
        yield from _revisions(services)
        yield from _replicas(services)
        yield from _overflow(services)
        yield _rolled_back(self._traffic)


GAUGES = {
    "connections": "Client connections",
    "streams": "Responses being streamed",
    "routing_version": "Version of the routing state in use; -1 for none",
    "routing_age_seconds": "Time since the routing state was last confirmed",
}


def metrics_text(traffic: GatewayTraffic, gauges: dict[str, float]) -> bytes:
    """Return the metrics in the text format of Prometheus."""
    registry = CollectorRegistry()
    registry.register(_Now(traffic, gauges))
    return generate_latest(registry)


def _seconds(services: tuple[ServiceTraffic, ...]) -> Iterable[Metric]:
    oldest = GaugeMetricFamily(
        f"{PREFIX}_oldest_wait_seconds", "Wait of the oldest queued request", labels=["service"]
    )
    busy = CounterMetricFamily(
        f"{PREFIX}_busy_request_seconds", "Time that requests spent on replicas", labels=["service"]
    )
    for one in services:
        oldest.add_metric([one.name], one.oldest_wait_ms / 1_000)
        busy.add_metric([one.name], one.busy_request_ms / 1_000)
    yield oldest
    yield busy


def _revisions(services: tuple[ServiceTraffic, ...]) -> Iterable[Metric]:
    labels = ["service", "revision"]
    families = [
        CounterMetricFamily(f"{PREFIX}_revision_{name}", text, labels=labels)
        for name, text in (
            ("requests", "Completed requests, by revision"),
            ("errors", "Requests that failed because of the replica, by revision"),
            ("misses", "Requests that missed an objective, by revision"),
        )
    ]
    first = HistogramMetricFamily(
        f"{PREFIX}_time_to_first_byte_seconds",
        "Time to the first byte of the response, including time in the queue",
        labels=labels,
    )
    for service in services:
        for one in service.revisions:
            key = [service.name, one.name]
            counts = (one.requests, one.errors, one.misses)
            for family, count in zip(families, counts, strict=True):
                family.add_metric(key, count)
            first.add_metric(key, _buckets(one), one.ttft_ms_sum / 1_000)
    yield from families
    yield first


def _buckets(revision: RevisionTraffic) -> list[tuple[str, float]]:
    total, buckets = 0, list[tuple[str, float]]()
    bounds = [*(f"{bound / 1_000:g}" for bound in TTFT_BOUNDS_MS), "+Inf"]
    for bound, count in zip(bounds, revision.ttft_counts, strict=True):
        total += count
        buckets.append((bound, total))
    return buckets


def _replicas(services: tuple[ServiceTraffic, ...]) -> Iterable[Metric]:
    labels = ["service", "revision", "replica"]
    requests = GaugeMetricFamily(
        f"{PREFIX}_replica_requests", "Requests in progress on the replica", labels=labels
    )
    tokens = GaugeMetricFamily(
        f"{PREFIX}_replica_tokens",
        "Expected tokens of those requests",
        labels=labels,
    )
    breaker = GaugeMetricFamily(
        f"{PREFIX}_replica_breaker",
        "Circuit breaker: 0 closed, 1 half-open, 2 open",
        labels=labels,
    )
    for service in services:
        for revision in service.revisions:
            for one in revision.replicas:
                key = [service.name, revision.name, one.id]
                requests.add_metric(key, one.requests)
                tokens.add_metric(key, one.tokens)
                breaker.add_metric(key, BREAKER[one.breaker])
    yield from (requests, tokens, breaker)


def _overflow(services: tuple[ServiceTraffic, ...]) -> Iterable[Metric]:
    labels = ["service", "overflow"]
    outstanding = GaugeMetricFamily(
        f"{PREFIX}_overflow_outstanding", "Requests in progress on overflow", labels=labels
    )
    requests = CounterMetricFamily(
        f"{PREFIX}_overflow_requests", "Requests sent to overflow", labels=labels
    )
    errors = CounterMetricFamily(
        f"{PREFIX}_overflow_errors", "Overflow requests that failed", labels=labels
    )
    cost = CounterMetricFamily(
        f"{PREFIX}_overflow_usd", "US dollars spent on overflow", labels=labels
    )
    for service in services:
        for one in service.overflow:
            key = [service.name, one.name]
            outstanding.add_metric(key, one.outstanding)
            requests.add_metric(key, one.requests)
            errors.add_metric(key, one.errors)
            cost.add_metric(key, one.usd_micros / 1_000_000)
    yield from (outstanding, requests, errors, cost)


def _rolled_back(traffic: GatewayTraffic) -> Metric:
    family = GaugeMetricFamily(
        f"{PREFIX}_revision_rolled_back",
        "1 for a canary that this gateway rolled back",
        labels=["service", "revision"],
    )
    for one in traffic.rolled_back:
        family.add_metric([one.service, one.revision], 1)
    return family
