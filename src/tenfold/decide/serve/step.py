"""One step of the controller of a service: a pure function of its record and of what was seen.

The order matters: readiness first, because everything else counts ready replicas; then the rollout;
then how many replicas are needed; then which start, drain and stop. Each replica gets at most one
order, and what the step itself records counts for the rest of it.
"""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from tenfold.decide.serve.rollout import replicas_of, rollout
from tenfold.fleet.retries import back_off_ms
from tenfold.fleet.services import after_event
from tenfold.model.events import (
    ReplicaDrainStarted,
    ReplicaEvent,
    ReplicaReady,
    ReplicaUnready,
    ServiceEvent,
    ServiceScaled,
)
from tenfold.model.reason import Reason
from tenfold.model.service.autoscale import AutoscalePolicy, ScalingDecision
from tenfold.model.service.load import ReplicaCounts, ServiceLoad
from tenfold.model.service.spec import millis
from tenfold.model.service.state import ReplicaState, ServiceState
from tenfold.model.service.step import ReplicaOrder, ServiceSeen, ServiceStep
from tenfold.model.units import Millis

Autoscale = Callable[[ServiceLoad, Millis, AutoscalePolicy], ScalingDecision]
"""`decide/autoscale` with its memory."""


def step(
    state: ServiceState, seen: ServiceSeen, now_ms: Millis, autoscale: Autoscale
) -> ServiceStep:
    """Return what to record and to order for a service now."""
    return _Stepping(state, seen, now_ms).run(autoscale)


class _Stepping:
    """A step while it is made."""

    def __init__(self, state: ServiceState, seen: ServiceSeen, now_ms: Millis) -> None:
        self.state, self.seen, self.now_ms = state, seen, now_ms
        self.events: list[ServiceEvent | ReplicaEvent] = []
        self.starts: list[ReplicaOrder] = []
        self.stops: list[ReplicaState] = []

    def run(self, autoscale: Autoscale) -> ServiceStep:
        for replica in self.state.replicas:
            self._probe(replica)
        while (event := rollout(self.state, self.seen, self.now_ms)) is not None:
            self._record(event)
        if self.state.removed_ms is None:
            self._scale(autoscale)
        for revision in _revisions(self.state):
            self._size(revision)
        for replica in self.state.replicas:
            self._finish(replica)
        return ServiceStep(
            events=tuple(self.events),
            starts=tuple(self.starts),
            stops=tuple(one.id for one in self.stops),
        )

    def _record(self, event: ServiceEvent | ReplicaEvent) -> None:
        self.events.append(event)
        self.state = after_event(self.state, event)

    def _probe(self, replica: ReplicaState) -> None:
        """Record whether a replica is ready; replace one that is not for too long."""
        if replica.is_leaving:
            return
        state, now_ms, found = self.state, self.now_ms, self.seen.probes.get(replica.id)
        if found is not None and found.is_ready and not replica.is_ready:
            self._record(ReplicaReady(now_ms, replica.id, state.name, found.url))
            return
        if found is not None and not found.is_ready and replica.is_ready:
            reason = found.reason or Reason("replica-not-ready")
            self._record(ReplicaUnready(now_ms, replica.id, state.name, reason))
            return
        if not replica.is_ready and (reason := self._given_up(replica)) is not None:
            event = ReplicaDrainStarted(now_ms, replica.id, state.name, reason, has_failed=True)
            self._record(event)

    def _given_up(self, replica: ReplicaState) -> Reason | None:
        """Return why a replica that is not ready is replaced; None if it gets more time."""
        started_ms = self.seen.started_ms.get(replica.id)
        readiness = self.state.spec.readiness
        if started_ms is None:
            return None
        if replica.ready_ms is None:
            most_ms, since_ms = millis(readiness.start_timeout_s), started_ms
        else:
            most_ms, since_ms = millis(readiness.restart_after_s), replica.changed_ms
        waited_ms = self.now_ms - since_ms
        if not most_ms or waited_ms < most_ms:
            return None
        return Reason("replica-not-ready-for", {"waited_ms": int(waited_ms)})

    def _scale(self, autoscale: Autoscale) -> None:
        """Record how many replicas are needed, if that has changed."""
        state, load = self.state, self.seen.load
        policy = state.spec.policy
        if policy is None or load is None:
            return
        ready = state.ready(state.current)
        counts = ReplicaCounts(
            ready=ready,
            starting=len(state.of(state.current)) - ready,
            draining=sum(one.is_leaving for one in state.replicas),
        )
        load = replace(load, replicas=counts, cold_starts_ms=state.cold_starts_ms)
        decision = autoscale(load, self.now_ms, policy)
        target = min(max(decision.target, policy.replicas_min), policy.replicas_max)
        if target == state.target:
            return
        if target < state.target and self.seen.covers_ms < policy.idle_least_ms:
            # The history is too short to know that this many are not needed.
            return
        self._record(ServiceScaled(self.now_ms, state.name, state.team, target, decision.reason))

    def _size(self, revision: str) -> None:
        """Order or drain replicas of a revision, until it has as many as it needs."""
        wanted, staying = replicas_of(self.state, revision), self.state.of(revision)
        if len(staying) < wanted:
            self._start(revision, wanted - len(staying))
        elif len(staying) > wanted:
            reason = self._why_fewer(revision)
            # Those that do not serve yet go first, and of these the last that was ordered.
            ranked = sorted(enumerate(staying), key=lambda one: (one[1].is_ready, -one[0]))
            for _, replica in ranked[: len(staying) - wanted]:
                self._record(ReplicaDrainStarted(self.now_ms, replica.id, self.state.name, reason))

    def _start(self, revision: str, count: int) -> None:
        known = self.state.revision(revision)
        if known is None:
            return
        if known.failures and self.now_ms < known.failed_ms + back_off_ms(known.failures):
            return
        taken = len(self.starts)
        for port in self.seen.ports[taken : taken + count]:
            self.starts.append(ReplicaOrder(revision=revision, port=port))

    def _why_fewer(self, revision: str) -> Reason:
        if self.state.removed_ms is not None:
            return Reason("service-removed")
        if revision not in (self.state.current, self.state.canary):
            return Reason("revision-replaced", {"revision": revision})
        return Reason("scaled-in", {"replicas": replicas_of(self.state, revision)})

    def _finish(self, replica: ReplicaState) -> None:
        """Stop a draining replica that has no requests left, or no time."""
        if replica.drain_ms is None or replica.is_stopping:
            return
        over_ms = replica.drain_ms + millis(self.state.spec.drain_grace_s)
        never_served = replica.ready_ms is None
        if never_served or replica.id in self.seen.idle or self.now_ms >= over_ms:
            self.stops.append(replica)


def _revisions(state: ServiceState) -> Iterator[str]:
    """Yield every revision that has or needs replicas, the current one first."""
    names = (state.current, state.canary, *(one.revision for one in state.replicas))
    yield from dict.fromkeys(name for name in names if name)
