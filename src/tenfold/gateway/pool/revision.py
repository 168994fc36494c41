"""One revision of a service: its replicas, its counters, and whether it was rolled back."""

from bisect import bisect_left
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tenfold.gateway.pool.replica import ReplicaState
from tenfold.gateway.route.prefix import PrefixIndex
from tenfold.gateway.route.rollback import Totals, Verdict, Window
from tenfold.model.service.routing import Revision, Service
from tenfold.model.service.traffic import TTFT_BOUNDS_MS

if TYPE_CHECKING:
    from tenfold.gateway.pool.service import ServiceState


class RevisionState:
    """The replicas and counters of one revision."""

    def __init__(self, service: "ServiceState", spec: Revision) -> None:
        self.service = service
        self.spec = spec
        self.replicas: list[ReplicaState] = []
        self.rolled_back: Verdict | None = None
        self.rolled_back_ms = 0
        self.window = Window(service.spec.rollback.window_s)
        self.requests = self.errors = self.misses = 0
        self.ttft_counts = [0] * (len(TTFT_BOUNDS_MS) + 1)
        self.ttft_ms_sum = 0
        self.prefixes = PrefixIndex()
        self._available: list[ReplicaState] | None = None

    @property
    def share(self) -> float:
        """Its weight; 0 after it was rolled back."""
        return 0.0 if self.rolled_back is not None else self.spec.weight

    @property
    def shadow_percent(self) -> float:
        """Requests of others that are copied to it."""
        return 0.0 if self.rolled_back is not None else self.spec.shadow_percent

    def update(self, spec: Revision, service: Service) -> None:
        """Use what a new routing state says; replicas that are still there keep their state."""
        if _without_replicas(spec) != _without_replicas(self.spec):
            self.rolled_back = None
            self.window = Window(service.rollback.window_s)
        elif service.rollback.window_s != self.service.spec.rollback.window_s:
            self.window = Window(service.rollback.window_s)
        known = {(one.spec.id, one.spec.url): one for one in self.replicas}
        self.replicas = []
        for one in spec.replicas:
            state = known.get((one.id, one.url)) or ReplicaState(one, self)
            state.update(one, service)
            self.replicas.append(state)
        self.spec = spec
        self._available = None

    def available(self) -> list[ReplicaState]:
        """Return the replicas that may get a request now."""
        if self._available is None:
            self._available = [one for one in self.replicas if one.is_available]
        return self._available

    def changed(self) -> None:
        """Find out again which replicas are available."""
        self._available = None

    def grown(self, replica: ReplicaState) -> None:
        """Note one more request in a replica."""
        if replica.requests == replica.slots or replica.breaker.state != "closed":
            self._available = None

    def shrunk(self, replica: ReplicaState) -> None:
        """Note one request less in a replica."""
        if replica.requests == replica.slots - 1 or replica.breaker.state != "closed":
            self._available = None

    def count_first_byte(self, waited_s: float) -> None:
        """Count an answered request by its time to the first byte."""
        waited_ms = round(waited_s * 1_000)
        self.ttft_counts[bisect_left(TTFT_BOUNDS_MS, waited_ms)] += 1
        self.ttft_ms_sum += waited_ms

    def count_end(self, now_s: float, late: bool, *, failed: bool) -> None:
        """Count a request that ended."""
        self.requests += 1
        self.errors += failed
        self.misses += late
        self.window.count(now_s, failed=failed, late=late)
        if self.spec.is_canary and self.rolled_back is None:
            self.service.judge(self, now_s)

    def totals(self, now_s: float) -> Totals:
        """Return its requests in the window of its service's rollback rule."""
        return self.window.totals(now_s)


def _without_replicas(spec: Revision) -> Revision:
    return replace(spec, replicas=())
