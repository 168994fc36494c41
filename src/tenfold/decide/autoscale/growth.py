"""How far load rises within the time that a replica takes to start, learned from the history.

The peak of the next minutes is recorded as a ratio to the level before it, by level: a service
with two requests at once doubles by chance, one with a thousand does not. A query weighs what was
seen at similar levels, and once more what was seen at this time of past days; before anything was
seen, an assumption answers.
"""

from math import exp, log2, sqrt

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

UNIT = 0.5
"""Slots that are added to level and peak, so that a ratio exists where nothing runs."""
LEVELS = 24
"""Levels of one octave each."""
STEPS = 8
"""Ratios per octave."""
LOWEST, HIGHEST = -3, 7
"""Octaves that a ratio may span."""
RATIOS = (HIGHEST - LOWEST) * STEPS
WIDTH = 0.7
"""Octaves over which levels are alike."""
FAR = 0.0
"""Weight of levels that are not alike."""
ASSUMED = 20.0
"""Buckets of history that the assumption counts as."""
PHASES = 24
"""Parts of a day."""
SAME_PHASE = 3.0
"""Weight of what was seen in this part of a day and its neighbours, added to its weight of 1."""

_FINE = 8
"""Parts of an octave for which weights of levels are known."""
_EDGES: Floats = LOWEST + np.arange(1, RATIOS + 1) / STEPS
"""Upper edges of the bins, in octaves."""
_NEAR: Floats = np.array(
    [
        [exp(-0.5 * ((row - part / _FINE) / WIDTH) ** 2) + FAR for row in range(LEVELS)]
        for part in range(LEVELS * _FINE)
    ]
)


def _assumed() -> Floats:
    """Return the distribution that holds before anything was seen: chance, and some growth."""
    middles = _EDGES - 0.5 / STEPS
    rows: list[Floats] = []
    for level in range(LEVELS):
        chance = 1 / sqrt(UNIT * 2.0**level)
        mean = log2(1 + 0.5 * chance)
        spread = 0.12 + 0.6 * chance
        row = np.exp(-0.5 * ((middles - mean) / spread) ** 2)
        rows.append(row / row.sum() * ASSUMED)
    return np.array(rows)


_ASSUMED = _assumed()


class Growth:
    """Ratios of peak to level that were seen."""

    def __init__(self, keep: float) -> None:
        """Begin with nothing seen; after each bucket the old ones count `keep` times as much."""
        self._seen = np.zeros((LEVELS, RATIOS))
        self._by_phase = np.zeros((PHASES, LEVELS, RATIOS))
        self._keep = keep
        self._weight = 1.0

    def observe(self, level: float, peak: float, phase: int) -> None:
        """Add one moment: the level then, and the peak that followed."""
        octave = log2((level + UNIT) / UNIT)
        ratio = (log2((peak + UNIT) / (level + UNIT)) - LOWEST) * STEPS
        row = min(int(octave + 0.5), LEVELS - 1)
        column = min(max(int(ratio), 0), RATIOS - 1)
        self._seen[row, column] += self._weight
        self._by_phase[phase, row, column] += self._weight
        # What is new weighs more, instead of all that is old less.
        self._weight /= self._keep
        if self._weight > 1e9:
            self._seen /= self._weight
            self._by_phase /= self._weight
            self._weight = 1.0

    def peaks(self, level: float, quantiles: Floats, phase: int) -> Floats:
        """Return the peaks that these shares of the moments at such a level stay below."""
        octave = log2((level + UNIT) / UNIT)
        near = _NEAR[min(int(octave * _FINE + 0.5), LEVELS * _FINE - 1)]
        row = min(int(octave + 0.5), LEVELS - 1)
        seen = self._seen + SAME_PHASE * self._by_phase[phase]
        below: Floats = np.cumsum((near @ seen) / self._weight + _ASSUMED[row])
        wanted: Floats = quantiles * below[-1]
        at = np.minimum(below.searchsorted(wanted), RATIOS - 1)
        before: Floats = np.where(at > 0, below[at - 1], 0.0)
        part: Floats = (wanted - before) / np.maximum(below[at] - before, 1e-12)
        octaves: Floats = _EDGES[at] - (1 - part) / STEPS
        return (level + UNIT) * np.exp2(octaves) - UNIT
