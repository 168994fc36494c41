"""Run candidate settings beside the service, on the same traffic, and use the cheapest that would
have met the objective.

Each closed bucket moves every candidate on by one step of a fluid model. So a replay of the recent
traffic is always at hand, and the work per bucket is bounded.
"""

from math import ceil, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tenfold.decide.autoscale.candidates import NOTHING, QUEUE, RISKS, Candidates, candidates
from tenfold.decide.autoscale.demand import LEVEL_S, Demand
from tenfold.decide.autoscale.growth import PHASES, Growth
from tenfold.decide.autoscale.idle import Idle
from tenfold.decide.autoscale.scores import MEMORY_S, Scores
from tenfold.model.service.autoscale import AutoscalePolicy
from tenfold.model.service.load import LoadBucket
from tenfold.model.units import DAY, SECOND, Millis
from tenfold.physics.serving.replica_queue import missed_share, served, slots_for

Floats = NDArray[np.float64]

RATE_S = 86_400.0
"""Half-life of the usual rate of requests."""
CHOOSE_S = 600.0
"""Time between two choices."""
EARLY_S, EARLY_MISSES = 60.0, 5
"""Time after which there is another choice already, if more requests missed since the last one than
may miss until the next, and a few more."""
SETTLE_S = 300.0
"""Time at the start of the history that is not judged: there were replicas before it."""
BEGIN_S = 120.0
"""Time at the start of the history from which nothing is learned about growth: where the record
begins, load seems to rise from nothing."""
SIGMAS = 2.0
"""Spread within a bucket for which slots are kept."""
EULER = 0.5772
"""Sum of 1/n up to a number, less its logarithm: the longest of so many exponential times, over
their mean, is that sum."""
LAG_MOST = 60
"""Buckets after which requests are judged at the latest."""


class View(NamedTuple):
    """What the candidate that scales the service sees and wants."""

    target: int
    need: int
    """Replicas needed now; `target` is more while scale-in is held."""
    forecast_need: int
    """Replicas needed for the forecast alone."""
    floor: int
    is_fixed: bool
    is_idle: bool
    level: float
    """Busy slots now."""
    peak: float
    """Busy slots expected at most within the horizon."""
    horizon_ms: int
    hold_ms: int


