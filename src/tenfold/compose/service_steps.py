"""The steps of one service with the autoscaler in use; the memory between them can be lost."""

from tenfold.decide.autoscale.autoscale import Memory, autoscale
from tenfold.decide.serve.step import step
from tenfold.model.service.autoscale import AutoscalePolicy, ScalingDecision
from tenfold.model.service.load import ServiceLoad
from tenfold.model.service.state import ServiceState
from tenfold.model.service.step import ServiceSeen, ServiceStep
from tenfold.model.units import Millis


class Controller:
    """Makes the steps of one service."""

    def __init__(self) -> None:
        self._memory: Memory | None = None

    def step(self, state: ServiceState, seen: ServiceSeen, now_ms: Millis) -> ServiceStep:
        """Return what to record and to order now."""
        return step(state, seen, now_ms, self._autoscale)

    def _autoscale(
        self, load: ServiceLoad, now_ms: Millis, policy: AutoscalePolicy
    ) -> ScalingDecision:
        decision, self._memory = autoscale(load, self._memory, now_ms, policy)
        return decision
