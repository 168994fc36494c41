"""What is counted and timed, in the form that Prometheus scrapes.

Meters of the loop are written by its thread, those of the server by its own. What stands in
the journal anyway is not counted twice: it is read when somebody scrapes.
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
    """What becomes of jobs: how long they wait, how failures are got over, what GPUs are for."""

    def __init__(self, own: CollectorRegistry) -> None:
        self.detected = Histogram(
            "tenfold_failure_detection_seconds",
            "From the last sign of life of an attempt that failed to the fact on the disk.",
            buckets=FAILURES_S,
            registry=own,
        )
        self.recovered = Histogram(
            "tenfold_failure_recovery_seconds",
            "From the end of the processes of a job that failed to its running again.",
            buckets=FAILURES_S,
            registry=own,
        )
        self.queue_wait = Histogram(
            "tenfold_queue_wait_seconds",
            "From the submission of a job to its first start.",
            buckets=WAITS_S,
            registry=own,
        )
        self.gpu_spent = Counter(
            "tenfold_allocated_gpu_seconds",
            "GPU time that attempts held, by how they ended; counted at their ends.",
            labelnames=("ended",),
            registry=own,
        )
        self.gpu_useful = Counter(
            "tenfold_useful_gpu_seconds",
            "GPU time of runs to the end, and of others what they saved; over allocated: goodput.",
            registry=own,
        )
        self.gpu_idle = Counter(
            "tenfold_idle_gpu_seconds",
            "GPU time that jobs held and did not use; counted once they are used again or over.",
            registry=own,
        )
        self.job_useful = Counter(
            "tenfold_completed_job_useful_seconds",
            "Running time of completed jobs that was not done again; over wall time: ETTR.",
            registry=own,
        )
        self.job_wall = Counter(
            "tenfold_completed_job_wall_seconds",
            "Time of completed jobs from submission to end.",
            registry=own,
        )


class Meters:
    """All meters of one server; each server has a registry of its own."""

    def __init__(self) -> None:
        self.registry = own = CollectorRegistry()
        self.submitted = Counter(
            "tenfold_submitted_jobs", "Jobs that were acknowledged.", registry=own
        )
        self.cycles = Counter("tenfold_loop_cycles", "Decisions that were made.", registry=own)
        self.starts = Counter(
            "tenfold_loop_starts", "Times the loop began from the journal.", registry=own
        )
        self.events = Counter(
            "tenfold_journal_events", "Events that were written to the journal.", registry=own
        )
        self.commits = Histogram(
            "tenfold_journal_commit_seconds",
            "From handing events to the journal to the disk having them.",
            buckets=COMMITS_S,
            registry=own,
        )
        self.jobs = JobMetrics(own)
        self.requests = Histogram(
            "tenfold_http_request_seconds",
            "Requests over HTTP by route, method and status.",
            labelnames=("method", "route", "status"),
            buckets=REQUESTS_S,
            registry=own,
        )

    def watch(
        self, store: Store, fleet: Callable[[], Fleet], trouble: Callable[[], Reason | None]
    ) -> None:
        """Add what is read at each scrape: jobs, nodes and GPUs by state, and the loop."""
        self.registry.register(_StateCollector(store, fleet, trouble))

    def watch_clock(self, ahead_ms: Callable[[], int]) -> None:
        """Add how far the loop's clock is from that of the machine."""
        ahead = Gauge(
            "tenfold_clock_ahead_seconds",
            "How far the clock of the loop is ahead of that of the machine.",
            registry=self.registry,
        )
        ahead.set_function(lambda: ahead_ms() / SECOND)

    def text(self) -> bytes:
        """Return everything, to be scraped."""
        return generate_latest(self.registry)


class _StateCollector(Collector):
    """Gauges that are read off the journal."""

    def __init__(
        self, store: Store, fleet: Callable[[], Fleet], trouble: Callable[[], Reason | None]
    ) -> None:
        self._store, self._fleet, self._trouble = store, fleet, trouble

    def describe(self) -> Iterable[Metric]:
        """Return nothing: registering must not read the journal."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Read what is so now."""
        jobs_by_state = counts(self._store)
        jobs = GaugeMetricFamily("tenfold_jobs", "Jobs by state.", labels=("state",))
        for state in JOB_STATES:
            jobs.add_metric((state,), jobs_by_state.get(state, 0))
        yield jobs
        depth = jobs_by_state.get("pending", 0)
        yield GaugeMetricFamily("tenfold_queue_depth_jobs", "Jobs that wait.", value=depth)
        fleet = self._fleet()
        nodes = GaugeMetricFamily("tenfold_nodes", "Nodes by state.", labels=("state",))
        for state in ("up", "cordoned", "down"):
            nodes.add_metric((state,), sum(one == state for one in fleet.states.values()))
        yield nodes
        blamed = len(fleet.failure_log.blamed)
        what = "Nodes that were cordoned because jobs kept failing there."
        yield GaugeMetricFamily("tenfold_blamed_nodes", what, value=blamed)
        gpus = GaugeMetricFamily("tenfold_gpus", "GPUs by state.", labels=("state",))
        for state, count in gpus_by_state(fleet).items():
            gpus.add_metric((state,), count)
        yield gpus
        running = int(self._trouble() is None)
        yield GaugeMetricFamily("tenfold_loop_up", "1 while the loop runs.", value=running)


def gpus_by_state(fleet: Fleet) -> dict[str, int]:
    """Return how many GPUs are held, free to take, kept back by a cordon, or away."""
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
        """Give every meter, to be scraped by Prometheus."""
        return Response(meters.text(), media_type=MEDIA_TYPE)

    return Router("/", route_handlers=[metrics])
