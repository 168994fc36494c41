"""Read the counters of gateways in threads, and keep the load of each service."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import msgspec
from msgspec import Struct

from tenfold.decide.serve.load import FORGOTTEN_MS, LoadHistory
from tenfold.decide.serve.rollout import ejected
from tenfold.model.ids import JobId
from tenfold.model.service.traffic import GatewayTraffic, RolledBack
from tenfold.model.units import SECOND, Millis
from tenfold.server.background.services.http_get import NoAnswer, fetch

READ_MS = 1 * SECOND
TIMEOUT_S = 2.0
PATH = "/gateway/load"
THREADS = 4
_DECODER = msgspec.json.Decoder(GatewayTraffic)
_LOG = logging.getLogger("tenfold.server")
Fetch = Callable[[str, float], bytes]


class _Gateway(Struct):
    """One gateway."""

    url: str
    due_ms: int = 0
    running: "Future[bytes] | None" = None
    read_ms: Millis | None = None
    traffic: GatewayTraffic | None = None
    trouble: str = ""


class Gateways:
    """The gateways of a control plane; used by one thread."""

    def __init__(self, urls: Callable[[], Sequence[str]], fetch_url: Fetch = fetch) -> None:
        """`urls` are the admin addresses now: a gateway that was restarted has another one."""
        self._fetch, self._urls = fetch_url, urls
        self._gateways: list[_Gateway] = []
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="tenfold-gateway")
        self._histories: dict[str, LoadHistory] = {}

    def close(self) -> None:
        """Read nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def forget(self) -> None:
        """Forget all readings, as while another control plane is the leader."""
        self._histories.clear()
        for one in self._gateways:
            one.traffic, one.read_ms = None, None

    def read(self, services: Sequence[str], now_ms: Millis) -> bool:
        """Take new readings and ask for the next; return whether there are new ones."""
        for gone in [name for name in self._histories if name not in services]:
            del self._histories[gone]
        for name in services:
            if name not in self._histories:
                self._histories[name] = LoadHistory(now_ms)
        self._gateways = self._known()
        is_new = False
        for one in self._gateways:
            is_new |= self._take(one, now_ms)
            if one.running is None and now_ms >= one.due_ms:
                one.due_ms = now_ms + READ_MS
                one.running = self._pool.submit(self._fetch, one.url + PATH, TIMEOUT_S)
        return is_new

    def history(self, service: str) -> LoadHistory | None:
        """Return the load of a service over time."""
        return self._histories.get(service)

    def rolled_back(self, service: str, now_ms: Millis) -> list[RolledBack]:
        """Return the revisions that lost their share, or all their replicas, at a gateway."""
        found: list[RolledBack] = []
        for traffic in self._answering(now_ms):
            found += [one for one in traffic.rolled_back if one.service == service]
            found += ejected(traffic, service)
        return found

    def idle(self, service: str, draining: Mapping[JobId, int], now_ms: Millis) -> list[JobId]:
        """Return the draining replicas that have no requests left at any gateway.

        `draining` has the version of the routing state in which each drains: a gateway that does
        not know it yet may still send requests there.
        """
        if not self._gateways or len(list(self._answering(now_ms))) < len(self._gateways):
            return []
        busy: dict[str, int] = {}
        for traffic in self._answering(now_ms):
            for one in traffic.services:
                for revision in one.revisions if one.name == service else ():
                    for replica in revision.replicas:
                        busy[replica.id] = busy.get(replica.id, 0) + replica.requests
        version = min(traffic.routing_version for traffic in self._answering(now_ms))
        return [
            job_id
            for job_id, since in draining.items()
            if since <= version and not busy.get(job_id)
        ]

    def _known(self) -> list[_Gateway]:
        """Return the gateways at today's addresses, with what is known of them."""
        known = {one.url: one for one in self._gateways}
        urls = dict.fromkeys(url.rstrip("/") for url in self._urls() if url)
        return [known.get(url) or _Gateway(url) for url in urls]

    def _answering(self, now_ms: Millis) -> Iterator[GatewayTraffic]:
        for one in self._gateways:
            is_fresh = one.read_ms is not None and now_ms - one.read_ms < FORGOTTEN_MS
            if one.traffic is not None and is_fresh:
                yield one.traffic

    def _take(self, one: _Gateway, now_ms: Millis) -> bool:
        if one.running is None or not one.running.done():
            return False
        running, one.running = one.running, None
        try:
            traffic = _DECODER.decode(running.result())
        except (NoAnswer, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            if not one.trouble:
                _LOG.warning("gateway %s does not say its load: %s", one.url, error)
            one.trouble = str(error)
            return False
        if one.trouble:
            _LOG.warning("gateway %s reports its load again", one.url)
        one.trouble = ""
        one.traffic, one.read_ms = traffic, now_ms
        for name, history in self._histories.items():
            history.read(one.url, traffic, name, now_ms)
        return True
