"""A request in a replica: from its start to its end, counted for replica, revision and service."""

from tenfold.gateway.pool.revision import ReplicaState
from tenfold.gateway.pool.ticket import Ticket


class ReplicaGrant:
    """One request in one replica."""

    __slots__ = (
        "_counted",
        "_first_s",
        "_is_late",
        "_is_shadow",
        "_left",
        "_replica",
        "_started_s",
        "_ticket",
        "target",
    )

    is_away = False

    def __init__(
        self, replica: ReplicaState, ticket: Ticket, now_s: float, *, is_shadow: bool = False
    ) -> None:
        self._replica = replica
        self._ticket = ticket
        self._is_shadow = is_shadow
        self._started_s = now_s
        self._left = ticket.tokens
        self._counted = 0
        self._is_late = False
        self._first_s: float | None = None
        """When the first byte came."""
        self.target = replica.target
        replica.requests += 1
        replica.tokens += ticket.tokens
        replica.unanswered[self] = now_s
        if replica.breaker.state == "half-open":
            replica.breaker.probing = True
        replica.revision.grown(replica)
        if not is_shadow:
            replica.revision.service.began(self._ticket, now_s)

    @property
    def replica(self) -> ReplicaState:
        """The replica it is in."""
        return self._replica

    def answered(self, now_s: float) -> None:
        """Note the first byte of a good answer."""
        replica, ticket = self._replica, self._ticket
        if replica.unanswered.pop(self, None) is None:
            return
        replica.last_byte_s = self._first_s = now_s
        replica.tokens -= ticket.input_tokens
        self._left -= ticket.input_tokens
        waited_s = now_s - self._begun_s
        replica.revision.count_first_byte(waited_s)
        service = replica.revision.service
        self._miss(_is_beyond(waited_s, service.spec.ttft_objective_s))
        if not self._is_shadow:
            service.first_byte_came(now_s, waited_s)

    def progressed(self, now_s: float, tokens: int) -> None:
        """Note tokens of the answer."""
        replica = self._replica
        replica.last_byte_s = now_s
        self._counted += tokens
        done = min(tokens, self._left)
        self._left -= done
        replica.tokens -= done
        if not self._is_shadow:
            replica.revision.service.count_output(tokens)

    def end(
        self,
        now_s: float,
        input_tokens: int | None,
        output_tokens: int,
        *,
        failed: bool = False,
        blocked_s: float = 0.0,
    ) -> None:
        """Note the end of an answer, and the tokens in it; `failed` if it broke off.

        The client took nothing for `blocked_s` of the time.
        """
        replica, ticket = self._replica, self._ticket
        if not failed:
            self._judge(now_s - blocked_s, output_tokens)
        used = output_tokens + (ticket.input_tokens if input_tokens is None else input_tokens)
        self._note(now_s, failed=failed)
        replica.revision.count_end(now_s, self._is_late, failed=failed)
        service = replica.revision.service
        if not self._is_shadow:
            service.count_output(output_tokens - self._counted)
            service.ended += not failed
            service.ended_output_tokens += 0 if failed else output_tokens
            service.learn(ticket, input_tokens, output_tokens, failed=failed)
        self._release(now_s, used)

    def fail(self, now_s: float, *, is_unreachable: bool = False) -> None:
        """Note that there was no usable answer, before a byte was sent to the client."""
        self._note(now_s, failed=True, is_unreachable=is_unreachable)
        self._replica.revision.count_end(now_s, False, failed=True)
        self._release(now_s, 0)

    def abandon(self, now_s: float) -> None:
        """Note that the request ended for a reason that is not the target's."""
        replica = self._replica
        if replica.breaker.state == "half-open":
            replica.breaker.give_up_probe()
        if self not in replica.unanswered:
            # The client left in the middle of an answer: perhaps because that took too long.
            self._judge(now_s, 0)
            replica.revision.count_end(now_s, self._is_late, failed=False)
        self._release(now_s, self._counted)

    @property
    def _begun_s(self) -> float:
        """When the wait for an answer began."""
        return self._started_s if self._is_shadow else self._ticket.arrived_s

    def _judge(self, now_s: float, output_tokens: int) -> None:
        """Count the request as late if its answer took too long, in all or for each token."""
        spec = self._replica.revision.service.spec
        late = _is_beyond(now_s - self._begun_s, spec.latency_objective_s)
        if self._first_s is not None and output_tokens > 1:
            token_s = (now_s - self._first_s) / (output_tokens - 1)
            late |= _is_beyond(token_s, spec.tpot_objective_s)
        self._miss(late)

    def _miss(self, late: bool) -> None:
        """Count a request that misses an objective, once; a copy of one is no request."""
        if late and not self._is_late:
            self._is_late = True
            self._replica.revision.service.late += not self._is_shadow

    def _note(self, now_s: float, *, failed: bool, is_unreachable: bool = False) -> None:
        replica = self._replica
        if failed:
            if replica.breaker.fail(now_s, is_unreachable=is_unreachable):
                replica.revision.service.breaker_opened(replica)
        elif replica.breaker.succeed(now_s):
            replica.revision.service.breaker_closed(replica)

    def _release(self, now_s: float, used_tokens: int) -> None:
        replica = self._replica
        replica.requests -= 1
        replica.tokens -= self._left
        self._left = 0
        replica.unanswered.pop(self, None)
        replica.revision.shrunk(replica)
        if not self._is_shadow:
            replica.revision.service.released(
                self._ticket, now_s, now_s - self._started_s, used_tokens
            )


def _is_beyond(seconds: float, objective_s: float | None) -> bool:
    return objective_s is not None and seconds > objective_s
