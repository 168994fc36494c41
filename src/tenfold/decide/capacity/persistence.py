"""How much of an unexpected rise in demand is there to stay.

A forecast may be off because of a peak that is over in a month, or because demand has moved. Only
the second is worth buying for: the first is rented. The more a series resembles its own recent
past, the more of its errors last.
"""

from math import sqrt

import numpy as np

from tenfold.decide.capacity.methods import Floats

VALUES_LEAST = 6
MOST = 0.999
WANDERS = 0.9
"""A series that keeps this much of its past has no level but its last value."""
TINY = 1e-9


LEVEL_VALUES_MOST = 6
DOUBTED_ORIGINS = 2
"""A forecast that was tried on so few past origins counts half, the present level the rest."""


def lasting_share(values: Floats, periods: int) -> float:
    """Return the share of the error of one period that the mean of several periods still has."""
    along = _along(values)
    if along is None or periods <= 1:
        return 1.0
    return min(1.0, sqrt((1 + along) / (1 - along) / periods))


def towards_level(mean: Floats, values: Floats, origins: int) -> Floats:
    """Return a forecast drawn towards the present level if few past origins speak for it.

    The level of a series that keeps little of its past is a mean of its last values.
    """
    along = _along(values)
    last = 1 if along is None else min(LEVEL_VALUES_MOST, max(1, round(1 / (1 - along))))
    if along is not None and along >= WANDERS:
        last = 1
    level = max(TINY, float(values[-last:].mean()))
    trusted = origins / (origins + DOUBTED_ORIGINS)
    return np.exp(trusted * np.log(np.maximum(mean, TINY)) + (1 - trusted) * np.log(level))


def _along(values: Floats) -> float | None:
    """Return how much of an error carries over to the next period; None if this cannot be told.

    Errors are taken to follow a first-order autoregression around the trend, whose coefficient is
    corrected for the length of the series: short series understate it.
    """
    count = len(values)
    if count < VALUES_LEAST:
        return None
    scale = np.log(np.maximum(values, TINY))
    ahead = np.arange(count)
    rest = scale - np.polyval(np.polyfit(ahead, scale, 1), ahead)
    total = float(rest @ rest)
    if total <= TINY:
        return None
    found = float(rest[1:] @ rest[:-1]) / total + 2.0 / count
    return min(MOST, max(0.0, found))
