"""Metrics of replicas: what is read, how it is averaged, and what is left out."""

from collections.abc import Generator

import pytest
from msgspec.structs import replace

from patience import until
from service_builders import SPEC, ServiceWorld
from tenfold.model.service.spec import MetricTarget
from tenfold.model.service.state import ServiceState
from tenfold.server.background.services.http_get import NoAnswer
from tenfold.server.background.services.metrics import READ_MS, ReplicaMetrics

KV = "vllm:kv_cache_usage_perc"
SIGNALS = (MetricTarget(metric=KV, target=0.8), MetricTarget(metric="queue_depth", target=10))


class Pages:
    """Answers with the metrics of each replica, by its port."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.asked: list[str] = []

    def fetch(self, url: str, timeout_s: float) -> bytes:
        self.asked.append(url)
        text = self.texts.get(url)
        if text is None:
            raise NoAnswer("connection refused")
        return text.encode()


@pytest.fixture
def pages() -> Pages:
    return Pages()


@pytest.fixture
def metrics(pages: Pages) -> Generator[ReplicaMetrics]:
    made = ReplicaMetrics(pages.fetch)
    yield made
    made.close()


def service(replicas: int = 2, **changes: object) -> ServiceState:
    world = ServiceWorld(replace(SPEC, signals=SIGNALS, metrics_path="/m", **changes))
    assert world.state is not None
    world.state = replace(world.state, target=replicas)
    world.target = replicas
    world.work(5)
    assert world.state is not None
    return world.state


def read(metrics: ReplicaMetrics, state: ServiceState, now_ms: int) -> None:
    """Begin the readings that are due, and take them."""
    metrics.read([state], now_ms)
    until(lambda: all(one.running is None or one.running.done() for one in metrics._known.values()))
    metrics.read([state], now_ms)


def test_the_mean_is_over_the_replicas_that_report(metrics: ReplicaMetrics, pages: Pages):
    state = service()
    first, second = (one.url + "/m" for one in state.replicas)
    pages.texts[first] = f'# TYPE x gauge\n{KV}{{engine="0"}} 0.5\n{KV}{{engine="1"}} 0.7\n'
    pages.texts[second] = f"{KV} 0.2\nqueue_depth 4 1700000000\n{KV}_other 9\n"
    read(metrics, state, 0)
    assert metrics.means(state) == {KV: pytest.approx(0.4), "queue_depth": 4.0}
    # One that no longer answers has no part in the mean, and its last value is forgotten.
    del pages.texts[first]
    read(metrics, state, READ_MS)
    assert metrics.means(state) == {KV: 0.2, "queue_depth": 4.0}


def test_what_is_no_number_is_left_out(metrics: ReplicaMetrics, pages: Pages):
    state = service(replicas=1)
    pages.texts[state.replicas[0].url + "/m"] = f"{KV} NaN\nqueue_depth many\n{KV} +Inf\n\x00\n"
    read(metrics, state, 0)
    assert metrics.means(state) == {}


def test_nothing_is_read_without_signals_or_before_it_is_due(metrics: ReplicaMetrics, pages: Pages):
    read(metrics, replace(service(), spec=replace(service().spec, signals=())), 0)
    assert not pages.asked
    state = service()
    read(metrics, state, 0)
    read(metrics, state, READ_MS - 1)
    assert len(pages.asked) == 2


def test_signals_are_part_of_the_policy():
    policy = replace(SPEC, signals=SIGNALS, queue_target=3.0).policy
    assert policy is not None
    found = [(one.kind, one.name, one.target) for one in policy.signals]
    assert found == [("queue", "", 3.0), ("mean", KV, 0.8), ("mean", "queue_depth", 10)]
