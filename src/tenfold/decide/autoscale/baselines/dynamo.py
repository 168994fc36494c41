"""Like NVIDIA Dynamo's planner: every 180 s, enough replicas for the load forecast for the next.

Defaults of `planner/config/defaults.py`: throughput scaling each 180 s with an ARIMA forecast of
requests and of their lengths, load scaling off. The forecast here is ARIMA(1,1,0), fitted to the
last 50 intervals; Dynamo searches for an order. Nothing is decided while a replica starts. What a
replica can do comes from its rates, where Dynamo reads a profile of the engine.
"""

from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from math import ceil

from msgspec import Struct

from tenfold.decide.autoscale.baselines.target import towards
from tenfold.model.service.autoscale import AutoscalePolicy, ScalingDecision
from tenfold.model.service.load import ServiceLoad
from tenfold.model.units import SECOND, Millis


class DynamoMemory:
    """The intervals so far, and the target."""

    def __init__(self, config: "Dynamo", target: int) -> None:
        self.target = target
        self.requests: deque[float] = deque(maxlen=config.intervals)
        self.input_tokens: deque[float] = deque(maxlen=config.intervals)
        self.output_tokens: deque[float] = deque(maxlen=config.intervals)


class Dynamo(Struct, frozen=True, kw_only=True):
    """The planner's defaults."""

    utilisation: float = 1.0
    intervals: int = 50
    intervals_min: int = 5
    """Before that the last interval is the forecast."""
    tick_ms: int = 180 * SECOND

    def __call__(
        self,
        load: ServiceLoad,
        memory: DynamoMemory | None,
        now_ms: Millis,
        policy: AutoscalePolicy,
    ) -> tuple[ScalingDecision, DynamoMemory]:
        """Return how many replicas the planner would want."""
        del now_ms
        memory = memory or DynamoMemory(self, load.replicas.wanted)
        self._observe(memory, load)
        if not load.replicas.starting and memory.output_tokens:
            per_s = self._forecast(memory.requests) * SECOND / self.tick_ms
            work = policy.rates.slot_s(
                self._forecast(memory.input_tokens), self._forecast(memory.output_tokens)
            )
            # At least one: the planner does not scale to zero.
            memory.target = max(ceil(per_s * work / (self.utilisation * policy.rates.slots)), 1)
        return towards(memory.target, load, policy, "dynamo"), memory

    def _observe(self, memory: DynamoMemory, load: ServiceLoad) -> None:
        recent = load.history[-max(self.tick_ms // load.bucket_ms, 1) :]
        arrived = sum(one.arrived for one in recent)
        finished = sum(one.finished for one in recent)
        memory.requests.append(arrived)
        if arrived:
            memory.input_tokens.append(sum(one.input_tokens for one in recent) / arrived)
        if finished:
            memory.output_tokens.append(sum(one.output_tokens for one in recent) / finished)

    def _forecast(self, values: Sequence[float]) -> float:
        """Return the next value by ARIMA(1,1,0), fitted by least squares."""
        if not values:
            return 0.0
        if len(values) < self.intervals_min:
            return values[-1]
        steps = [after - before for before, after in pairwise(values)]
        past = sum(one * one for one in steps[:-1])
        shared = sum(before * after for before, after in pairwise(steps))
        weight = max(-0.95, min(0.95, shared / past)) if past else 0.0
        return max(values[-1] + weight * steps[-1], 0.0)
