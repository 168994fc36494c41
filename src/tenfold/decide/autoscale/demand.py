"""What a service is asked for: slots in use at once, from tokens, bucket by bucket.

Prompt tokens are known on arrival. Answers are known when they end, so their mean is that of
recent answers and of what those have made that still run.
"""

from math import exp

from tenfold.model.service.autoscale import AutoscalePolicy
from tenfold.model.service.load import LoadBucket
from tenfold.model.units import SECOND, Millis
from tenfold.physics.serving.replica_queue import Service

ANSWER_S = 900.0
"""Half-life of the mean answer."""
RECENT_S = 30.0
"""Half-life of the mean answer with which the past is judged."""
RECENT_ANSWERS = 3.0
"""Usual answers that are counted among the recent ones."""
ANSWER_TOKENS = 200.0
"""Assumed mean answer, until some have ended."""
ASSUMED_ANSWERS = 1.0
"""Answers that the assumed one counts for. With fewer, what the first requests have made before any
of them has ended would be taken for the length of a fraction of an answer."""
LEVEL_S = (60.0, 300.0)
"""Windows over which a level is taken."""
BURST_S = (30.0, 120.0)
"""Windows over which slots are required."""


class Demand:
    """Load of the closed buckets."""

    def __init__(self, policy: AutoscalePolicy, bucket_ms: Millis) -> None:
        self._rates = policy.rates
        self._objective_s = policy.ttft_objective_s
        self._latency_s = policy.latency_objective_s
        self.step_s = bucket_ms / SECOND
        self._keep = 0.5 ** (self.step_s / ANSWER_S)
        self._answers = self._answer_tokens = 0.0
        self._input_tokens = self._arrived = 0.0
        self._recent_keep = 0.5 ** (self.step_s / RECENT_S)
        self._recent_answers = self._recent_tokens = 0.0
        self._deviations, self._squares = 0.0, 1e-9
        self._levels = [max(round(one / self.step_s), 1) for one in LEVEL_S]
        self._bursts = [max(round(one / self.step_s), 1) for one in BURST_S]
        self._running = self._made = 0.0
        self._work = [0.0]
        self._requests = [0]
        self._at_once = 0.0
        self.usual = Service(1.0, self._wait_s(0, 0), 2.0)
        """How long requests take, as a forecast assumes."""
        self.recent = self.usual
        """How long the requests of this moment took."""
        self.arrived = 0
        self.levels = [0.0] * len(LEVEL_S)
        """Slots in use in the mean of each window."""
        self.rates = [0.0] * len(LEVEL_S)
        """Requests per second, likewise."""
        self.required = 0.0
        """Slots with which the requests of the recent buckets would have met the objective."""

    def add(self, bucket: LoadBucket) -> None:
        """Add a closed bucket."""
        self._means(bucket)
        tokens = self._mean_answer() * bucket.arrived
        work = self._rates.slot_s(bucket.input_tokens, tokens)
        self._work.append(self._work[-1] + work)
        self._requests.append(self._requests[-1] + bucket.arrived)
        self.arrived = bucket.arrived
        step_s, service_s = self.step_s, self.usual.service_s
        kept = exp(-step_s / service_s)
        self._at_once = self._at_once * kept + work / step_s * (1 - kept)
        seen = len(self._work) - 1
        for at, many in enumerate(self._levels):
            taken = min(many, seen)
            self.levels[at] = (self._work[-1] - self._work[-1 - taken]) / (taken * step_s)
            self.rates[at] = (self._requests[-1] - self._requests[-1 - taken]) / (taken * step_s)
        self.required = self._at_once * service_s / (service_s + self.usual.wait_s)
        for many in self._bursts:
            taken = min(many, seen)
            length = max(taken * step_s, service_s)
            recent = self._work[-1] - self._work[-1 - taken]
            self.required = max(self.required, recent / (length + self.usual.wait_s))

    @property
    def patience(self) -> float:
        """Return how many requests may wait for each that is served."""
        return self.usual.wait_s / self.usual.service_s

    def arrivals(self, ago: int) -> tuple[int, int]:
        """Return the requests of the bucket this many buckets ago, and those since."""
        at = max(len(self._requests) - 1 - ago, 0)
        before = self._requests[max(at - 1, 0)]
        return self._requests[at] - before, self._requests[-1] - self._requests[at]

    def _means(self, bucket: LoadBucket) -> None:
        keep, tokens = self._keep, bucket.output_tokens
        self._answers = self._answers * keep + bucket.finished
        self._answer_tokens = self._answer_tokens * keep + tokens
        self._arrived = self._arrived * keep + bucket.arrived
        self._input_tokens = self._input_tokens * keep + bucket.input_tokens
        # Answers that still run are longer than those that have ended already. What they made so
        # far is added when it is made, and taken off when they end and count in full.
        running = self._running * keep + bucket.arrived - bucket.finished
        self._running = max(running, 0.0)
        made = self._running * min(
            self._mean_answer() / 2, self._elapsed() * self._rates.decode_tokens_per_s
        )
        self._answer_tokens = max(self._answer_tokens + made - self._made, 0.0)
        self._made = made
        usual = self._mean_answer()
        self._recent_answers = self._recent_answers * self._recent_keep + bucket.finished
        self._recent_tokens = self._recent_tokens * self._recent_keep + tokens
        recent = (self._recent_tokens + usual * RECENT_ANSWERS) / (
            self._recent_answers + RECENT_ANSWERS
        )
        if bucket.finished:
            # The variance of sums, for each request: only sums are known.
            off = tokens - usual * bucket.finished
            self._deviations = self._deviations * keep + off * off / bucket.finished
            self._squares = self._squares * keep + usual * usual
        variability = 1 + min(self._deviations / self._squares, 9.0)
        prompt = self._input_tokens / self._arrived if self._arrived > 1e-6 else 0.0
        wait_s = self._wait_s(prompt, usual)
        self.usual = Service(max(self._rates.slot_s(prompt, usual), 1e-3), wait_s, variability)
        self.recent = Service(max(self._rates.slot_s(prompt, recent), 1e-3), wait_s, variability)

    def _wait_s(self, prompt: float, answer: float) -> float:
        """Return how long a request with these tokens may wait; the strictest objective decides."""
        objective_s = self._objective_s
        wait_s = objective_s - self._rates.slot_s(prompt, 0)
        if self._latency_s is not None:
            wait_s = min(wait_s, self._latency_s - self._rates.slot_s(prompt, answer))
            objective_s = min(objective_s, self._latency_s)
        return max(wait_s, 0.1 * objective_s)

    def _elapsed(self) -> float:
        return len(self._work) * self.step_s

    def _mean_answer(self) -> float:
        # The assumed answers fade as others end.
        return (self._answer_tokens + ANSWER_TOKENS * ASSUMED_ANSWERS) / (
            self._answers + ASSUMED_ANSWERS
        )
