"""When a call is made again, and with which token: the same for both clients.

Calls that change something are made once, unless they have a key under which the control plane
knows them again, or were never sent. A wish whose answer was lost may have been done, and only
its author can tell whether asking again does harm.
"""

from collections.abc import Iterator
from typing import Any

from tenfold.client.calls import Call
from tenfold.client.place import Place
from tenfold.client.problems import NEVER_SENT, NOBODY
from tenfold.model.errors import Refused, TenfoldError, Unreachable

TIMEOUT_S = 60.0
"""How long an answer may take; the control plane itself gives up after half of it."""
PAUSES_S = (0.1, 0.2, 0.4, 0.8)
"""Before the second try of a safe call, the third, and so on."""
AWAY_S = 60.0
"""How long something that waits or follows puts up with a control plane that is not there."""
LOOK_S = (0.05, 1.0)
"""From one look at a job to the next: at first, and at most."""


class Seat:
    """Where a client asks now. A control plane that starts again here leaves a new address."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def moved(self) -> bool:
        """Take the new address, if there is one."""
        new = self.place.again()
        if new is not None:
            self.place = new
        return new is not None

    def request(self, call: Call[Any], more: dict[str, str] | None = None) -> dict[str, Any]:
        """Return a call as the HTTP library takes it."""
        headers = {"Authorization": f"Bearer {self.place.token}", **(more or {})}
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        if call.key:
            headers["Idempotency-Key"] = call.key
        return {
            "method": call.method,
            "url": self.place.url + call.path,
            "params": call.params,
            "headers": headers,
            "content": call.body,
        }


class Tries:
    """The tries of one call."""

    def __init__(self, seat: Seat, call: Call[Any]) -> None:
        self._seat = seat
        self._is_safe = call.is_safe
        self._pauses = iter(PAUSES_S)
        self._looked = False
        self._unsure: TenfoldError | None = None

    def pause_after(self, wrong: TenfoldError) -> float:
        """Return how long to wait before the next try; raise where there is none."""
        turned_away = isinstance(wrong, Refused) and wrong.code in NOBODY
        if turned_away and not self._looked:
            # Nothing was done for a token that is nobody's, so any call may be made again.
            self._looked = True
            if self._seat.moved():
                return 0.0
        may_repeat = self._is_safe or wrong.code == NEVER_SENT
        if not (may_repeat and isinstance(wrong, Unreachable)):
            raise wrong
        if wrong.code != NEVER_SENT:
            self._unsure = wrong
        self._seat.moved()
        pause_s = next(self._pauses, None)
        if pause_s is None:
            # What a try may have done is not undone by one that found nobody there.
            raise self._unsure or wrong
        return pause_s


class Patience:
    """Puts up with a control plane that is away, for a while."""

    def __init__(self, seat: Seat, away_s: float = AWAY_S) -> None:
        self._seat = seat
        self._away_s = away_s
        self._since_s: float | None = None

    def there(self) -> None:
        """Note that it answered."""
        self._since_s = None

    def away(self, wrong: TenfoldError, now_s: float) -> None:
        """Note that it did not; raise where that has gone on for too long, or is no absence."""
        moved = self._seat.moved()
        if isinstance(wrong, Refused) and wrong.code in NOBODY and moved:
            return
        if not isinstance(wrong, Unreachable):
            raise wrong
        if self._since_s is None:
            self._since_s = now_s
        if now_s - self._since_s >= self._away_s:
            raise wrong


def looks() -> Iterator[float]:
    """Yield how long to wait before each look at a job, longer and longer."""
    pause_s, most_s = LOOK_S
    while True:
        yield pause_s
        pause_s = min(pause_s * 1.5, most_s)
