"""The autoscalers by name, each as one function from load to decision."""

from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol, TypeVar, get_args

from tenfold.decide.autoscale.autoscale import autoscale
from tenfold.decide.autoscale.baselines.dynamo import Dynamo
from tenfold.decide.autoscale.baselines.hpa import Hpa
from tenfold.decide.autoscale.baselines.kpa import Kpa
from tenfold.decide.autoscale.baselines.ray_serve import RayServe
from tenfold.decide.autoscale.baselines.skyserve import SkyServe
from tenfold.decide.autoscale.baselines.static import Static
from tenfold.model.service.autoscale import DECIDE_MS, AutoscalePolicy, ScalingDecision
from tenfold.model.service.load import ServiceLoad
from tenfold.model.units import Millis

AutoscalerName = Literal["tenfold", "kpa", "hpa", "ray-serve", "skyserve", "dynamo", "static"]
NAMES: tuple[AutoscalerName, ...] = get_args(AutoscalerName)

M = TypeVar("M")
Scaler = Callable[[ServiceLoad, M | None, Millis, AutoscalePolicy], tuple[ScalingDecision, M]]
Decide = Callable[[ServiceLoad, Millis], ScalingDecision]


class Baseline(Protocol[M]):
    """An autoscaler that says how often it decides."""

    @property
    def tick_ms(self) -> int:
        """Time between two decisions."""
        ...

    def __call__(
        self, load: ServiceLoad, memory: M | None, now_ms: Millis, policy: AutoscalePolicy
    ) -> tuple[ScalingDecision, M]:
        """Return a decision, and the memory for the next."""
        ...


class TickedAutoscaler(NamedTuple):
    """A decision function, and how often it is asked."""

    decide: Decide
    tick_ms: int


def by_name(name: AutoscalerName, policy: AutoscalePolicy) -> TickedAutoscaler:
    """Return the autoscaler of a name, with its defaults; `static` keeps the most replicas."""
    match name:
        case "tenfold":
            return TickedAutoscaler(remembering(autoscale, policy), DECIDE_MS)
        case "kpa":
            return ticked(Kpa(), policy)
        case "hpa":
            return ticked(Hpa(), policy)
        case "ray-serve":
            return ticked(RayServe(), policy)
        case "skyserve":
            return ticked(SkyServe(), policy)
        case "dynamo":
            return ticked(Dynamo(), policy)
        case "static":
            return ticked(Static(replicas=policy.replicas_max), policy)


def ticked(baseline: Baseline[M], policy: AutoscalePolicy) -> TickedAutoscaler:
    """Return a baseline with its own interval between decisions."""
    return TickedAutoscaler(remembering(baseline, policy), baseline.tick_ms)


def remembering(scaler: Scaler[M], policy: AutoscalePolicy) -> Decide:
    """Return a function of the load alone, which keeps the memory between its calls."""
    memory: M | None = None

    def decide(load: ServiceLoad, now_ms: Millis) -> ScalingDecision:
        nonlocal memory
        decision, memory = scaler(load, memory, now_ms, policy)
        return decision

    return decide
