"""One service as a gateway sees it: which replica a request gets, and who waits.

A request is granted a replica at once if one is available and nobody waits; otherwise it goes
elsewhere if the wait would be too long, or waits in the fair queue until a slot is free.
"""

import logging
from collections.abc import Callable
from random import Random
from zlib import crc32

from tenfold.clock.wall import now_ms
from tenfold.gateway.admit.fair_queue import FairQueue
from tenfold.gateway.admit.refusals import RequestRefused
from tenfold.gateway.admit.tokens import TokenEstimator
from tenfold.gateway.pool.grant import Grant
from tenfold.gateway.pool.place import PlaceGrant, PlaceState
from tenfold.gateway.pool.replica_grant import ReplicaGrant
from tenfold.gateway.pool.revision import ReplicaState, RevisionState
from tenfold.gateway.pool.ticket import Ticket
from tenfold.gateway.route.overflow import choose_place, expected_wait_s
from tenfold.gateway.route.pick import pick, pick_revision
from tenfold.gateway.route.rollback import Totals, judge
from tenfold.model.service.routing import Service

SMOOTHING = 0.05
RECENT_S = 30.0
"""Waits that were seen longer ago say nothing about now."""
RETRY_AFTER_S_MAX = 60.0

_LOG = logging.getLogger("tenfold.gateway")


