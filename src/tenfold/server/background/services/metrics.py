"""Read what replicas report about themselves, for services that are scaled by it.

A replica that does not answer has no part in a mean: a value that is too old could hold replicas
for ever.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from math import isfinite
from statistics import fmean

from msgspec import Struct

from tenfold.model.ids import JobId
from tenfold.model.service.state import ServiceState
from tenfold.model.units import SECOND
from tenfold.server.background.services.http_get import NoAnswer, fetch

READ_MS = 5 * SECOND
TIMEOUT_S = 2.0
THREADS = 8
_SAMPLE = re.compile(rb"^([A-Za-z_:][A-Za-z0-9_:]*)(?:\{.*\})?[ \t]+([^ \t\r\n]+)", re.MULTILINE)
Fetch = Callable[[str, float], bytes]


class _Reading(Struct):
    """One replica."""

    url: str
    due_ms: int = 0
    running: "Future[bytes] | None" = None
    values: Mapping[str, float] = {}


class ReplicaMetrics:
    """Metrics of ready replicas; used by one thread."""

    def __init__(self, fetch_url: Fetch = fetch) -> None:
        self._fetch = fetch_url
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="tenfold-metrics")
        self._known: dict[JobId, _Reading] = {}

    def close(self) -> None:
        """Begin no further readings."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def read(self, states: Sequence[ServiceState], now_ms: int) -> None:
        """Take the readings that are done, and begin those that are due."""
        wanted = {
            replica.id: (state, replica.url)
            for state in states
            if state.spec.signals
            for replica in state.replicas
            if replica.serves and replica.revision == state.current
        }
        for gone in [job_id for job_id in self._known if job_id not in wanted]:
            del self._known[gone]
        for job_id, (state, url) in wanted.items():
            known = self._known.get(job_id)
            if known is None or known.url != url:
                known = self._known[job_id] = _Reading(url)
            names = {one.metric for one in state.spec.signals}
            self._take(known, names)
            if known.running is None and now_ms >= known.due_ms:
                known.due_ms = now_ms + READ_MS
                path = url + state.spec.metrics_path
                known.running = self._pool.submit(self._fetch, path, TIMEOUT_S)

    def means(self, state: ServiceState) -> Mapping[str, float]:
        """Return the mean of each metric over the replicas that report it."""
        readings = [
            known.values
            for replica in state.replicas
            if (known := self._known.get(replica.id)) is not None
        ]
        found: dict[str, float] = {}
        for one in state.spec.signals:
            values = [each[one.metric] for each in readings if one.metric in each]
            if values:
                found[one.metric] = fmean(values)
        return found

    def _take(self, known: _Reading, names: set[str]) -> None:
        if known.running is None or not known.running.done():
            return
        running, known.running = known.running, None
        try:
            known.values = dict(_values(running.result(), names))
        except NoAnswer:
            known.values = {}


def _values(text: bytes, names: set[str]) -> Iterator[tuple[str, float]]:
    """Yield the metrics with these names; with several samples, such as engines, their mean."""
    samples: dict[str, list[float]] = {}
    for name, value in _SAMPLE.findall(text):
        if (known := name.decode()) in names:
            try:
                number = float(value)
            except ValueError:
                continue
            if isfinite(number):
                samples.setdefault(known, []).append(number)
    for name, numbers in samples.items():
        yield name, fmean(numbers)
