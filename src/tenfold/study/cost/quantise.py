"""What serving a model in a lower precision saves, with its latency targets still met."""

from collections.abc import Sequence

from msgspec.structs import replace

from tenfold.decide.layout.serve import ServePlan, ServeRequest, ServeTarget, plan_serve
from tenfold.model.plan import Precision, ServiceDemand
from tenfold.model.reason import Misfit
from tenfold.model.units import usd_micros
from tenfold.report.figures import count
from tenfold.study.cost.recommend import Change, Recommendation, recommendation


def quantise(
    demand: ServiceDemand, request: ServeRequest, targets: Sequence[ServeTarget], hours: float
) -> Recommendation | None:
    """Return what fp8 saves over bf16 for a service, on the pools of a fleet."""
    before = _cheapest(demand, request, targets, "bf16")
    after = _cheapest(demand, request, targets, "fp8")
    if before is None or after is None:
        return None
    saved = usd_micros((before.usd_per_hour - after.usd_per_hour) * hours)
    return recommendation(
        Change(
            kind="quantise",
            do=f"serve {demand.model} in fp8 instead of bf16: {count(after.gpus, 'GPU')} instead "
            f"of {before.gpus}",
            simulated=f"both under {demand.qps:g} requests/s and the same latency targets; P99 "
            f"TTFT {after.ttft_s_p99:.2f} s instead of {before.ttft_s_p99:.2f} s",
            risk="answers change a little: compare them on your own evaluation first",
        ),
        saved,
        hours,
    )


def _cheapest(
    demand: ServiceDemand,
    request: ServeRequest,
    targets: Sequence[ServeTarget],
    precision: Precision,
) -> ServePlan | None:
    request_at = replace(request, service=replace(demand, precisions=(precision,)))
    answer = plan_serve(request_at, targets, keep=1)
    return None if isinstance(answer, Misfit) else answer.plans[0]
