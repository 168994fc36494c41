"""Knative's pod autoscaler (KPA): concurrency over 60 s, and over 6 s while it panics.

From `config-autoscaler`: target 70% of the container concurrency, stable window 60 s, panic
window 10% of it, panic threshold 200%, at most 1000 times more and half as many replicas as are
ready, a decision every 2 s, and 30 s of grace before zero. A new instance starts in panic mode.
"""

from math import ceil, floor

from msgspec import Struct

from tenfold.decide.autoscale.baselines.target import Samples, towards
from tenfold.model.service.autoscale import AutoscalePolicy, ScalingDecision
from tenfold.model.service.load import ServiceLoad
from tenfold.model.units import SECOND, Millis


class KpaMemory:
    """Both windows, and the panic mode."""

    def __init__(self, config: "Kpa") -> None:
        self.stable = Samples(config.stable_ms)
        self.panic = Samples(config.panic_ms)
        self.panics_from: int | None = None
        self.panic_most = 0
        self.idle_from: int | None = None


class Kpa(Struct, frozen=True, kw_only=True):
    """Knative's defaults."""

    utilisation: float = 0.7
    stable_ms: int = 60 * SECOND
    panic_ms: int = 6 * SECOND
    panic_threshold: float = 2.0
    up_rate_max: float = 1000.0
    down_rate_max: float = 2.0
    zero_grace_ms: int = 30 * SECOND
    tick_ms: int = 2 * SECOND

    def __call__(
        self,
        load: ServiceLoad,
        memory: KpaMemory | None,
        now_ms: Millis,
        policy: AutoscalePolicy,
    ) -> tuple[ScalingDecision, KpaMemory]:
        """Return how many replicas Knative would want."""
        if memory is None:
            memory = KpaMemory(self)
            if load.replicas.ready > 1:
                memory.panics_from, memory.panic_most = now_ms, load.replicas.ready
        at_once = load.in_flight + load.queued
        memory.stable.add(now_ms, at_once)
        memory.panic.add(now_ms, at_once)
        wanted = self._wanted(memory, load.replicas.ready, now_ms, policy)
        if wanted > 0:
            memory.idle_from = None
        else:
            if memory.idle_from is None:
                memory.idle_from = now_ms
            wanted = int(now_ms - memory.idle_from < self.zero_grace_ms)
        return towards(wanted, load, policy, "kpa"), memory

    def _wanted(
        self, memory: KpaMemory, ready: int, now_ms: Millis, policy: AutoscalePolicy
    ) -> int:
        target = self.utilisation * policy.rates.slots
        serving = max(ready, 1)
        most = ceil(self.up_rate_max * serving)
        least = floor(serving / self.down_rate_max)
        panic_need = ceil(memory.panic.mean() / target)
        wanted = min(max(ceil(memory.stable.mean() / target), least), most)
        if panic_need / serving >= self.panic_threshold:
            memory.panics_from = now_ms
        elif memory.panics_from is not None and memory.panics_from + self.stable_ms < now_ms:
            memory.panics_from, memory.panic_most = None, 0
        if memory.panics_from is None:
            return wanted
        # No replica is removed while it panics.
        wanted = max(wanted, min(max(panic_need, least), most))
        memory.panic_most = max(memory.panic_most, wanted)
        return memory.panic_most
