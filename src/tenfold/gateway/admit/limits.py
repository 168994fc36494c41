"""What a team may use: requests and tokens per minute, and requests at a time.

A limit per minute is a bucket that holds a minute's worth and refills evenly, so an idle team may
use a minute's worth at once. Tokens are charged as estimated on arrival and corrected afterwards;
a bucket may therefore go below zero, and the team waits until it is refilled.
"""

from typing import Literal, NamedTuple

from tenfold.model.service.routing import TeamLimits

MINUTE_S = 60.0

Limit = Literal["requests_per_minute", "tokens_per_minute", "concurrent_max"]


class OverLimit(NamedTuple):
    """A limit that a request would exceed."""

    limit: Limit
    most: int
    retry_after_s: float


class Bucket:
    """An allowance that refills evenly up to a minute's worth."""

    __slots__ = ("_at_s", "_left", "per_minute")

    def __init__(self, per_minute: int) -> None:
        self.per_minute = per_minute
        self._left = float(per_minute)
        self._at_s = 0.0

    def missing_s(self, now_s: float, amount: float) -> float:
        """Return how long until an amount is there; 0 if it is, or if there is no limit."""
        if not self.per_minute:
            return 0.0
        rate = self.per_minute / MINUTE_S
        self._left = min(self._left + (now_s - self._at_s) * rate, float(self.per_minute))
        self._at_s = now_s
        # A request larger than the bucket passes when the bucket is full.
        lacking = min(amount, self.per_minute) - self._left
        return lacking / rate if lacking > 0 else 0.0

    def take(self, amount: float) -> None:
        """Take an amount; a negative one gives back."""
        self._left -= amount

    def resize(self, per_minute: int) -> None:
        """Change the limit; what was used stays used."""
        self._left += per_minute - self.per_minute
        self.per_minute = per_minute


class TeamUse:
    """The limits of one team and what it uses now."""

    __slots__ = ("_requests", "_tokens", "concurrent", "limits")

    def __init__(self, limits: TeamLimits) -> None:
        self.limits = limits
        self.concurrent = 0
        """Requests now, including those that wait."""
        self._requests = Bucket(limits.requests_per_minute)
        self._tokens = Bucket(limits.tokens_per_minute)

    def update(self, limits: TeamLimits) -> None:
        """Use other limits from now on."""
        self.limits = limits
        self._requests.resize(limits.requests_per_minute)
        self._tokens.resize(limits.tokens_per_minute)

    def begin(self, now_s: float, tokens: int) -> OverLimit | None:
        """Charge a request, or return the limit that it would exceed."""
        limits = self.limits
        if limits.concurrent_max and self.concurrent >= limits.concurrent_max:
            return OverLimit("concurrent_max", limits.concurrent_max, 1.0)
        wait_s = self._requests.missing_s(now_s, 1)
        if wait_s > 0:
            return OverLimit("requests_per_minute", limits.requests_per_minute, wait_s)
        wait_s = self._tokens.missing_s(now_s, tokens)
        if wait_s > 0:
            return OverLimit("tokens_per_minute", limits.tokens_per_minute, wait_s)
        self._requests.take(1)
        self._tokens.take(tokens)
        self.concurrent += 1
        return None

    def end(self, tokens_charged: int, tokens_used: int) -> None:
        """Note the end of a request and what it used in fact."""
        self.concurrent -= 1
        self._tokens.take(tokens_used - tokens_charged)
