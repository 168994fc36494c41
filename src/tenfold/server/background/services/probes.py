"""Probe replicas in threads, and count what their answers mean."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from msgspec import Struct

from tenfold.model.ids import JobId
from tenfold.model.reason import Reason
from tenfold.model.service.spec import Readiness, millis
from tenfold.model.service.step import Probed
from tenfold.model.units import Millis
from tenfold.server.background.services.http_get import NoAnswer, fetch

THREADS = 16
"""Probes at the same time; more wait. An assumption: probes take milliseconds."""
Fetch = Callable[[str, float], object]


class Target(Struct, frozen=True):
    """A replica that is probed."""

    started_ms: Millis
    """When its processes were started: a later start is probed anew."""
    url: str
    readiness: Readiness


class _Probing(Struct):
    """What is known of one replica."""

    target: Target
    due_ms: int = 0
    failures: int = 0
    has_answered: bool = False
    """Whether the last probe succeeded."""
    detail: str = ""
    running: "Future[str] | None" = None


class Prober:
    """Probes replicas at their intervals; used by one thread."""

    def __init__(self, fetch_url: Fetch = fetch) -> None:
        self._fetch = fetch_url
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="tenfold-probe")
        self._known: dict[JobId, _Probing] = {}

    def close(self) -> None:
        """Begin no further probes."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def probe(self, targets: Mapping[JobId, Target], now_ms: Millis) -> None:
        """Begin the probes that are due, and take the results of those that are done."""
        for gone in [job_id for job_id in self._known if job_id not in targets]:
            del self._known[gone]
        for job_id, target in targets.items():
            known = self._known.get(job_id)
            if known is None or known.target.started_ms != target.started_ms:
                known = self._known[job_id] = _Probing(target)
            known.target = target
            self._take(known)
            if known.running is None and now_ms >= known.due_ms:
                known.due_ms = now_ms + millis(target.readiness.interval_s)
                known.running = self._pool.submit(self._once, target)

    def found(self, job_id: JobId) -> Probed | None:
        """Return what the probes of a replica say; None while they say nothing new."""
        known = self._known.get(job_id)
        if known is None:
            return None
        if known.has_answered:
            return Probed(is_ready=True, url=known.target.url)
        if known.failures < known.target.readiness.failures:
            return None
        return Probed(is_ready=False, reason=Reason("probe-failed", {"detail": known.detail}))

    def _once(self, target: Target) -> str:
        """Return why a probe failed; empty if it did not."""
        try:
            readiness = target.readiness
            self._fetch(target.url + readiness.path, readiness.timeout_s)
        except NoAnswer as error:
            return str(error)
        return ""

    def _take(self, known: _Probing) -> None:
        if known.running is None or not known.running.done():
            return
        error = known.running.exception()
        detail = type(error).__name__ if error is not None else known.running.result()
        known.running = None
        known.has_answered, known.detail = not detail, detail
        known.failures = known.failures + 1 if detail else 0
