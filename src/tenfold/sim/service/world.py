"""Serve a trace of requests with replicas that an autoscaler starts and stops.

A request waits at the gateway, first come first served, until a ready replica has a free slot;
power of two choices on outstanding tokens picks the replica. The slot is then occupied for the
prompt and the answer. The autoscaler sees what a gateway counts, and nothing of the future.
"""

from collections import deque
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from math import log

import numpy as np
from msgspec import Struct

from tenfold.model.service.autoscale import ReplicaRates, ScalingDecision
from tenfold.model.service.load import LoadBucket, ReplicaCounts, ServiceLoad
from tenfold.model.service.simulated import RequestTrace
from tenfold.model.units import DAY, SECOND, Millis
from tenfold.sim.seeded import seeded_fraction
from tenfold.sim.service.replica import (
    DRAINING,
    READY,
    STOPPED,
    OpenReplicas,
    SimReplica,
)
from tenfold.sim.service.run import FAILED, SHED, WAITING, ScalingStep, ServiceRun

Decide = Callable[[ServiceLoad, Millis], ScalingDecision]
Event = tuple[int, int, int, int]
"""Time, kind, request (or -1), replica."""

BECOMES_READY, FINISHES, FAILS = range(3)
NEVER = 1 << 62
DRAWS = 1 << 14


class ServiceSettings(Struct, frozen=True, kw_only=True):
    """How a service is simulated."""

    rates: ReplicaRates
    cold_starts_ms: Sequence[int]
    """Each start takes one of these; a single one is always taken."""
    replicas_min: int
    replicas_max: int
    objective_ms: int
    """Of the first token."""
    latency_objective_ms: int | None = None
    """Of the last token."""
    replicas_warm: int
    """Ready at time 0."""
    tick_ms: int
    """Time between two decisions."""
    bucket_ms: int = 10 * SECOND
    hold_ms: int = 300 * SECOND
    hold_max: int = 1_000
    failures_per_replica_day: float = 0.0
    seed: int = 0


def simulate_service(
    trace: RequestTrace,
    settings: ServiceSettings,
    decide: Decide,
    done: Callable[[int], None] = lambda served: None,
) -> ServiceRun:
    """Return what became of each request and replica; `done` hears of arrivals now and then."""
    return _World(trace, settings, decide, done).run()


