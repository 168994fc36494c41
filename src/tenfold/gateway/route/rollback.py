"""When a canary loses its share: failed and late requests in a sliding window, compared."""

from typing import Literal, NamedTuple

from tenfold.model.service.routing import Rollback

SLOTS = 20
"""Parts of a window; its length is right to one part."""


class Totals(NamedTuple):
    """Requests of one revision in a window."""

    requests: int = 0
    errors: int = 0
    misses: int = 0

    def plus(self, other: "Totals") -> "Totals":
        """Return the sum of two revisions."""
        return Totals(
            self.requests + other.requests, self.errors + other.errors, self.misses + other.misses
        )


class Window:
    """Counts requests of the last seconds."""

    __slots__ = ("_at", "_slot_s", "_slots")

    def __init__(self, window_s: float) -> None:
        self._slot_s = window_s / SLOTS
        self._at = 0
        self._slots = [[0, 0, 0] for _ in range(SLOTS)]

    def count(self, now_s: float, *, failed: bool, late: bool) -> None:
        """Count one request."""
        self._advance(now_s)
        slot = self._slots[self._at % SLOTS]
        slot[0] += 1
        slot[1] += failed
        slot[2] += late

    def totals(self, now_s: float) -> Totals:
        """Return the requests in the window that ends now."""
        self._advance(now_s)
        return Totals(*(sum(column) for column in zip(*self._slots, strict=True)))

    def _advance(self, now_s: float) -> None:
        at = int(now_s / self._slot_s)
        for passed in range(max(self._at + 1, at - SLOTS + 1), at + 1):
            self._slots[passed % SLOTS] = [0, 0, 0]
        self._at = max(self._at, at)


class Verdict(NamedTuple):
    """Why a canary is rolled back."""

    cause: Literal["errors", "objective"]
    requests: int
    percent: float
    percent_others: float


def judge(canary: Totals, others: Totals, rollback: Rollback) -> Verdict | None:
    """Return why a canary is rolled back; None if it is as good as the others, or too new."""
    if canary.requests < rollback.requests_min:
        return None
    limits: tuple[tuple[Literal["errors", "objective"], int, int, float], ...] = (
        ("errors", canary.errors, others.errors, rollback.error_percent_max),
        ("objective", canary.misses, others.misses, rollback.miss_percent_max),
    )
    for cause, count, count_others, percent_max in limits:
        percent = 100 * count / canary.requests
        percent_others = 100 * count_others / others.requests if others.requests else 0.0
        if percent - percent_others > percent_max:
            return Verdict(cause, canary.requests, percent, percent_others)
    return None
