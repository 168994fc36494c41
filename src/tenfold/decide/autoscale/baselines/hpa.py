"""Kubernetes' horizontal pod autoscaler (HPA) on concurrency, as KEDA feeds it.

Defaults: a decision every 15 s, 10% tolerance, scale-in stabilised over 300 s, at most twice the
replicas or four more in 15 s, and with KEDA zero after a cooldown of 300 s. Its target has no
default for such a metric; 80% is that of `kubectl autoscale` for CPU.
"""

from math import ceil

from msgspec import Struct

from tenfold.decide.autoscale.baselines.target import Samples, towards, within
from tenfold.model.service.autoscale import AutoscalePolicy, ScalingDecision
from tenfold.model.service.load import ServiceLoad
from tenfold.model.units import SECOND, Millis


class HpaMemory:
    """Recent recommendations, and the last request."""

    def __init__(self, config: "Hpa", now_ms: int) -> None:
        self.wanted = Samples(config.down_stabilisation_ms)
        self.active_ms = now_ms


class Hpa(Struct, frozen=True, kw_only=True):
    """Kubernetes' defaults."""

    utilisation: float = 0.8
    tolerance: float = 0.1
    down_stabilisation_ms: int = 300 * SECOND
    up_factor: int = 2
    up_replicas: int = 4
    zero_cooldown_ms: int = 300 * SECOND
    tick_ms: int = 15 * SECOND

    def __call__(
        self,
        load: ServiceLoad,
        memory: HpaMemory | None,
        now_ms: Millis,
        policy: AutoscalePolicy,
    ) -> tuple[ScalingDecision, HpaMemory]:
        """Return how many replicas the HPA would want."""
        memory = memory or HpaMemory(self, now_ms)
        at_once = load.in_flight + load.queued
        if at_once:
            memory.active_ms = now_ms
        current = load.replicas.wanted
        if policy.replicas_min == 0:
            # KEDA switches between zero and one; the HPA never sees zero.
            if current == 0:
                return towards(int(at_once > 0), load, policy, "hpa"), memory
            if now_ms - memory.active_ms >= self.zero_cooldown_ms:
                return towards(0, load, policy, "hpa"), memory
        target = self.utilisation * policy.rates.slots
        need = max(ceil(at_once / target), 1)
        if abs(at_once / (target * max(current, 1)) - 1) <= self.tolerance:
            need = current
        need = within(need, policy)
        memory.wanted.add(now_ms, need)
        if need > current:
            need = min(need, max(current * self.up_factor, current + self.up_replicas))
        else:
            need = min(int(memory.wanted.largest()), current)
        return towards(need, load, policy, "hpa"), memory
