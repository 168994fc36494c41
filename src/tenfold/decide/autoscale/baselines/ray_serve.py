"""Ray Serve: ongoing requests over a look-back of 30 s, up after 30 s and down after 600 s.

Defaults of `AutoscalingConfig` in Ray 2.60: target 2 ongoing requests of a replica, mean over the
look-back. Its control loop runs ten times a second on metrics that are pushed less often, and
measures its delays by the clock; one decision a second differs by less than a second.
"""

from math import ceil

from msgspec import Struct

from tenfold.decide.autoscale.baselines.target import Samples, towards, within
from tenfold.model.service.autoscale import AutoscalePolicy, ScalingDecision
from tenfold.model.service.load import ServiceLoad
from tenfold.model.units import SECOND, Millis


class RayServeMemory:
    """The look-back, the target, and since when another one is wanted."""

    def __init__(self, config: "RayServe", target: int) -> None:
        self.ongoing = Samples(config.look_back_ms)
        self.target = target
        self.direction = 0
        self.since_ms: int | None = None


class RayServe(Struct, frozen=True, kw_only=True):
    """Ray Serve's defaults."""

    target_ongoing: float = 2.0
    look_back_ms: int = 30 * SECOND
    up_delay_ms: int = 30 * SECOND
    down_delay_ms: int = 600 * SECOND
    tick_ms: int = SECOND

    def __call__(
        self,
        load: ServiceLoad,
        memory: RayServeMemory | None,
        now_ms: Millis,
        policy: AutoscalePolicy,
    ) -> tuple[ScalingDecision, RayServeMemory]:
        """Return how many replicas Ray Serve would want."""
        memory = memory or RayServeMemory(self, load.replicas.wanted)
        memory.ongoing.add(now_ms, load.in_flight + load.queued)
        wanted = self.next_target(memory, load.replicas.ready, memory.ongoing.mean(), now_ms)
        memory.target = within(wanted, policy)
        return towards(memory.target, load, policy, "ray-serve"), memory

    def next_target(self, memory: RayServeMemory, running: int, ongoing: float, now_ms: int) -> int:
        """Return the target, before limits, that follows the one in the memory."""
        if running == 0 and ongoing > 0:
            return max(1, memory.target)
        desired = memory.target if running == 0 else ceil(ongoing / self.target_ongoing)
        direction = (desired > memory.target) - (desired < memory.target)
        if direction != memory.direction or direction == 0:
            memory.direction, memory.since_ms = direction, None
        if direction == 0:
            return memory.target
        if memory.since_ms is None:
            memory.since_ms = now_ms
        delay_ms = self.up_delay_ms if direction > 0 else self.down_delay_ms
        if direction < 0 and memory.target != 1:
            # Zero is reached only from one.
            desired = max(desired, 1)
        if now_ms - memory.since_ms < delay_ms:
            return memory.target
        memory.direction, memory.since_ms = 0, None
        return desired
