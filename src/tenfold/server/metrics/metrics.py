"""Metrics, in the format that Prometheus scrapes.

The loop's metrics are written by its thread, the server's by its own. What is in the journal is not
counted again, but read at each scrape.
"""

from collections.abc import Callable, Iterable

from litestar import Response, Router, get
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from tenfold.fleet.fleet import Fleet
from tenfold.journal.read import counts
from tenfold.journal.store import Store
from tenfold.model.job.job import JOB_STATES
from tenfold.model.reason import Reason
from tenfold.model.units import SECOND
from tenfold.server.auth.access import requires_role
from tenfold.server.auth.tokens import Role

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
COMMITS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
REQUESTS_S = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)
FAILURES_S = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0)
WAITS_S = (
    0.1,
    1.0,
    5.0,
    15.0,
    60.0,
    300.0,
    900.0,
    3_600.0,
    14_400.0,
    43_200.0,
    86_400.0,
    604_800.0,
)

disable_created_metrics()


class JobMetrics:
    """Metrics of jobs: waits, failures and recoveries, and useful GPU time."""

    def __init__(self, own: CollectorRegistry) -> None:
        self.detected = Histogram(
            "tenfold_failure_detection_seconds",
            "Time from the last sign of life of a failed attempt to the recorded failure.",
            buckets=FAILURES_S,
            registry=own,
        )
        self.recovered = Histogram(
            "tenfold_failure_recovery_seconds",
            "Time from the end of a failed job's processes until it runs again.",
            buckets=FAILURES_S,
            registry=own,
        )
        self.queue_wait = Histogram(
            "tenfold_queue_wait_seconds",
            "Time from submission to first start.",
            buckets=WAITS_S,
            registry=own,
        )
        self.gpu_spent = Counter(
            "tenfold_allocated_gpu_seconds",
            "GPU time held by attempts, by how they ended; counted when they end.",
            labelnames=("ended",),
            registry=own,
        )
        self.gpu_useful = Counter(
            "tenfold_useful_gpu_seconds",
            "GPU time of completed runs, and what other runs saved; divided by allocated: goodput.",
            registry=own,
        )
        self.gpu_idle = Counter(
            "tenfold_idle_gpu_seconds",
            "GPU time held but not used; counted when the job is busy again or ends.",
            registry=own,
        )
        self.job_useful = Counter(
            "tenfold_completed_job_useful_seconds",
            "Run time of completed jobs without repeated work; divided by wall time: ETTR.",
            registry=own,
        )
        self.job_wall = Counter(
            "tenfold_completed_job_wall_seconds",
            "Time of completed jobs from submission to end.",
            registry=own,
        )


class Meters:
    """All metrics of one server, in its own registry."""

    def __init__(self) -> None:
        self.registry = own = CollectorRegistry()
        self.submitted = Counter("tenfold_submitted_jobs", "Jobs accepted.", registry=own)
        self.cycles = Counter("tenfold_loop_cycles", "Scheduling decisions.", registry=own)
        self.starts = Counter(
            "tenfold_loop_starts",
            "Starts of the scheduling loop, including restarts.",
            registry=own,
        )
        self.events = Counter(
            "tenfold_journal_events", "Events written to the journal.", registry=own
        )
        self.commits = Histogram(
            "tenfold_journal_commit_seconds",
            "Time to write events to the journal.",
            buckets=COMMITS_S,
            registry=own,
        )
        self.jobs = JobMetrics(own)
        self.requests = Histogram(
            "tenfold_http_request_seconds",
            "HTTP requests by route, method and status.",
            labelnames=("method", "route", "status"),
            buckets=REQUESTS_S,
            registry=own,
        )
        self.rejected = Counter(
            "tenfold_http_rejected",
            "Requests rejected and clients disconnected because a budget is used up.",
            labelnames=("reason",),
            registry=own,
        )

    def watch(
        self,
        store: Store,
        fleet: Callable[[], Fleet],
        trouble: Callable[[], Reason | None],
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        """Add what is read at each scrape: jobs, nodes and GPUs by state, and the loop.

        A standby exports none of it: the leader does, and sums would count it twice.
        """
        self.registry.register(_StateCollector(store, fleet, trouble, leads))

    def watch_clock(self, ahead_ms: Callable[[], int]) -> None:
        """Add the difference between the loop's clock and the machine's."""
        ahead = Gauge(
            "tenfold_clock_ahead_seconds",
            "How far the loop's clock is ahead of the machine's.",
            registry=self.registry,
        )
        ahead.set_function(lambda: ahead_ms() / SECOND)

    def text(self) -> bytes:
        """Return all metrics in the text format."""
        return generate_latest(self.registry)


class _StateCollector(Collector):
    """Gauges that are read from the journal."""

    def __init__(
        self,
        store: Store,
        fleet: Callable[[], Fleet],
        trouble: Callable[[], Reason | None],
        leads: Callable[[], bool],
    ) -> None:
        self._store, self._fleet, self._trouble, self._leads = store, fleet, trouble, leads

    def describe(self) -> Iterable[Metric]:
        """Return nothing: registering must not read the journal."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Read the current state."""
        if not self._leads():
            return
        jobs_by_state = counts(self._store)
        jobs = GaugeMetricFamily("tenfold_jobs", "Jobs by state.", labels=("state",))
        for state in JOB_STATES:
            jobs.add_metric((state,), jobs_by_state.get(state, 0))
        yield jobs
        depth = jobs_by_state.get("pending", 0)
        yield GaugeMetricFamily("tenfold_queue_depth_jobs", "Pending jobs.", value=depth)
        fleet = self._fleet()
        nodes = GaugeMetricFamily("tenfold_nodes", "Nodes by state.", labels=("state",))
        for state in ("up", "cordoned", "down"):
            nodes.add_metric((state,), sum(one == state for one in fleet.states.values()))
        yield nodes
        blamed = len(fleet.failure_log.blamed)
        help_text = "Nodes cordoned because jobs kept failing there."
        yield GaugeMetricFamily("tenfold_blamed_nodes", help_text, value=blamed)
        help_text = "Pending jobs that are held because of an internal error while handling them."
        yield GaugeMetricFamily("tenfold_held_jobs", help_text, value=len(fleet.held))
        gpus = GaugeMetricFamily("tenfold_gpus", "GPUs by state.", labels=("state",))
        for state, count in gpus_by_state(fleet).items():
            gpus.add_metric((state,), count)
        yield gpus
        running = int(self._trouble() is None)
        yield GaugeMetricFamily(
            "tenfold_loop_up", "1 while the scheduling loop runs.", value=running
        )


def gpus_by_state(fleet: Fleet) -> dict[str, int]:
    """Return how many GPUs are held, free, free but cordoned, or down."""
    found = {"held": 0, "free": 0, "cordoned": 0, "down": 0}
    for node_id, node in fleet.nodes.items():
        state, free = fleet.states[node_id], fleet.gpus_free[node_id]
        if state == "down":
            found["down"] += node.gpus
            continue
        found["held"] += node.gpus - free
        found["free" if state == "up" else "cordoned"] += free
    return found


def metrics_routes(meters: Meters) -> Router:
    """Return the route that Prometheus scrapes."""

    @get(
        "/metrics",
        opt=requires_role(Role.viewer),
        sync_to_thread=True,
        operation_id="metrics",
        media_type="text/plain",
    )
    def metrics() -> Response[bytes]:
        """Get all metrics, for Prometheus to scrape."""
        return Response(meters.text(), media_type=MEDIA_TYPE)

    return Router("/", route_handlers=[metrics])
