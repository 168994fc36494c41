"""The circuit breaker of a replica: it remembers failures across requests.

Closed: the replica gets requests. Open: it gets none for a while, which doubles each time a probe
fails. Half-open: one request at a time is the probe; its success closes the breaker.
"""

from typing import Literal

SMOOTHING = 0.15
FAILING = 0.5
"""The smoothed part of failures at which it opens: five in a row after successes."""
OPEN_S = 1.0
OPEN_S_MAX = 30.0
FORGET_S = 60.0
"""Closed for so long, it starts again with the shortest time."""

BreakerState = Literal["closed", "open", "half-open"]


class Breaker:
    """The state of one replica's breaker; the time is an argument."""

    __slots__ = ("_closed_s", "_failing", "_open_s", "due_s", "is_unreachable", "probing", "state")

    def __init__(self) -> None:
        self.state: BreakerState = "closed"
        self.due_s = 0.0
        """When an open breaker becomes half-open."""
        self.is_unreachable = False
        """Whether it opened because nothing answered, rather than because of error answers."""
        self.probing = False
        """Whether the probe of a half-open breaker is under way."""
        self._failing = 0.0
        self._open_s = OPEN_S
        self._closed_s = 0.0

    def succeed(self, now_s: float) -> bool:
        """Note an answer; return whether the breaker closed."""
        if self.state == "closed":
            self._failing -= SMOOTHING * self._failing
            return False
        if self.state == "open":
            # An answer to a request from before it opened says nothing about now.
            return False
        self.state = "closed"
        self.probing = False
        self.is_unreachable = False
        self._failing = 0.0
        self._closed_s = now_s
        return True

    def fail(self, now_s: float, *, is_unreachable: bool = False) -> bool:
        """Note a failure; return whether the breaker opened."""
        if self.state == "open":
            self.is_unreachable = self.is_unreachable or is_unreachable
            return False
        if self.state == "half-open":
            self._open_s = min(2 * self._open_s, OPEN_S_MAX)
            self._open(now_s, is_unreachable)
            return True
        self._failing += SMOOTHING * (1 - self._failing)
        if not is_unreachable and self._failing <= FAILING:
            return False
        if now_s - self._closed_s > FORGET_S:
            self._open_s = OPEN_S
        self._open(now_s, is_unreachable)
        return True

    def give_up_probe(self) -> None:
        """Note that a probe ended without an answer or a failure: its client left."""
        self.probing = False

    def poll(self, now_s: float) -> bool:
        """Become half-open if it is time; return whether it did."""
        if self.state != "open" or now_s < self.due_s:
            return False
        self.state = "half-open"
        self.probing = False
        return True

    def _open(self, now_s: float, is_unreachable: bool) -> None:
        self.state = "open"
        self.probing = False
        self.is_unreachable = is_unreachable
        self.due_s = now_s + self._open_s
