"""What each candidate would have cost and missed, and which is the cheapest that met the objective.

The model of the queue is corrected by what really missed.
"""

import numpy as np
from numpy.typing import NDArray

from tenfold.decide.autoscale.candidates import QUEUE, RISKS, Candidates
from tenfold.model.service.autoscale import AutoscalePolicy

Floats = NDArray[np.float64]

MEMORY_S = 3 * 86_400.0
"""Half-life of what was seen."""
UNSEEN_S = 1_200.0
"""Traffic of this time counts as seen before anything was. In it, a candidate that follows the
load misses its risk, and one that does not misses `UNSEEN_FIXED`."""
UNSEEN_FIXED = 0.05
BURST_S = 30.0
"""Requests of this time are assumed to miss together."""
CLEARLY = 0.03
"""A candidate replaces one that meets the objective if it is cheaper by this share."""
NEARLY = 0.1
"""More misses, relative to the fewest, of candidates that are as good while none meets the
objective."""
EXPLAINED = 0.002
"""Requests that miss while the model expects fewer than this share do not miss for want of
replicas: their prompts are too long, or they fail."""
RATIO_MOST = 4.0
"""How far the model is corrected by what really missed."""
SPENT_MOST = 3.0
"""How far the allowed misses are lowered where more than these occurred."""


class Scores:
    """Costs and misses of candidates; what is older counts less."""

    def __init__(self, policy: AutoscalePolicy, every: Candidates, step_s: float) -> None:
        self._policy = policy
        self._keep = 0.5 ** (step_s / MEMORY_S)
        self._follows = every.risk < QUEUE
        self._unseen = np.append(RISKS, (UNSEEN_FIXED, UNSEEN_FIXED))[every.risk]
        self._cost = np.zeros(len(every.risk))
        self._missed = np.zeros(len(every.risk))
        self._requests = 0.0
        # Of the candidate that ran, and of the service.
        self._expected = self._actual = 0.0
        # While hardly a miss was expected.
        self._calm = self._calm_missed = 0.0

    def pay(self, replicas: Floats) -> None:
        """Add what each candidate has ordered for one bucket."""
        self._cost *= self._keep
        self._cost += replicas
        self._missed *= self._keep
        self._requests *= self._keep

    def judge(self, late: Floats, arrived: int, chosen: int, missed: int) -> None:
        """Add requests, with the share of them that each candidate misses."""
        self._missed += late * arrived
        self._requests += arrived
        expected, keep = float(late[chosen]), self._keep
        if expected < EXPLAINED:
            self._calm = self._calm * keep + arrived
            self._calm_missed = self._calm_missed * keep + missed
        self._expected = self._expected * keep + expected * arrived
        self._actual = self._actual * keep + missed

    def best(self, chosen: int, usual_rate: float) -> int:
        """Return the candidate that is to run, where `chosen` runs now."""
        budget = (1 - self._policy.attainment) / self._policy.caution
        unseen = max(usual_rate * UNSEEN_S, 1.0)
        elsewhere = self._calm_missed / (self._calm + unseen)
        allowed = max(budget - elsewhere, budget / 4)
        trust = unseen * (1 - self._policy.attainment)
        actual = max(self._actual - self._requests * elsewhere, 0)
        # What was overspent so far is saved; what was saved is no reason to overspend.
        spent = (actual + trust) / (allowed * self._requests + trust)
        allowed /= min(max(spent, 1.0), SPENT_MOST)
        ratio = (actual + trust) / (self._expected + trust)
        missed = self._missed * min(max(ratio, 1 / RATIO_MOST), RATIO_MOST)
        # Misses come in bursts, so a few of them are weak evidence.
        missed += np.sqrt(missed * max(usual_rate * BURST_S, 1.0))
        shares = (missed + self._unseen * unseen) / (self._requests + unseen)
        meets = shares <= allowed
        if not meets.any():
            # As good as can be, by following the load: more of it may come.
            shares = np.where(self._follows, shares, 1.0)
            fewest = float(shares.min())
            meets = self._follows & (shares <= fewest + min(NEARLY * fewest, allowed))
        cost = np.where(meets, self._cost, np.inf)
        best = int(np.argmin(cost))
        keeps = meets[chosen] and cost[best] >= (1 - CLEARLY) * cost[chosen]
        return chosen if keeps else best
