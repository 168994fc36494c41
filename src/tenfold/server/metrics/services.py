"""Metrics of services: how many replicas are ready and wanted, and how requests are shared."""

from collections.abc import Callable, Iterable

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from tenfold.fleet.fleet import Fleet

SERVICES_MAX = 200
"""Services with labels of their own, by name; further ones are left out."""


class ServiceCollector(Collector):
    """The services, as recorded at each scrape."""

    def __init__(self, fleet: Callable[[], Fleet]) -> None:
        self._fleet = fleet
        self.is_wanted: Callable[[], bool] = lambda: True
        """Whether this control plane leads: a standby would repeat what the leader says."""

    def describe(self) -> Iterable[Metric]:
        """Return nothing: registering must not read the journal."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Read the current records."""
        ready = GaugeMetricFamily(
            "tenfold_service_ready_replicas", "Replicas that get requests.", labels=("service",)
        )
        wanted = GaugeMetricFamily(
            "tenfold_service_wanted_replicas",
            "Replicas of the current revision that should be ready or starting.",
            labels=("service",),
        )
        rolling = GaugeMetricFamily(
            "tenfold_service_canary_weight_ratio",
            "Share of the requests that a new revision is to get.",
            labels=("service",),
        )
        states = list(self._fleet().services.values()) if self.is_wanted() else []
        for state in sorted(states, key=lambda one: one.name)[:SERVICES_MAX]:
            name = state.name
            ready.add_metric((name,), sum(one.serves for one in state.replicas))
            wanted.add_metric((name,), state.target)
            rolling.add_metric((name,), state.weight / 100)
        yield from (ready, wanted, rolling)
