"""How long jobs like this one have waited of late, those that still wait included.

A wait is remembered with the traits that it began with. The nearest by traits are asked, and
each counts the less the further it is. How many of them still waited after so long is a
product over those that started (Kaplan and Meier): a job that still waits says that waits
are at least this long, and leaving it out would make every forecast in a growing queue too
early. Times are log2 of ms throughout, for waits differ by factors.
"""

from math import log2
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tenfold.physics.arrays import Floats

WINDOW = 1_000
"""Waits that are remembered: enough of each kind, and so few that old times fade."""
NEAREST = 100
ENOUGH = 8
"""With fewer waits than this the queue alone is asked."""
TREND = 0.5
"""Waits are compared after division by the pace of the queue to this power: 1 would trust
the pace alone, 0 would never go beyond what has been seen in a queue that grows."""
SHORTEST_MS = 1_000.0
STILL_WAITS = np.inf


Flags = NDArray[np.bool_]


class Traits(NamedTuple):
    """What a wait is known by when it begins; numbers a doubling apart differ by one."""

    gpus: float
    again: float
    """Above 0 where the job has run before and was stopped."""
    ran: float
    """Minutes of service that the job has had before."""
    pending: float
    """Jobs that wait, this one included."""
    pace: float
    """ms in which as many jobs as wait now were started of late."""
    kin: float
    """A number for the team and the priority: the same or not."""


class Curve(NamedTuple):
    """Halvings of the number that still waits (bits), by log2 of the wait in ms."""

    times: Floats
    bits: Floats

    def wait(self, bits: float, waited_ms: float = 0.0) -> float:
        """Return log2 of the whole wait after so many halvings more than by now."""
        times, last = self.times, float(self.times[-1])
        if waited_ms > SHORTEST_MS:
            since = log2(waited_ms)
            behind = int(np.searchsorted(times, since, side="right"))
            bits += float(self.bits[behind - 1]) if behind else 0.0
            last = max(last, since)
        place = int(np.searchsorted(self.bits, bits - 1e-9))
        if place < len(times):
            return float(times[place])
        # Beyond what anybody has seen, each halving is believed to double the wait.
        return last + bits - float(self.bits[-1])


class Waits:
    """The latest waits, a ring of arrays so that all can be compared at once."""

    def __init__(self) -> None:
        self.count = 0
        """Waits that ever began; the number of the next."""
        self._traits = np.zeros((WINDOW, len(Traits._fields)))
        self._began = np.zeros(WINDOW)
        self._ended = np.full(WINDOW, STILL_WAITS)
        self._started = np.zeros(WINDOW, dtype=np.bool_)

    @property
    def known(self) -> int:
        """Waits that are remembered."""
        return min(self.count, WINDOW)

    def begin(self, traits: Traits, now_ms: int) -> int:
        """Remember a wait, forget the oldest, and return its number."""
        number, place = self.count, self.count % WINDOW
        self._traits[place] = traits
        self._began[place] = now_ms
        self._ended[place] = STILL_WAITS
        self._started[place] = False
        self.count += 1
        return number

    def end(self, number: int, now_ms: int, *, started: bool) -> None:
        """Note the end of a wait; one that was given up says only that it was as long."""
        if number >= self.count - WINDOW:
            self._ended[number % WINDOW] = now_ms
            self._started[number % WINDOW] = started

    def curve(self, traits: Traits, now_ms: int) -> Curve | None:
        """Return how many of the nearest still wait after a time; None where too few are known."""
        known = self.known
        began = self._began[:known]
        # What began at this moment has told nothing yet.
        before = np.flatnonzero(began < now_ms)
        if len(before) < ENOUGH:
            return None
        apart = self._traits[before] - np.array(traits)
        apart[:, -1] = apart[:, -1] != 0
        far = np.einsum("ij,ij->i", apart, apart)
        if len(before) > NEAREST:
            near = np.argpartition(far, NEAREST)[:NEAREST]
            before, far = before[near], far[near]
        weights = np.exp(far / (-2 * max(1.0, float(np.median(far)))))
        ended = np.minimum(self._ended[before], now_ms)
        times = np.log2(np.maximum(ended - began[before], SHORTEST_MS))
        times += TREND * (traits.pace - self._traits[before, Traits._fields.index("pace")])
        return _product_limit(times, self._started[before], weights)


def _product_limit(times: Floats, started: Flags, weights: Floats) -> Curve:
    """Return the curve of those who still wait; at one time, starts come before the rest."""
    order = np.lexsort((~started, times))
    times, started, weights = times[order], started[order], weights[order]
    at_risk = weights[::-1].cumsum()[::-1]
    stays = np.where(started, np.maximum(1 - weights / at_risk, 0), 1.0)
    bits = -np.log2(np.maximum(stays.cumprod(), 1e-9))
    # So many waits cannot tell of a share smaller than one more among them would be.
    tellable = log2(float(weights.sum() ** 2 / np.square(weights).sum()) + 1)
    return Curve(times, np.minimum(bits, tellable))
