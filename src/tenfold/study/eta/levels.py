"""At which share of waits P50 and P90 are read, so that half and nine in ten hold.

Two things move a level. Once it is known whether a job started by its bound, the level goes
a step: up where the job was late, down where it was not, in such proportion that steps
cancel out when the bound holds as often as it should. So it holds in the long run whatever
the policy does (adaptive conformal inference). But in a long queue that is known late, and
meanwhile all forecasts err alike. So each forecast is also pulled by what is believed, as
the curve now stands, about those that were made for jobs like it and are still open.
"""

from math import exp, log, log2

from tenfold.study.eta.past_waits import SimilarWaits

SHARES = (0.5, 0.9)
STEPS = (0.1, 0.15)
"""Log-odds by which one late start moves the level, less what those in time take back."""
STEADY_AFTER, SMALLEST_STEP = 3_000, 0.25
"""After so many bounds were judged, steps shrink with their number, to this part at least:
the longer the record, the less a burst of waits that share one fate should say."""
PULL_WEIGHTS = (3.0, 2.0)
"""How strongly a level is pulled back by what is believed of forecasts for jobs alike. That
nearly all of them hold says little about one in ten, so P90 is pulled less."""
MAX_OFFSET = (6.0, 9.0)
"""Many bounds may pass unmet before the first is judged; steps must end somewhere."""


class QuantileLevels:
    """The levels of P50 and P90 for one kind of waits, in log-odds away from their shares."""

    def __init__(self) -> None:
        self._offsets = [0.0] * len(SHARES)
        self._judged = 0

    def halvings(self, similar: SimilarWaits) -> list[float]:
        """Return after how many halvings of those that wait P50 and P90 are to be read."""
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
