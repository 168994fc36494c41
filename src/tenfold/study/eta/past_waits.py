"""How long similar jobs have waited recently, including those that still wait.

A wait is stored with the features it began with. The nearest waits by features are used, weighted
by distance. The share that still waits after a given time is a product-limit estimate
(Kaplan-Meier): a job that still waits is a lower bound, and ignoring it would make every forecast
in a growing queue too early. Times are log2 of ms throughout, because waits differ by factors.

Jobs that wait at the same time are correlated: a thousand of them are evidence of one long wait,
not of a thousand. So the tail of a curve is bounded by how many waits would fit one after another
into the time that its data span.
"""

from math import log2
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tenfold.physics.arrays import Floats

WINDOW = 1_000
"""Waits kept: enough of each kind, and few enough that old ones expire."""
NEAREST = 200
MIN_WAITS = 8
"""With fewer waits than this only queued work is used."""
TREND = 0.5
"""Waits are compared after division by the queued work to this power: 1 would rely on that work
alone, 0 would never extrapolate in a growing queue."""
DOUBT = 20.0
"""Prior weight, in forecasts that held as they should."""
SHORTEST_MS = 1_000.0
STILL_WAITS = np.inf


Flags = NDArray[np.bool_]


class WaitFeatures(NamedTuple):
    """Features of a wait when it begins; values that double differ by one."""

    gpus: float
    ran: float
    """Minutes the job has run before."""
    pending: float
    """Pending jobs, this one included."""
    drain: float
    """ms for which the pending jobs would keep all GPUs busy."""
    team_priority: float
    """A number for the team and the priority: the same or not."""


class SurvivalCurve(NamedTuple):
    """Halvings of the number still waiting (bits), by log2 of the wait in ms."""

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
        # Beyond the data, each halving is assumed to double the wait.
        return last + bits - float(self.bits[-1])

    def halvings(self, times: Floats) -> Floats:
        """Return how many halvings lie before each of some times."""
        last = float(self.times[-1])
        behind = np.searchsorted(self.times, times, side="right")
        seen = np.where(behind > 0, self.bits[np.maximum(behind - 1, 0)], 0.0)
        return np.where(times > last, self.bits[-1] + times - last, seen)


class SimilarWaits(NamedTuple):
    """The waits most similar to one: their curve, and their forecasts."""

    curve: SurvivalCurve
    weights: Floats
    times: Floats
    """log2 of each wait so far, scaled to this queue's work."""
    started: Flags
    bounds: Floats
    """log2 of the forecast P50 and P90, scaled likewise."""

    def hit_share(self, place: int, share: float) -> float:
        """Return the share that starts by P50 or P90; for pending jobs, by the curve."""
        bounds = self.bounds[:, place]
        before = self.curve.halvings(bounds) - self.curve.halvings(self.times)
        expected = 1 - np.exp2(-np.maximum(before, 0.0))
        hit_share = np.where(self.started, 1.0, expected)
        hit_share[bounds < self.times] = 0.0
        weight = float(self.weights.sum()) + DOUBT
        return (float(self.weights @ hit_share) + DOUBT * share) / weight


class PastWaits:
    """The latest waits of one kind, a ring of arrays so that all can be compared at once."""

    def __init__(self) -> None:
        self.count = 0
        """Waits that ever began; also the number of the next."""
        self._features = np.zeros((WINDOW, len(WaitFeatures._fields)))
        self._began = np.zeros(WINDOW)
        self._ended = np.full(WINDOW, STILL_WAITS)
        self._started = np.zeros(WINDOW, dtype=np.bool_)
        self._bounds = np.zeros((WINDOW, 2))

    @property
    def known(self) -> int:
        """Number of stored waits."""
        return min(self.count, WINDOW)

    def begin(self, features: WaitFeatures, now_ms: int, bounds: tuple[int, int]) -> int:
        """Store a wait and its forecast, drop the oldest, and return its number."""
        number, place = self.count, self.count % WINDOW
        self._features[place] = features
        self._began[place] = now_ms
        self._ended[place] = STILL_WAITS
        self._started[place] = False
        self._bounds[place] = bounds
        self.count += 1
        return number

    def end(self, number: int, now_ms: int, *, started: bool) -> None:
        """Record the end of a wait; an abandoned wait is only a lower bound."""
        if number >= self.count - WINDOW:
            self._ended[number % WINDOW] = now_ms
            self._started[number % WINDOW] = started

    def similar(self, features: WaitFeatures, now_ms: int) -> SimilarWaits | None:
        """Return the nearest waits; None where too few are known."""
        known = self.known
        # A wait that began now carries no information yet.
        before = np.flatnonzero(self._began[:known] < now_ms)
        if len(before) < MIN_WAITS:
            return None
        difference = self._features[before] - np.array(features)
        difference[:, -1] = difference[:, -1] != 0
        distances = np.einsum("ij,ij->i", difference, difference)
        if len(before) > NEAREST:
            near = np.argpartition(distances, NEAREST)[:NEAREST]
            before, distances = before[near], distances[near]
        weights = np.exp(distances / (-2 * max(1.0, float(np.median(distances)))))
        began, ended = self._began[before], np.minimum(self._ended[before], now_ms)
        shift = TREND * (
            features.drain - self._features[before, WaitFeatures._fields.index("drain")]
        )
        times = np.log2(np.maximum(ended - began, SHORTEST_MS)) + shift
        started = self._started[before]
        waited_ms = float(weights @ (ended - began)) / float(weights.sum())
        independent_waits = (float(ended.max()) - float(began.min())) / max(SHORTEST_MS, waited_ms)
        bounds = np.maximum(self._bounds[before] - began[:, None], SHORTEST_MS)
        return SimilarWaits(
            curve=_product_limit(times, started, weights, independent_waits),
            weights=weights,
            times=times,
            started=started,
            bounds=np.log2(bounds) + shift[:, None],
        )


def _product_limit(
    times: Floats, started: Flags, weights: Floats, independent_waits: float
) -> SurvivalCurve:
    """Return the survival curve of waits; at equal times, starts come before censored waits."""
    order = np.lexsort((~started, times))
    times, started, weights = times[order], started[order], weights[order]
    at_risk = weights[::-1].cumsum()[::-1]
    stays = np.where(started, np.maximum(1 - weights / at_risk, 0), 1.0)
    bits = -np.log2(np.maximum(stays.cumprod(), 1e-9))
    # So many waits cannot tell of a share smaller than one more among them would be.
    tellable = min(float(weights.sum() ** 2 / np.square(weights).sum()), independent_waits)
    return SurvivalCurve(times, np.minimum(bits, log2(1 + tellable)))
