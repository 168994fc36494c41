"""One revision of a service: its replicas, its counters, and whether it was rolled back."""

from bisect import bisect_left
from typing import Protocol

from msgspec.structs import replace

from tenfold.gateway.pool.grant import Grant, Target
from tenfold.gateway.pool.ticket import Ticket
from tenfold.gateway.route.breaker import Breaker
from tenfold.gateway.route.prefix import PrefixIndex
from tenfold.gateway.route.rollback import Totals, Verdict, Window
from tenfold.model.service.routing import Replica, Revision, Service
from tenfold.model.service.traffic import TTFT_BOUNDS_MS

STALLED_S = 30.0
"""Without a byte for so long while requests wait for one, a replica gets no further requests."""


class OwningService(Protocol):
    """What a revision and the requests in its replicas report to their service."""

    spec: Service
    late: int
    ended: int
    ended_output_tokens: int

    def began(self, ticket: Ticket, now_s: float) -> None:
        """Note a request that was sent to a replica."""
        ...

    def released(self, ticket: Ticket, now_s: float, spent_s: float, tokens_used: int) -> None:
        """Note a slot that is free again."""
        ...

    def first_byte_came(self, now_s: float, waited_s: float) -> None:
        """Note the first byte of an answer."""
        ...

    def learn(
        self, ticket: Ticket, input_tokens: int | None, output_tokens: int, *, failed: bool
    ) -> None:
        """Learn from the tokens of a request."""
        ...

    def count_output(self, tokens: int) -> None:
        """Count generated tokens."""
        ...

    def breaker_opened(self, replica: "ReplicaState") -> None:
        """Note a replica that gets no requests for a while."""
        ...

    def breaker_closed(self, replica: "ReplicaState") -> None:
        """Note a replica that answers again."""
        ...

    def judge(self, canary: "RevisionState", now_s: float) -> None:
        """Roll a canary back if it is worse than the others."""
        ...


class ReplicaState:
    """The load and the breaker of one replica."""

    __slots__ = (
        "breaker",
        "last_byte_s",
        "requests",
        "revision",
        "slots",
        "spec",
        "target",
        "tokens",
        "unanswered",
        "weight",
    )

    def __init__(self, spec: Replica, revision: "RevisionState") -> None:
        self.revision = revision
        self.breaker = Breaker()
        self.requests = 0
        """In it now."""
        self.tokens = 0
        """Expected of those."""
        self.unanswered: dict[Grant, float] = {}
        """Requests without a first byte, with the time they were sent; the oldest first."""
        self.last_byte_s = 0.0
        self.spec = spec
        self.target = Target(spec.id, spec.url)
        self.weight = spec.weight
        self.slots = 0

    def update(self, spec: Replica, service: Service) -> None:
        """Use what a new routing state says."""
        self.spec = spec
        self.target = Target(spec.id, spec.url.rstrip("/"), service.key)
        self.weight = spec.weight
        slots = service.slots_per_replica
        self.slots = max(1, round(slots * spec.weight)) if slots else 0

    @property
    def is_ready(self) -> bool:
        """Whether it is in the routing state and not draining."""
        return self.spec.state == "ready"

    @property
    def has_slot(self) -> bool:
        """Whether it may get one more request."""
        return not self.slots or self.requests < self.slots

    @property
    def is_available(self) -> bool:
        """Whether it may get a request now."""
        state = self.breaker.state
        return (
            self.is_ready
            and self.has_slot
            and (state == "closed" or (state == "half-open" and not self.breaker.probing))
        )

    def is_stalled(self, now_s: float) -> bool:
        """Tell whether it takes requests and answers none."""
        if not self.unanswered or self.breaker.state == "open":
            return False
        oldest_s = next(iter(self.unanswered.values()))
        return now_s - max(oldest_s, self.last_byte_s) > STALLED_S


class RevisionState:
    """The replicas and counters of one revision."""

    def __init__(self, service: OwningService, spec: Revision) -> None:
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