class ServiceState:
    """The revisions, the queue and the counters of one service."""

    def __init__(
        self, spec: Service, shares: Callable[[str], tuple[float, int]], random: Random
    ) -> None:
        self.spec = spec
        self.queue: FairQueue[Ticket] = FairQueue(shares)
        self.revisions: dict[str, RevisionState] = {}
        self.places: list[PlaceState] = []
        self.has_shadow = False
        self.replicas = 0
        """Of all revisions."""
        self.estimator = TokenEstimator()
        self._random = random
        # Counters; see `ServiceTraffic`.
        self.arrivals = self.arrived_input_tokens = self.arrived_output_tokens = 0
        self.output_tokens = self.ended = self.failed = self.shed = self.limited = 0
        self.ended_output_tokens = self.late = 0
        self.retries = self.hedges = 0
        self.in_service = 0
        self._output_excess = 0
        """Tokens that were counted and did not exist: events without a token in them."""
        self._busy_s = 0.0
        self._started_sum_s = 0.0
        """Sum of the times at which requests now in replicas were sent."""
        self._seconds = 0.0
        """That a request spends in a replica, mean of recent ones."""
        self._wait_s, self._wait_at_s = 0.0, 0.0
        """Until the first byte, mean of recent ones, and when the last came."""

    def update(self, spec: Service) -> None:
        """Use what a new routing state says."""
        known = self.revisions
        self.revisions = {}
        for one in spec.revisions:
            state = known.get(one.name) or RevisionState(self, one)
            state.update(one, spec)
            self.revisions[one.name] = state
        places = {one.spec.name: one for one in self.places}
        self.places = []
        for place in spec.overflow:
            kept = places.get(place.name) or PlaceState(place)
            kept.update(place)
            self.places.append(kept)
        self.has_shadow = any(one.shadow_percent for one in spec.revisions)
        self.replicas = sum(len(one.replicas) for one in spec.revisions)
        self.spec = spec
        self.queue.reconfigure()

    # Requests.

    def arrive(self, ticket: Ticket) -> None:
        """Count a request that may use the service."""
        self.arrivals += 1
        self.arrived_input_tokens += ticket.input_tokens
        self.arrived_output_tokens += ticket.output_tokens

    def grant_now(self, ticket: Ticket, now_s: float) -> Grant | None:
        """Return a place for a request if there is one at once, here or elsewhere."""
        if not self.queue or ticket.is_retry:
            if self.places and not self.spec.slots_per_replica and not ticket.is_retry:
                # Without slots the wait is in the replicas; it is known from recent answers.
                away = self.go_away(ticket, self._recent_wait_s(now_s), now_s)
                if away is not None:
                    return away
            replica = self._choose(ticket)
            if replica is not None:
                return ReplicaGrant(replica, ticket, now_s)
        return self.go_away(ticket, self.wait_expected_s(now_s), now_s) if self.places else None

    def enqueue(self, ticket: Ticket) -> None:
        """Let a request wait, or refuse it or a less important one."""
        if ticket.is_retry:
            self.queue.push_first(ticket)
            return
        if len(self.queue) >= self.spec.hold.requests_max:
            other = self.queue.last_for(ticket.team, ticket.priority)
            if other is None or not self.spec.hold.requests_max:
                self.shed += 1
                raise self._full()
            self.drop(other, self._full())
        self.queue.push(ticket)

    def drop(self, ticket: Ticket, why: RequestRefused) -> None:
        """Refuse a request that waits."""
        self.shed += 1
        self.leave(ticket)
        if ticket.future is not None and not ticket.future.done():
            ticket.future.set_exception(why)

    def leave(self, ticket: Ticket) -> None:
        """Take a request out of the queue."""
        if not ticket.is_gone:
            ticket.is_gone = True
            self.queue.forget(ticket)

    def dispatch(self, now_s: float) -> None:
        """Grant free slots to those that wait."""
        while self.queue:
            ticket = self.queue.peek()
            if ticket is None or (replica := self._choose(ticket)) is None:
                return
            self.queue.pop(ticket)
            ticket.is_gone = True
            future = ticket.future
            if future is not None and not future.done():
                future.set_result(ReplicaGrant(replica, ticket, now_s))

    def go_away(self, ticket: Ticket, wait_s: float, now_s: float) -> Grant | None:
        """Return a place elsewhere for a request that would wait so long here."""
        tokens = ticket.input_tokens, ticket.output_tokens
        position = choose_place(self.places, wait_s, tokens, now_s)
        return None if position is None else PlaceGrant(self.places[position], ticket, now_s)

    def wait_expected_s(self, now_s: float) -> float:
        """Return how long a request that arrives now would wait."""
        slots = sum(
            one.slots
            for revision in self.revisions.values()
            for one in revision.replicas
            if one.is_ready and one.breaker.state == "closed"
        )
        oldest = max((now_s - one.arrived_s for one in self.queue), default=0.0)
        return max(oldest, expected_wait_s(len(self.queue) + 1, slots, self._seconds))

    def shadow(self, ticket: Ticket, granted: object, now_s: float) -> Grant | None:
        """Return a place in a shadow for a copy of a request, if one is to be sent."""
        if not isinstance(granted, ReplicaGrant):
            return None
        own = granted.replica.revision
        for revision in self.revisions.values():
            if revision is own or not (percent := revision.shadow_percent):
                continue
            if own.spec.is_canary or self._random.random() * 100 >= percent:
                continue
            free = revision.available()
            if free:
                replica = free[pick(free, self._random.random())]
                return ReplicaGrant(replica, ticket, now_s, is_shadow=True)
        return None

    def hedge(self, ticket: Ticket, granted: Grant, now_s: float) -> Grant | None:
        """Return a second place for a request, if few enough are sent twice and nobody waits."""
        most = self.spec.hedge_percent_max * max(self.arrivals, 1)
        if self.queue or 100 * (self.hedges + 1) > most or not isinstance(granted, ReplicaGrant):
            return None
        free = [one for one in granted.replica.revision.available() if one is not granted.replica]
        free = [one for one in free if one.spec.id not in ticket.tried]
        if not free:
            return None
        self.hedges += 1
        return ReplicaGrant(free[pick(free, self._random.random())], ticket, now_s)

    # What grants report.

    def began(self, ticket: Ticket, now_s: float) -> None:
        """Note a request that was sent to a replica."""
        self.in_service += 1
        self._started_sum_s += now_s
        self.queue.begin(ticket.team, ticket.tokens)

    def released(self, ticket: Ticket, now_s: float, spent_s: float, tokens_used: int) -> None:
        """Note that a request left its replica."""
        self.in_service -= 1
        self._started_sum_s -= now_s - spent_s
        self._busy_s += spent_s
        self._seconds += SMOOTHING * (spent_s - self._seconds) if self._seconds else spent_s
        self.queue.end(ticket.team, ticket.tokens, tokens_used)
        if self.queue:
            self.dispatch(now_s)

    def carried(
        self, replica: ReplicaState, more: tuple[int, int], ended: int, failed: int, now_s: float
    ) -> None:
        """Note what another data plane did with a replica since the last call.

        `more` is by how much its requests and tokens in the replica grew, `ended` how many
        requests were answered or failed.
        """
        requests, tokens = more
        replica.requests += requests
        replica.tokens += tokens
        self.in_service += requests
        self._started_sum_s += requests * now_s
        revision = replica.revision
        revision.requests += ended
        revision.errors += failed
        answered = max(0, ended - failed)
        self.ended += answered
        tokens = round(answered * self.estimator.output_tokens)
        self.ended_output_tokens += tokens
        self.count_output(tokens)
        if requests:
            revision.shrunk(replica)
        if requests < 0 and self.queue:
            self.dispatch(now_s)

    def first_byte_came(self, now_s: float, waited_s: float) -> None:
        """Note how long a request waited for its first byte."""
        recent = self._recent_wait_s(now_s)
        self._wait_s = recent + 4 * SMOOTHING * (waited_s - recent) if recent else waited_s
        self._wait_at_s = now_s

    def learn(
        self, ticket: Ticket, input_tokens: int | None, output_tokens: int, *, failed: bool
    ) -> None:
        """Learn the lengths of prompts and answers."""
        if not failed and (output_tokens or input_tokens is not None):
            self.estimator.learn(ticket.prompt_bytes, input_tokens, output_tokens)

    def count_output(self, tokens: int) -> None:
        """Count tokens of answers; a negative number corrects what was counted before."""
        # The counter never falls: what was counted in excess is left out of what comes next.
        tokens -= self._output_excess
        self._output_excess = max(0, -tokens)
        self.output_tokens += max(0, tokens)

    def busy_ms(self, now_s: float) -> int:
        """Return the time that requests spent in replicas, those in them now included."""
        return round(1_000 * (self._busy_s + self.in_service * now_s - self._started_sum_s))

    def breaker_opened(self, replica: ReplicaState) -> None:
        """Note that a replica gets no requests for a while."""
        replica.revision.changed()
        _LOG.warning(
            "breaker of %s of %s opened: %s",
            replica.spec.id,
            self.spec.name,
            "no answer" if replica.breaker.is_unreachable else "failing",
        )

    def breaker_closed(self, replica: ReplicaState) -> None:
        """Note that a replica gets requests again."""
        replica.revision.changed()
        _LOG.info("breaker of %s of %s closed", replica.spec.id, self.spec.name)

    def judge(self, canary: RevisionState, now_s: float) -> None:
        """Roll a canary back if it is worse than the others."""
        others = Totals()
        for one in self.revisions.values():
            if one is not canary and not one.spec.is_canary:
                others = others.plus(one.totals(now_s))
        verdict = judge(canary.totals(now_s), others, self.spec.rollback)
        if verdict is None:
            return
        canary.rolled_back = verdict
        canary.rolled_back_ms = now_ms()
        _LOG.warning(
            "rolled back %s of %s: %.1f%% %s in %d requests, %.1f%% in the others",
            canary.spec.name,
            self.spec.name,
            verdict.percent,
            "failed" if verdict.cause == "errors" else "missed the objective",
            verdict.requests,
            verdict.percent_others,
        )

    # Time.

    def sweep(self, now_s: float) -> None:
        """Do what is due: breakers, stalled replicas, waits that are too long."""
        for revision in self.revisions.values():
            for replica in revision.replicas:
                if replica.breaker.poll(now_s):
                    revision.changed()
                elif len(revision.replicas) > 1 and replica.is_stalled(now_s):
                    replica.breaker.fail(now_s, is_unreachable=True)
                    self.breaker_opened(replica)
        if not self.queue:
            return
        self.dispatch(now_s)
        for ticket in list(self.queue):
            waited_s = now_s - ticket.arrived_s
            if self.places and (away := self.go_away(ticket, waited_s, now_s)) is not None:
                self._send_away(ticket, away, now_s)
            elif waited_s >= self.spec.hold.timeout_s:
                message = f"no replica of `{self.spec.name}` was free in {waited_s:.0f} s"
                self.drop(ticket, RequestRefused("wait_timeout", message, self.retry_after_s()))

    def retry_after_s(self) -> float:
        """Return when a refused client should try again."""
        slots = sum(one.slots for each in self.revisions.values() for one in each.replicas)
        wait_s = expected_wait_s(len(self.queue), slots, self._seconds) or 5.0
        return min(max(wait_s, 1.0), RETRY_AFTER_S_MAX)

    def usable(self) -> list[ReplicaState]:
        """Return the ready replicas whose breakers are not open, busy ones among them."""
        return [
            one
            for revision in self.revisions.values()
            if revision.share > 0
            for one in revision.replicas
            if one.is_ready and one.breaker.state != "open"
        ]

    def _send_away(self, ticket: Ticket, away: Grant, now_s: float) -> None:
        self.leave(ticket)
        if ticket.future is not None and not ticket.future.done():
            ticket.future.set_result(away)
        else:
            away.abandon(now_s)

    def _full(self) -> RequestRefused:
        waiting = f"{len(self.queue):,} requests wait for `{self.spec.name}`, as many as may"
        if not self.spec.hold.requests_max:
            waiting = f"no replica of `{self.spec.name}` is free, and requests may not wait"
        return RequestRefused("queue_full", waiting, self.retry_after_s())

    def _recent_wait_s(self, now_s: float) -> float:
        return self._wait_s if now_s - self._wait_at_s < RECENT_S else 0.0

    def _choose(self, ticket: Ticket) -> ReplicaState | None:
        revision = self._revision(ticket)
        if revision is None:
            return self._erroring(ticket)
        free = revision.available()
        if ticket.tried:
            free = [one for one in free if one.spec.id not in ticket.tried]
            if not free:
                return self._again(ticket)
        elif not ticket.is_retry:
            for one in free:
                if one.breaker.state == "half-open":
                    return one
        preferred, saved = self._preferred(ticket, revision, free)
        chosen = free[pick(free, self._random.random(), preferred, saved)]
        if ticket.prefix:
            revision.prefixes.note(ticket.prefix, chosen.spec.id)
        return chosen

    def _revision(self, ticket: Ticket) -> RevisionState | None:
        live = [one for one in self.revisions.values() if one.share > 0 and one.available()]
        if len(live) < 2:
            return live[0] if live else None
        # A session stays with its revision while weights do not change.
        chance = self._random.random() if ticket.session is None else ticket.session / 2**32
        if ticket.tried:
            fresh = [
                one for one in live if any(r.spec.id not in ticket.tried for r in one.available())
            ]
            live = fresh or live
        position = pick_revision([one.share for one in live], chance)
        return None if position is None else live[position]

    def _again(self, ticket: Ticket) -> ReplicaState | None:
        """Return a replica that failed this request before, if no other one will be free."""
        if any(one.spec.id not in ticket.tried for one in self.usable()):
            return None
        free = [
            one for each in self.revisions.values() if each.share > 0 for one in each.available()
        ]
        return free[pick(free, self._random.random())] if free else None

    def _erroring(self, ticket: Ticket) -> ReplicaState | None:
        """Return a replica that answers errors, if all do: that is better than no answer."""
        if self.usable():
            return None
        free = [
            one
            for revision in self.revisions.values()
            if revision.share > 0
            for one in revision.replicas
            if one.is_ready and one.has_slot and not one.breaker.is_unreachable
        ]
        return free[pick(free, self._random.random())] if free else None

    def _preferred(
        self, ticket: Ticket, revision: RevisionState, free: list[ReplicaState]
    ) -> tuple[int | None, int]:
        """Return the position of the replica of the same session or prefix, and tokens saved."""
        if ticket.session is not None:
            # Rendezvous hashing: few sessions move when replicas come and go.
            ranked = (crc32(one.spec.id.encode(), ticket.session) for one in free)
            best = max(enumerate(ranked), key=lambda pair: pair[1])
            return best[0], ticket.input_tokens
        if not ticket.prefix or (found := revision.prefixes.find(ticket.prefix)) is None:
            return None, 0
        for position, one in enumerate(free):
            if one.spec.id == found[0]:
                return position, self.estimator.input_of(found[1])
        return None, 0
