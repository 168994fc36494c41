"""What earlier decisions computed from the history, kept so that it is not computed again.

Everything here follows from the history: a fresh memory, given the same history, decides the same.
It then reads the history from its first bucket, in about a second per day of it. So whoever drops
old buckets does so seldom, many at a time: with another first bucket the memory begins anew.
"""

from collections.abc import Sequence
from math import ceil

from tenfold.decide.autoscale.tournament import Tournament
from tenfold.model.service.autoscale import AutoscalePolicy
from tenfold.model.service.load import ServiceLoad
from tenfold.model.units import Millis

RECENT_STARTS = 50
SLOW_START = 0.9
"""Share of the measured cold starts that a decision reckons with."""
MEASURED_ENOUGH = 3
"""Measured cold starts that replace the assumed one; fewer only prolong it."""
COARSE = 1.2
"""Ratio between cold starts that are distinguished, so that one more measurement seldom asks for
another reading of the history."""
KEPT = 2
"""Readings of the history, for different cold starts, that are kept."""


class Memory:
    """Tournaments over the history of one service, by the cold start that they reckon with."""

    def __init__(self) -> None:
        self._policy: AutoscalePolicy | None = None
        self._bucket_ms = Millis(0)
        self._first_bucket = 0
        self._seen = 0
        self._tournaments: dict[int, Tournament] = {}

    def upto(self, load: ServiceLoad, policy: AutoscalePolicy) -> Tournament:
        """Return the tournament after the last bucket of the history."""
        history = load.history
        same = (self._bucket_ms, self._first_bucket) == (load.bucket_ms, load.first_bucket)
        if not same or len(history) < self._seen or policy != self._policy:
            self._tournaments.clear()
            self._policy, self._bucket_ms = policy, load.bucket_ms
            self._first_bucket = load.first_bucket
        self._seen = len(history)
        start = buckets_to_start(load.cold_starts_ms, policy.cold_start_ms, load.bucket_ms)
        tournament = self._tournaments.pop(start, None)
        if tournament is None:
            tournament = Tournament(policy, load.bucket_ms, load.first_bucket, start)
            for old in list(self._tournaments)[: 1 - KEPT]:
                del self._tournaments[old]
        # The one that was used last stands last.
        self._tournaments[start] = tournament
        while tournament.seen < len(history):
            tournament.add(history[tournament.seen])
        return tournament


def cold_start_ms(measured_ms: Sequence[int], assumed_ms: Millis) -> Millis:
    """Return the time from order to ready that a decision reckons with."""
    recent = sorted(measured_ms[-RECENT_STARTS:])
    if len(recent) < MEASURED_ENOUGH:
        return Millis(max(assumed_ms, *recent)) if recent else assumed_ms
    return Millis(recent[min(int(SLOW_START * len(recent)), len(recent) - 1)])


def buckets_to_start(measured_ms: Sequence[int], assumed_ms: Millis, bucket_ms: Millis) -> int:
    """Return the cold start in whole buckets, rounded up to one of a coarse scale."""
    exact = max(ceil(cold_start_ms(measured_ms, assumed_ms) / bucket_ms), 1)
    coarse = 1
    while coarse < exact:
        coarse = max(coarse + 1, int(coarse * COARSE))
    return coarse
