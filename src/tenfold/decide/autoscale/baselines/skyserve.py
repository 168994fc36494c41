"""SkyServe: requests per second over 60 s, up after 300 s and down after 1,200 s.

Defaults of `sky/serve/constants.py`: a decision every 20 s (5 s at zero replicas), and a change
needs as many equal decisions in a row as its delay holds. The user sets the requests per second
of a replica; here they are a share of what the mean request so far allows.
"""

from math import ceil

from msgspec import Struct

from tenfold.decide.autoscale.baselines.target import MeanRequest, towards, within
from tenfold.model.service.autoscale import AutoscalePolicy, ScalingDecision
from tenfold.model.service.load import ServiceLoad
from tenfold.model.units import SECOND, Millis


class SkyServeMemory:
    """The target, decisions in a row, and what requests are like."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.ups = 0
        self.downs = 0
        self.requests = MeanRequest()


class SkyServe(Struct, frozen=True, kw_only=True):
    """SkyServe's defaults."""

    utilisation: float = 0.7
    window_ms: int = 60 * SECOND
    up_delay_ms: int = 300 * SECOND
    down_delay_ms: int = 1_200 * SECOND
    tick_ms: int = 20 * SECOND

    def __call__(
        self,
        load: ServiceLoad,
        memory: SkyServeMemory | None,
        now_ms: Millis,
        policy: AutoscalePolicy,
    ) -> tuple[ScalingDecision, SkyServeMemory]:
        """Return how many replicas SkyServe would want."""
        del now_ms
        memory = memory or SkyServeMemory(load.replicas.wanted)
        memory.requests.add(load)
        slot_s = memory.requests.slot_s(policy)
        if slot_s is not None:
            recent = load.history[-max(self.window_ms // load.bucket_ms, 1) :]
            arrived = sum(one.arrived for one in recent)
            per_s = arrived * SECOND / self.window_ms
            replica_per_s = self.utilisation * policy.rates.slots / slot_s
            self._follow(memory, within(ceil(per_s / replica_per_s), policy))
        elif memory.target == 0 and load.queued:
            memory.target = 1
        return towards(memory.target, load, policy, "skyserve"), memory

    def _follow(self, memory: SkyServeMemory, wanted: int) -> None:
        if memory.target == 0:
            memory.target = wanted
        memory.ups = memory.ups + 1 if wanted > memory.target else 0
        memory.downs = memory.downs + 1 if wanted < memory.target else 0
        if memory.ups >= self.up_delay_ms // self.tick_ms:
            memory.target, memory.ups = wanted, 0
        elif memory.downs >= self.down_delay_ms // self.tick_ms:
            memory.target, memory.downs = wanted, 0
