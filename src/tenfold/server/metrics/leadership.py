"""Metrics of the control planes that share a journal: who leads, and how safely."""

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from tenfold.server.runtime.leadership import Leadership


class LeadershipCollector(Collector):
    """The lease, as this control plane sees it at each scrape."""

    def __init__(self, leadership: Leadership) -> None:
        self._leadership = leadership

    def describe(self) -> Iterable[Metric]:
        """Return nothing: registering must not read the journal."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Read the current state, which is in memory."""
        lead = self._leadership
        yield GaugeMetricFamily(
            "tenfold_leader",
            "1 if this control plane is the leader, 0 if it is a standby.",
            value=int(lead.epoch is not None),
        )
        yield GaugeMetricFamily(
            "tenfold_lease_epoch",
            "Epoch in which this control plane is the leader; 0 if it is a standby.",
            value=lead.epoch or 0,
        )
        yield GaugeMetricFamily(
            "tenfold_lease_left_seconds",
            "Time for which this control plane may give orders without renewing its lease.",
            value=lead.left_s(),
        )
        yield GaugeMetricFamily(
            "tenfold_lease_renewal_seconds", "Duration of the last renewal.", value=lead.renewed_s
        )
        yield CounterMetricFamily(
            "tenfold_lease_takeovers",
            "Times this control plane took the lease.",
            value=lead.takeovers,
        )
        yield CounterMetricFamily(
            "tenfold_lease_losses",
            "Times another control plane took the lease, or orders arrived too late for it.",
            value=lead.losses,
        )
        refused = CounterMetricFamily(
            "tenfold_stale_writes",
            "Writes and orders refused because another control plane is the leader, by what "
            "refused them.",
            labels=("refused_by",),
        )
        for what, number in sorted(lead.refused.items()):
            refused.add_metric((what,), number)
        yield refused