class _World:
    """State of one simulation."""

    def __init__(
        self,
        trace: RequestTrace,
        settings: ServiceSettings,
        decide: Decide,
        done: Callable[[int], None],
    ) -> None:
        rates = settings.rates
        self._arrived_ms = list(trace.arrived_ms)
        given, made = np.asarray(trace.input_tokens), np.asarray(trace.output_tokens)
        prefill_ms = given / rates.prefill_tokens_per_s * SECOND
        decode_ms = made / rates.decode_tokens_per_s * SECOND
        self._prefill_ms: list[int] = np.rint(prefill_ms).astype(np.int64).tolist()
        slot_ms = np.maximum(np.rint(prefill_ms + decode_ms), 1)
        self._slot_ms: list[int] = slot_ms.astype(np.int64).tolist()
        self._input: Sequence[int] = trace.input_tokens
        self._output: Sequence[int] = trace.output_tokens
        self._settings, self._decide, self._done = settings, decide, done
        self._slots = rates.slots
        self._counters = _Counters(trace, settings)
        self._ttft_ms = [WAITING] * len(self._arrived_ms)
        self._latency_ms = [WAITING] * len(self._arrived_ms)
        self._tokens = [0] * len(self._arrived_ms)
        self._queue: deque[int] = deque()
        self._queued_tokens = 0
        self._in_flight = 0
        self._answer_tokens, self._answers = 0, 0
        self._events: list[Event] = []
        self._replicas: list[SimReplica] = []
        self._starting: list[SimReplica] = []
        self._ready: dict[int, SimReplica] = {}
        self._draining = 0
        self._open = OpenReplicas()
        self._cold_starts_ms: list[int] = []
        self._steps: list[ScalingStep] = []
        self._draws: list[float] = np.random.default_rng(settings.seed).random(DRAWS).tolist()
        self._drawn = 0

    def run(self) -> ServiceRun:
        """Serve all requests; then everything that happened is returned."""
        settings, arrived, events = self._settings, self._arrived_ms, self._events
        for _ in range(settings.replicas_warm):
            self._becomes_ready(self._ordered(0), 0)
        at, many, tick_ms = 0, len(arrived), settings.tick_ms
        while at < many or self._in_flight or self._queue:
            arrival = arrived[at] if at < many else NEVER
            event = events[0][0] if events else NEVER
            if tick_ms <= event and tick_ms <= arrival:
                self._tick(tick_ms, at)
                tick_ms += settings.tick_ms
            elif event <= arrival:
                self._happen(heappop(events))
            else:
                self._arrive(at, arrival)
                at += 1
        return ServiceRun(
            arrived_ms=arrived,
            ttft_ms=self._ttft_ms,
            latency_ms=self._latency_ms,
            replicas=self._replicas,
            steps=self._steps,
            objective_ms=settings.objective_ms,
            latency_objective_ms=settings.latency_objective_ms,
            end_ms=arrived[-1] if arrived else 0,
        )

    def _happen(self, event: Event) -> None:
        now_ms, kind, request, number = event
        replica = self._replicas[number]
        if replica.state == STOPPED:
            return
        if kind == FINISHES:
            self._finish(request, replica, now_ms)
        elif kind == BECOMES_READY:
            self._starting.remove(replica)
            self._cold_starts_ms.append(now_ms - replica.ordered_ms)
            self._becomes_ready(replica, now_ms)
        else:
            self._fail(replica, now_ms)

    # Requests.

    def _arrive(self, request: int, now_ms: int) -> None:
        if self._open.members:
            # A slot is free, so none waits.
            self._serve(request, self._picked(), now_ms)
            return
        self._shed_late(now_ms)
        if len(self._queue) >= self._settings.hold_max:
            self._shed(request, now_ms)
        else:
            self._queue.append(request)
            self._queued_tokens += self._input[request]

    def _picked(self) -> SimReplica:
        self._drawn = (self._drawn + 1) % DRAWS
        return self._open.pick(self._draws[self._drawn])

    def _serve(self, request: int, replica: SimReplica, now_ms: int) -> None:
        tokens = self._input[request] + self._answer_tokens // (self._answers or 1)
        self._tokens[request] = tokens
        replica.tokens += tokens
        replica.requests += 1
        self._in_flight += 1
        if replica.requests == self._slots:
            self._open.remove(replica)
        first_ms = now_ms + self._prefill_ms[request]
        self._ttft_ms[request] = first_ms - self._arrived_ms[request]
        finish_ms = now_ms + self._slot_ms[request]
        self._latency_ms[request] = finish_ms - self._arrived_ms[request]
        late_ms = self._late_ms(request)
        if late_ms is not None:
            self._counters.miss(late_ms)
        heappush(self._events, (finish_ms, FINISHES, request, replica.number))

    def _late_ms(self, request: int) -> int | None:
        """Return when it is known that a request in a slot misses the objective; None if not."""
        settings, ttft_ms = self._settings, self._ttft_ms[request]
        if ttft_ms > settings.objective_ms:
            return self._arrived_ms[request] + ttft_ms
        most_ms, latency_ms = settings.latency_objective_ms, self._latency_ms[request]
        if most_ms is not None and latency_ms > most_ms:
            return self._arrived_ms[request] + latency_ms
        return None

    def _finish(self, request: int, replica: SimReplica, now_ms: int) -> None:
        self._leave(request, replica)
        self._answers += 1
        made = self._output[request]
        self._answer_tokens += made
        self._counters.finish(now_ms, made)
        if replica.state == DRAINING:
            if not replica.requests:
                self._stop(replica, now_ms)
        elif replica.place < 0:
            self._fill(replica, now_ms)

    def _leave(self, request: int, replica: SimReplica) -> None:
        replica.requests -= 1
        replica.tokens -= self._tokens[request]
        self._in_flight -= 1

    def _fill(self, replica: SimReplica, now_ms: int) -> None:
        """Give a ready replica what waits; it is open if a slot is left."""
        queue = self._queue
        if queue:
            self._shed_late(now_ms)
        while queue and replica.requests < self._slots:
            request = queue.popleft()
            self._queued_tokens -= self._input[request]
            self._serve(request, replica, now_ms)
        if replica.requests < self._slots:
            self._open.add(replica)

    def _shed_late(self, now_ms: int) -> None:
        queue, hold_ms = self._queue, self._settings.hold_ms
        while queue and self._arrived_ms[queue[0]] + hold_ms < now_ms:
            request = queue.popleft()
            self._queued_tokens -= self._input[request]
            self._shed(request, self._arrived_ms[request] + hold_ms)

    def _shed(self, request: int, at_ms: int) -> None:
        self._ttft_ms[request] = SHED
        self._counters.miss(at_ms)

    # Replicas.

    def _ordered(self, now_ms: int) -> SimReplica:
        replica = SimReplica(number=len(self._replicas), ordered_ms=Millis(now_ms))
        self._replicas.append(replica)
        return replica

    def _start(self, now_ms: int) -> None:
        replica = self._ordered(now_ms)
        times = self._settings.cold_starts_ms
        draw = seeded_fraction(self._settings.seed, "cold-start", replica.number)
        ready_ms = now_ms + times[int(draw * len(times))]
        self._starting.append(replica)
        heappush(self._events, (ready_ms, BECOMES_READY, -1, replica.number))

    def _becomes_ready(self, replica: SimReplica, now_ms: int) -> None:
        replica.state, replica.ready_ms = READY, now_ms
        self._ready[replica.number] = replica
        rate = self._settings.failures_per_replica_day
        if rate > 0:
            draw = seeded_fraction(self._settings.seed, "failure", replica.number)
            fails_ms = now_ms + round(-log(1 - draw) * DAY / rate)
            heappush(self._events, (fails_ms, FAILS, -1, replica.number))
        self._fill(replica, now_ms)

    def _drain(self, many: int, now_ms: int) -> None:
        """Drain the replicas with the fewest requests, and of these the newest."""
        order = sorted(self._ready.values(), key=lambda one: (one.requests, -one.number))
        for replica in order[:many]:
            del self._ready[replica.number]
            self._open.remove(replica)
            replica.state = DRAINING
            self._draining += 1
            if not replica.requests:
                self._stop(replica, now_ms)

    def _stop(self, replica: SimReplica, now_ms: int) -> None:
        self._draining -= replica.state == DRAINING
        replica.state, replica.stopped_ms = STOPPED, now_ms

    def _fail(self, replica: SimReplica, now_ms: int) -> None:
        """End a replica; requests without a first token move on, others have failed."""
        self._ready.pop(replica.number, None)
        self._open.remove(replica)
        self._stop(replica, now_ms)
        replica.has_failed = True
        held = [one[2] for one in self._events if one[1] == FINISHES and one[3] == replica.number]
        moved: list[int] = []
        for request in sorted(held):
            self._leave(request, replica)
            first_ms = self._arrived_ms[request] + self._ttft_ms[request]
            late_ms = self._late_ms(request)
            if late_ms is not None and late_ms > now_ms:
                # It is not known yet, and may turn out otherwise.
                self._counters.miss(late_ms, -1)
            if first_ms > now_ms:
                moved.append(request)
            else:
                self._ttft_ms[request] = FAILED
                self._counters.miss(now_ms, int(late_ms is None or late_ms > now_ms))
        self._queue.extendleft(reversed(moved))
        self._queued_tokens += sum(self._input[one] for one in moved)
        while self._queue and self._open.members:
            request = self._queue.popleft()
            self._queued_tokens -= self._input[request]
            self._serve(request, self._picked(), now_ms)

    # Decisions.

    def _tick(self, now_ms: int, arrived: int) -> None:
        self._shed_late(now_ms)
        self._done(arrived)
        ready, starting = len(self._ready), len(self._starting)
        load = ServiceLoad(
            replicas=ReplicaCounts(ready=ready, starting=starting, draining=self._draining),
            bucket_ms=Millis(self._settings.bucket_ms),
            history=self._counters.closed(now_ms),
            arriving=arrived - self._counters.arrived_before,
            in_flight=self._in_flight,
            queued=len(self._queue),
            queued_input_tokens=self._queued_tokens,
            cold_starts_ms=self._cold_starts_ms,
        )
        decision = self._decide(load, Millis(now_ms))
        if decision.start or decision.cancel or decision.drain:
            self._steps.append(ScalingStep(now_ms, ready, starting, decision))
            self._carry_out(decision, now_ms)

    def _carry_out(self, decision: ScalingDecision, now_ms: int) -> None:
        for _ in range(min(decision.cancel, len(self._starting))):
            self._stop(self._starting.pop(), now_ms)
        ready, starting = len(self._ready), len(self._starting)
        least, most = self._settings.replicas_min, self._settings.replicas_max
        if decision.drain:
            self._drain(min(decision.drain, ready + starting - least), now_ms)
        for _ in range(min(decision.start, most - ready - starting)):
            self._start(now_ms)