class Tournament:
    """Candidates on the traffic of one service, up to a bucket."""

    def __init__(
        self, policy: AutoscalePolicy, bucket_ms: Millis, first_bucket: int, start: int
    ) -> None:
        """Begin before `first_bucket`; replicas are ready `start` buckets after their order."""
        self._policy = policy
        self._bucket_ms = bucket_ms
        self._first_bucket = first_bucket
        self._start = start
        self._step_s = step_s = bucket_ms / SECOND
        self._horizon = start + 2
        self._keep = 0.5 ** (step_s / MEMORY_S)
        self._rate_keep = 0.5 ** (step_s / RATE_S)
        self.demand = Demand(policy, bucket_ms)
        self.idle = Idle(start, self._keep)
        self._growth = [Growth(self._keep) for _ in LEVEL_S]
        self._past: list[tuple[float, ...]] = []
        self._required: list[float] = []
        self._rate = self._rate_weight = 0.0
        self._settles = max(ceil(SETTLE_S / step_s), 2 * self._horizon)
        self._begins = ceil(BEGIN_S / step_s)
        self._chooses = max(round(CHOOSE_S / step_s), 1)
        self.seen = 0
        """Buckets."""
        every = candidates(len(LEVEL_S), policy.replicas_min, policy.replicas_max, step_s)
        self.candidates: Candidates = every
        follows = every.risk < QUEUE
        self._is_fixed = every.risk == NOTHING
        self._early = max(round(EARLY_S / step_s), 1)
        self._since = self._missed_since = 0
        # Candidates with the same window and risk share a forecast; the last one is 0.
        self._forecast = np.where(
            follows, every.window * len(RISKS) + every.risk, len(LEVEL_S) * len(RISKS)
        )
        self._risks = np.array(RISKS)
        self.peaks = np.zeros(len(LEVEL_S) * len(RISKS) + 1)
        """Slots that are required within a cold start, by forecast."""
        self.needs = np.zeros_like(self.peaks)
        """Replicas that each forecast needs; the last one needs none."""
        self.need: Floats = every.floor.copy()
        """Replicas that each candidate needs, whatever it held before."""
        self.target: Floats = every.floor.copy()
        """Replicas that each candidate wants."""
        # What the service would have with each, without and with those that drain.
        self._ordered = self._paid = self.target
        self._below = np.zeros(len(follows))
        self._peak = np.zeros(len(follows))
        self._orders = np.repeat(self.target[None, :], start, axis=0)
        self._slots = self.target * policy.rates.slots
        self._present = np.zeros(len(follows))
        self._scores = Scores(policy, every, step_s)
        self.chosen = self._first()
        """The candidate that scales the service."""

    @property
    def is_settling(self) -> bool:
        """Whether the history is too short to scale in by."""
        return self.seen < self._settles

    def add(self, bucket: LoadBucket) -> None:
        """Move every candidate on by one closed bucket."""
        phase = self._phase(self.seen)
        self.demand.add(bucket)
        self.idle.add(bucket.arrived)
        self._serve(bucket)
        self._learn()
        self.seen += 1
        self._order(phase)
        if not self.is_settling and self._is_due(bucket):
            self._since = self._missed_since = 0
            self.chosen = self._scores.best(self.chosen, self._rate / self._rate_weight)

    @property
    def was_called(self) -> bool:
        """Whether there was any request."""
        return self._rate > 0

    @property
    def can_wait(self) -> bool:
        """Whether requests meet the objective if they wait for a cold start."""
        return self._horizon * self._step_s <= self.demand.usual.wait_s

    @property
    def busy_replicas(self) -> int:
        """Return the replicas that the recent load fills: with fewer, a queue only grows."""
        return ceil(self.demand.levels[0] / self._policy.rates.slots - 0.02)

    def view(self) -> View:
        """Return what the chosen candidate sees and wants."""
        at, every = self.chosen, self.candidates
        forecast = self._forecast[at]
        return View(
            target=int(self.target[at]),
            need=int(self.need[at]),
            forecast_need=int(self.needs[forecast]),
            floor=int(every.floor[at]),
            is_fixed=bool(self._is_fixed[at]),
            is_idle=not any(self.demand.levels),
            level=self.demand.levels[every.window[at]],
            peak=float(self.peaks[forecast]),
            horizon_ms=self._horizon * self._bucket_ms,
            hold_ms=int(every.hold[at]) * self._bucket_ms,
        )

    def _is_due(self, bucket: LoadBucket) -> bool:
        """Return whether to choose now: from time to time, and soon if too many requests miss."""
        self._since += 1
        self._missed_since += bucket.missed
        if self.seen % self._chooses == 0:
            return True
        usual = self._rate / self._rate_weight * CHOOSE_S
        allowed = (1 - self._policy.attainment) * usual + EARLY_MISSES
        return self._since >= self._early and self._missed_since > allowed

    def _phase(self, seen: int) -> int:
        of_day = (self._first_bucket + seen) * self._bucket_ms % DAY
        return of_day * PHASES // DAY

    def _serve(self, bucket: LoadBucket) -> None:
        """Serve a bucket with what each candidate has ready."""
        demand = self.demand
        # A replica is ready if it was wanted ever since it was ordered a cold start ago.
        ready = self._orders.min(axis=0)
        self._slots = slots = ready * self._policy.rates.slots
        before, arrived = self._present, bucket.arrived
        self._present = served(before, arrived, slots, demand.recent, self._step_s)
        if self.is_settling:
            return
        self._scores.pay(self._paid)
        # Who arrived this long ago is late if the queue still reaches back to then.
        lag = min(int(demand.recent.wait_s / self._step_s), LAG_MOST)
        arrived, since = demand.arrivals(lag)
        if not arrived:
            return
        middle = self._present if lag else (before + self._present) / 2
        late = missed_share(middle, since, slots, demand.recent, lag * self._step_s)
        self._scores.judge(late, arrived, self.chosen, bucket.missed)

    def _learn(self) -> None:
        """Compare what is required now with the level a horizon ago."""
        demand = self.demand
        self._past.append(tuple(demand.levels))
        self._required.append(demand.required)
        if len(self._past) > self._horizon:
            then = self._past.pop(0)
            self._required.pop(0)
            if self.seen < self._horizon + self._begins:
                return
            peak = max(self._required)
            phase = self._phase(self.seen - self._horizon)
            for growth, level in zip(self._growth, then, strict=True):
                growth.observe(level, peak, phase)

    def _order(self, phase: int) -> None:
        """Let each candidate decide."""
        self.needs = self._forecasts(phase)
        need = self.needs[self._forecast]
        waits = self._present > 0.5 + self._slots * (1 + 0.5 * self.demand.patience)
        waits &= ~self._is_fixed
        if waits.any():
            need = np.where(waits, np.maximum(need, self.drained(self._present, self._slots)), need)
        policy = self._policy
        self.need = np.minimum(np.maximum(need, self.candidates.floor), policy.replicas_max)
        self._hold()
        self._pay_for()
        if self.is_settling:
            self._orders[:] = self._ordered
        else:
            self._orders[self.seen % self._start] = self._ordered

    def _pay_for(self) -> None:
        """Note what the service would have ordered, and kept, with each candidate.

        A decision never goes below what the load fills, nor below what ends a queue, whichever
        candidate decides; and a replica that is drained stays until its last request has ended.
        """
        waits = self._present > 0.5 + self._slots * (1 + 0.5 * self.demand.patience)
        least = np.where(waits, self.drained(self._present, self._slots), self.busy_replicas)
        before = self._ordered
        self._ordered = np.minimum(np.maximum(self.target, least), self._policy.replicas_max)
        drained = np.maximum(before - self._ordered, 0)
        self._paid = self._ordered + drained * (self._drain_s() / self._step_s)

    def _drain_s(self) -> float:
        """Return how long the last request of a full replica takes, for exponential lengths."""
        slots = self._policy.rates.slots
        return self.demand.usual.service_s * (log(slots) + (EULER if slots > 1 else 1.0))

    def _forecasts(self, phase: int) -> Floats:
        """Return the replicas that each forecast needs; the last entry is 0."""
        demand, policy = self.demand, self._policy
        self._rate = self._rate * self._rate_keep + demand.arrived / self._step_s
        self._rate_weight = self._rate_weight * self._rate_keep + 1
        if not self.was_called:
            # Nothing is known of its requests, so the least is enough until the first one.
            return np.zeros_like(self.needs)
        usual = self._rate / self._rate_weight
        many = len(RISKS)
        for at, growth in enumerate(self._growth):
            rate = max(demand.rates[at], 0.05 * usual, 1e-9)
            chance = np.clip(self._risks * (usual / rate), 0.0002, 0.6)
            peaks = growth.peaks(demand.levels[at], 1 - chance, phase)
            self.peaks[at * many : (at + 1) * many] = np.maximum(peaks, 0)
        slots = slots_for(self.peaks, demand.usual, SIGMAS)
        need = np.ceil(slots / policy.rates.slots - 0.02)
        if self._may_be_zero():
            expected = self.idle.requests_per_bucket() / self._step_s
            need = np.where(
                expected > np.append(np.tile(self._risks, len(LEVEL_S)), 0) * usual, 1, 0
            )
        else:
            need = np.maximum(need, 1)
        need[-1] = 0
        return need

    def _may_be_zero(self) -> bool:
        policy = self._policy
        idle_ms = self.idle.buckets * self._bucket_ms
        if policy.zero_after_ms is None and self.can_wait:
            # Nothing is lost while a replica starts.
            return policy.replicas_min == 0 and idle_ms > 0
        return policy.replicas_min == 0 and idle_ms >= policy.idle_least_ms

    def drained(self, present: Floats, slots: Floats) -> Floats:
        """Return replicas that serve the load, and what will wait once new ones are ready."""
        demand = self.demand
        level, service_s = max(demand.levels), demand.usual.service_s
        start_s = self._start * self._step_s
        left = present - slots - (slots - level) * (start_s / service_s)
        within_s = max(demand.usual.wait_s, start_s / 2, 3 * self._step_s)
        wanted = level + np.maximum(left, 0) * (service_s / within_s)
        return np.where(left > 0, np.ceil(wanted / self._policy.rates.slots), 0)

    def _hold(self) -> None:
        """Scale out at once, and in when less was enough for as long as the candidate holds."""
        need, target = self.need, self.target
        is_less = need < target
        self._below = np.where(is_less, self._below + 1, 0)
        self._peak = np.where(is_less, np.maximum(self._peak, need), 0)
        falls = is_less & (self._below >= self.candidates.hold)
        self.target = np.where(falls, self._peak, np.maximum(need, target))
        self._below[falls] = 0
        self._peak[falls] = 0

    def _first(self) -> int:
        """Return the candidate that runs before anything was seen."""
        every, policy = self.candidates, self._policy
        budget = (1 - policy.attainment) / policy.caution
        risk = next((at for at, one in enumerate(RISKS) if one <= budget), len(RISKS) - 1)
        fits = (every.risk == risk) & (every.window == 0) & (every.floor == every.floor[0])
        return int(np.flatnonzero(fits)[-1])
