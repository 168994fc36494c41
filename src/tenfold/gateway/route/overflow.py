"""Where requests go when a service is too slow: the cheapest other place within its budget."""

from collections.abc import Sequence
from typing import Protocol

HOUR_S = 3_600
SLOTS = 60
SLOT_S = HOUR_S / SLOTS
USD_MICROS = 1_000_000


class Place(Protocol):
    """Another place that answers the same requests."""

    @property
    def outstanding(self) -> int:
        """Requests there now."""
        ...

    @property
    def requests_max(self) -> int:
        """Requests there at a time."""
        ...

    @property
    def after_wait_s(self) -> float:
        """The wait from which requests go there."""
        ...

    def usd_micros(self, input_tokens: int, output_tokens: int) -> int:
        """Return what a request costs there."""
        ...

    def usd_micros_left(self, now_s: float) -> int | None:
        """Return what may still be spent in this hour; None for no limit."""
        ...

    def is_usable(self, now_s: float) -> bool:
        """Tell whether it answers."""
        ...


class Spending:
    """What was spent in the last hour."""

    __slots__ = ("_at", "_slots")

    def __init__(self) -> None:
        self._at = 0
        self._slots = [0] * SLOTS

    def add(self, now_s: float, usd_micros: int) -> None:
        """Count an amount; a negative one takes back what was reserved."""
        self._advance(now_s)
        self._slots[self._at % SLOTS] += usd_micros

    def total(self, now_s: float) -> int:
        """Return what was spent in the hour that ends now."""
        self._advance(now_s)
        return sum(self._slots)

    def _advance(self, now_s: float) -> None:
        at = int(now_s / SLOT_S)
        for passed in range(max(self._at + 1, at - SLOTS + 1), at + 1):
            self._slots[passed % SLOTS] = 0
        self._at = max(self._at, at)


def choose_place(
    places: Sequence[Place], wait_s: float, tokens: tuple[int, int], now_s: float
) -> int | None:
    """Return the position of the cheapest place with room and budget; None to wait here.

    `wait_s` is how long the request would wait here; `tokens` are those of its prompt and answer.
    """
    best: tuple[int, int] | None = None
    for position, place in enumerate(places):
        if wait_s < place.after_wait_s or place.outstanding >= place.requests_max:
            continue
        cost, left = place.usd_micros(*tokens), place.usd_micros_left(now_s)
        if (left is not None and cost > left) or not place.is_usable(now_s):
            continue
        if best is None or (cost, position) < best:
            best = cost, position
    return None if best is None else best[1]


def expected_wait_s(waiting: int, slots: int, seconds_per_request: float) -> float:
    """Return how long a request waits behind others, if `slots` answer at a time."""
    return waiting * seconds_per_request / slots if slots else 0.0


def usd_micros_of(tokens: int, usd_per_million: float) -> int:
    """Return the price of tokens."""
    # Dollars per million tokens are micro-dollars per token.
    return round(tokens * usd_per_million)
