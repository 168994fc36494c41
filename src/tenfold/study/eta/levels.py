"""Choose the quantile levels at which P50 and P90 are read, so that half and nine in ten hold.

Two things move a level. Once it is known whether a job started by its bound, the level takes a
step: up if the job was late, down if not, in such proportion that steps cancel out when the bound
holds as often as it should. So coverage is right in the long run whatever the policy does
(adaptive conformal inference). In a long queue that feedback comes late, and meanwhile all
forecasts share the same error. So each forecast is also corrected by the expected coverage of the
open forecasts for similar jobs, given the current curve.
"""

from math import exp, log, log2

from tenfold.study.eta.past_waits import SimilarWaits

SHARES = (0.5, 0.9)
STEPS = (0.1, 0.15)
"""Log-odds step of the level for one late start; on-time starts move it back."""
STEADY_AFTER, SMALLEST_STEP = 3_000, 0.25
"""After so many checked bounds, steps shrink with their number, down to this fraction: the longer
the record, the less one correlated burst of waits should count."""
PULL_WEIGHTS = (3.0, 2.0)
"""Weight of the correction by open forecasts for similar jobs. Nearly full coverage says little
about one in ten, so P90 is corrected less."""
MAX_OFFSET = (6.0, 9.0)
"""Cap on offsets: many bounds may pass before the first is checked."""


class QuantileLevels:
    """The levels of P50 and P90 for one kind of wait, as log-odds offsets from their shares."""

    def __init__(self) -> None:
        self._offsets = [0.0] * len(SHARES)
        self._judged = 0

    def halvings(self, similar: SimilarWaits) -> list[float]:
        """Return after how many halvings of the waiting jobs P50 and P90 are read."""
        found: list[float] = []
        for place, share in enumerate(SHARES):
            odds = share / (1 - share)
            missing = (share - similar.hit_share(place, share)) / (share * (1 - share))
            level = log(odds) + self._offsets[place] + PULL_WEIGHTS[place] * missing
            found.append(log2(1 + exp(_within(level, place))))
        return found

    def learn(self, place: int, *, late: bool) -> None:
        """Move one level, now that it is known whether a job started by its bound."""
        self._judged += 1
        part = max(SMALLEST_STEP, min(1.0, STEADY_AFTER / self._judged))
        step = STEPS[place] * part * (late - (1 - SHARES[place]))
        self._offsets[place] = _within(self._offsets[place] + step, place)


def _within(level: float, place: int) -> float:
    return min(max(level, -MAX_OFFSET[place]), MAX_OFFSET[place])
