"""An overflow as a gateway sees it: its load, its budget, and the grants that it holds."""

from tenfold.gateway.pool.grant import Target
from tenfold.gateway.pool.ticket import Ticket
from tenfold.gateway.route.breaker import Breaker
from tenfold.gateway.route.overflow import USD_MICROS, Spending, usd_micros_of
from tenfold.model.service.routing import Overflow


class PlaceState:
    """The load, the spending and the counters of one overflow."""

    def __init__(self, spec: Overflow) -> None:
        self.spec = spec
        self.target = _target(spec)
        self.breaker = Breaker()
        self.spending = Spending()
        self.outstanding = 0
        self.requests = self.errors = 0
        self.input_tokens = self.output_tokens = self.usd_spent_micros = 0

    def update(self, spec: Overflow) -> None:
        """Use what a new routing state says."""
        self.spec = spec
        self.target = _target(spec)

    @property
    def requests_max(self) -> int:
        """Requests there at a time."""
        return self.spec.requests_max

    @property
    def after_wait_s(self) -> float:
        """The wait from which requests go there."""
        return self.spec.after_wait_s

    def usd_micros(self, input_tokens: int, output_tokens: int) -> int:
        """Return what a request costs there."""
        spec = self.spec
        return usd_micros_of(input_tokens, spec.usd_per_million_input_tokens) + usd_micros_of(
            output_tokens, spec.usd_per_million_output_tokens
        )

    def usd_micros_left(self, now_s: float) -> int | None:
        """Return what may still be spent in this hour; None for no limit."""
        most = self.spec.usd_per_hour_max
        return None if most is None else round(most * USD_MICROS) - self.spending.total(now_s)

    def is_usable(self, now_s: float) -> bool:
        """Tell whether it answers."""
        self.breaker.poll(now_s)
        state = self.breaker.state
        return state == "closed" or (state == "half-open" and not self.breaker.probing)


class PlaceGrant:
    """One request in an overflow. Its cost is reserved first and corrected at its end."""

    __slots__ = ("_counted", "_place", "_reserved", "_ticket", "target")

    is_away = True

    def __init__(self, place: PlaceState, ticket: Ticket, now_s: float) -> None:
        self._place = place
        self._ticket = ticket
        self._counted = 0
        self._reserved = place.usd_micros(ticket.input_tokens, ticket.output_tokens)
        self.target = place.target
        place.outstanding += 1
        place.spending.add(now_s, self._reserved)
        if place.breaker.state == "half-open":
            place.breaker.probing = True

    def answered(self, now_s: float) -> None:
        """Note the first byte of a good answer."""

    def progressed(self, now_s: float, tokens: int) -> None:
        """Note tokens of the answer."""
        self._counted += tokens

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
        if failed:
            self._place.breaker.fail(now_s)
        else:
            self._place.breaker.succeed(now_s)
        self._place.errors += failed
        self._pay(now_s, input_tokens, output_tokens)

    def fail(self, now_s: float, *, is_unreachable: bool = False) -> None:
        """Note that there was no usable answer, before a byte was sent to the client."""
        self._place.breaker.fail(now_s, is_unreachable=is_unreachable)
        self._place.errors += 1
        self._pay(now_s, 0, 0)

    def abandon(self, now_s: float) -> None:
        """Note that the request ended for a reason that is not the target's."""
        self._place.breaker.give_up_probe()
        self._pay(now_s, None, self._counted)

    def _pay(self, now_s: float, input_tokens: int | None, output_tokens: int) -> None:
        place = self._place
        read = self._ticket.input_tokens if input_tokens is None else input_tokens
        cost = place.usd_micros(read, output_tokens)
        place.spending.add(now_s, cost - self._reserved)
        place.usd_spent_micros += cost
        place.input_tokens += read
        place.output_tokens += output_tokens
        place.requests += 1
        place.outstanding -= 1


def _target(spec: Overflow) -> Target:
    return Target(spec.name, spec.url.rstrip("/"), spec.key, spec.model)
