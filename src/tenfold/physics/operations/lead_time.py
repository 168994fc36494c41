"""Lead times: stages from order to use, each lognormal, and the distribution of their sum.

Two quantiles fix a lognormal. The sum of several has no formula, so their densities are convolved
on a grid; nothing is drawn. P90 of a sum is less than the sum of the P90s: not all stages are late
at once.
"""

from collections.abc import Iterable
from math import ceil, erf, exp, log, sqrt

import numpy as np

from tenfold.physics.arrays import Floats

Z90 = 1.2815515655446004
"""The standard normal quantile of 90%."""
STEPS = 4_096
TAIL_SIGMAS = 4.0
SPREAD_LEAST = 1e-3


class LeadDistribution:
    """How long it takes from order to use, as probabilities on a grid of weeks."""

    def __init__(self, step_weeks: float, below: Floats) -> None:
        self._step = step_weeks
        self._below = below

    def quantile(self, share: float) -> float:
        """Return the weeks that are enough with some probability."""
        place = int(np.searchsorted(self._below, share))
        if place >= len(self._below):
            return self._step * (len(self._below) - 1)
        before = float(self._below[place - 1]) if place else 0.0
        width = float(self._below[place]) - before
        part = (share - before) / width if width > 0 else 1.0
        return round(self._step * (place - 1 + part) if place else 0.0, 2)

    def quantiles(self, shares: Floats) -> Floats:
        """Return the weeks of several probabilities."""
        weeks = self._step * np.arange(len(self._below))
        return np.interp(shares, self._below, weeks)

    def within(self, weeks: float) -> float:
        """Return the probability that so many weeks are enough."""
        place = weeks / self._step
        return float(np.interp(place, np.arange(len(self._below)), self._below))


def total_of(stages: Iterable[tuple[float, float]]) -> LeadDistribution:
    """Return the distribution of the sum of stages, each given by its P50 and P90 in weeks."""
    parts = [(p50, p90) for p50, p90 in stages if p90 > 0]
    if not parts:
        return LeadDistribution(1.0, np.ones(2))
    longest = sum(_longest(p50, p90) for p50, p90 in parts)
    step = longest / STEPS
    total = np.ones(1)
    for p50, p90 in parts:
        total = np.convolve(total, _density(p50, p90, step))
    return LeadDistribution(step, np.cumsum(total) / total.sum())


def _spread(p50: float, p90: float) -> float:
    return max(SPREAD_LEAST, log(p90 / p50) / Z90)


def _longest(p50: float, p90: float) -> float:
    middle = max(p50, p90 / 100)
    return middle * exp(TAIL_SIGMAS * _spread(middle, p90))


def _density(p50: float, p90: float, step: float) -> Floats:
    """Return the probability of each grid point: of the time from half a step below to above."""
    middle = max(p50, p90 / 100)
    spread = _spread(middle, p90)
    count = ceil(_longest(p50, p90) / step) + 1

    def below(weeks: float) -> float:
        if weeks <= 0:
            return 0.0
        return 0.5 * (1 + erf(log(weeks / middle) / (spread * sqrt(2))))

    ends = np.array([below((place + 0.5) * step) for place in range(count)])
    return np.diff(ends, prepend=0.0)