class _Counters:
    """Requests by bucket, as a gateway counts them; a bucket is shown when it has closed."""

    def __init__(self, trace: RequestTrace, settings: ServiceSettings) -> None:
        self._bucket_ms = settings.bucket_ms
        bucket = np.asarray(trace.arrived_ms, dtype=np.int64) // settings.bucket_ms
        self._arrived: list[int] = np.bincount(bucket).tolist()
        # Sums of whole numbers below 2^53: exact as floats.
        tokens = np.bincount(bucket, weights=np.asarray(trace.input_tokens, dtype=np.float64))
        self._input: list[int] = tokens.astype(np.int64).tolist()
        self._finished: dict[int, int] = {}
        self._output: dict[int, int] = {}
        self._missed: dict[int, int] = {}
        self._closed: list[LoadBucket] = []
        self.arrived_before = 0
        """Requests of the buckets that have ended."""

    def finish(self, now_ms: int, output_tokens: int) -> None:
        """Count an answer."""
        bucket = now_ms // self._bucket_ms
        self._finished[bucket] = self._finished.get(bucket, 0) + 1
        self._output[bucket] = self._output.get(bucket, 0) + output_tokens

    def miss(self, at_ms: int, many: int = 1) -> None:
        """Count requests that miss the objective, at the time when that is known."""
        bucket = max(at_ms // self._bucket_ms, len(self._closed))
        self._missed[bucket] = self._missed.get(bucket, 0) + many

    def closed(self, now_ms: int) -> list[LoadBucket]:
        """Return the buckets that have ended."""
        closed = self._closed
        while (len(closed) + 1) * self._bucket_ms <= now_ms:
            bucket = len(closed)
            is_within = bucket < len(self._arrived)
            self.arrived_before += self._arrived[bucket] if is_within else 0
            closed.append(
                LoadBucket(
                    arrived=self._arrived[bucket] if is_within else 0,
                    input_tokens=self._input[bucket] if is_within else 0,
                    finished=self._finished.pop(bucket, 0),
                    output_tokens=self._output.pop(bucket, 0),
                    missed=self._missed.pop(bucket, 0),
                )
            )
        return closed
