"""A fixed number of replicas."""

from msgspec import Struct

from tenfold.decide.autoscale.baselines.target import towards
from tenfold.model.service.autoscale import AutoscalePolicy, ScalingDecision
from tenfold.model.service.load import ServiceLoad
from tenfold.model.units import MINUTE, Millis


class NoMemory:
    """Nothing to remember."""


class Static(Struct, frozen=True, kw_only=True):
    """Always as many replicas; one that failed is replaced."""

    replicas: int
    tick_ms: int = MINUTE

    def __call__(
        self,
        load: ServiceLoad,
        memory: NoMemory | None,
        now_ms: Millis,
        policy: AutoscalePolicy,
    ) -> tuple[ScalingDecision, NoMemory]:
        """Return the fixed number."""
        del now_ms
        return towards(self.replicas, load, policy, "static"), memory or NoMemory()
