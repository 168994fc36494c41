"""What the baselines share: a decision for a target, and means over a window of samples."""

from collections import deque

from tenfold.model.reason import Reason
from tenfold.model.service.autoscale import AutoscalePolicy, ScalingDecision, steps_to
from tenfold.model.service.load import ServiceLoad


def towards(target: int, load: ServiceLoad, policy: AutoscalePolicy, name: str) -> ScalingDecision:
    """Return the decision that leads to a target within the limits of the policy."""
    chosen = within(target, policy)
    start, cancel, drain = steps_to(chosen, load.replicas.ready, load.replicas.starting)
    reason = Reason("baseline-target", {"policy": name, "replicas": chosen})
    return ScalingDecision(target=chosen, start=start, cancel=cancel, drain=drain, reason=reason)


def within(target: int, policy: AutoscalePolicy) -> int:
    """Return a number of replicas within the limits of the policy."""
    return min(max(target, policy.replicas_min), policy.replicas_max)


class Samples:
    """The values of the last `window_ms`, one for each decision."""

    def __init__(self, window_ms: int) -> None:
        self._window_ms = window_ms
        self._values: deque[tuple[int, float]] = deque()
        self._sum = 0.0

    def add(self, now_ms: int, value: float) -> None:
        """Add a value, and drop those that are older than the window."""
        self._values.append((now_ms, value))
        self._sum += value
        while self._values[0][0] <= now_ms - self._window_ms:
            self._sum -= self._values.popleft()[1]

    def mean(self) -> float:
        """Return the mean of the window."""
        # Sums of counts: exact.
        return self._sum / len(self._values)

    def largest(self) -> float:
        """Return the largest value of the window."""
        return max(value for _, value in self._values)


class MeanRequest:
    """Mean tokens of all requests seen so far, as the operator of the service measured them."""

    def __init__(self) -> None:
        self._buckets = 0
        self.arrived = self.input_tokens = self.finished = self.output_tokens = 0

    def add(self, load: ServiceLoad) -> None:
        """Count the buckets that have closed since the last call."""
        history = load.history
        for at in range(self._buckets, len(history)):
            bucket = history[at]
            self.arrived += bucket.arrived
            self.input_tokens += bucket.input_tokens
            self.finished += bucket.finished
            self.output_tokens += bucket.output_tokens
        self._buckets = len(history)

    def slot_s(self, policy: AutoscalePolicy) -> float | None:
        """Return the seconds for which a request occupies its slot; None until one finished."""
        if not self.finished or not self.arrived:
            return None
        return policy.rates.slot_s(
            self.input_tokens / self.arrived, self.output_tokens / self.finished
        )
