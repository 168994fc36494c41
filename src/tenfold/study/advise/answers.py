"""The four questions of scaling, answered from a spec where it says enough.

Bound by what, in real time or not, how large a model, how much bandwidth: what is
given outright always wins over what is worked out.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from tenfold.compose.fleet import OpenFleet
from tenfold.decide.layout.scaling import ScalePoint
from tenfold.decide.layout.serve import ServeAnswer, ServeRequest, plan_serve
from tenfold.model.plan import ServiceDemand
from tenfold.model.reason import Misfit
from tenfold.study.ceiling.capacity_summary import gpus_per_replica
from tenfold.study.ceiling.design import Design
from tenfold.study.ceiling.upgrade import TRAFFIC
from tenfold.study.plan.target import serve_targets
from tenfold.study.plan.train import model_shape

Kind = Literal["training", "inference"]
BoundBy = Literal["cpu", "gpu", "memory", "network"]
ModelSize = Literal["gpu", "node", "larger"]
"""What the smallest plan fills: one GPU, one node, or more than a node."""
Bandwidth = Literal["thin", "ordinary", "fast"]
"""Between the GPUs at work: a line between sites, an ordinary network, an RDMA fabric."""
REAL_TIME_S = 1.0
THIN_BYTES_PER_S = 10e9 / 8
FAST_BYTES_PER_S_PER_GPU = 200e9 / 8
NETWORK_BOUND_SHARE = 0.3
SPREAD_SHARE = 0.2
"""GPUs outside the largest site from which on a fleet counts as spread over sites."""


Positive = Annotated[float, Meta(gt=0, le=1e9)]
Tokens = Annotated[int, Meta(gt=0, le=10**9)]


class AdviseQuestion(Struct, frozen=True, kw_only=True):
    """A job or service to advise on; what is None is worked out, or left open."""

    kind: Annotated[Kind, Meta(description="What the work is.")] = "training"
    model: Annotated[str | None, Meta(description="A model preset, or its config.json.")] = None
    qps: Annotated[Positive, Meta(description="Requests a second.")] | None = None
    ttft_s: Annotated[Positive, Meta(description="Wait for the first token.")] = 1.0
    tpot_s: Annotated[Positive, Meta(description="Wait for each token.")] = 0.1
    input_tokens: Annotated[Tokens, Meta(description="Of a request.")] = 1024
    output_tokens: Annotated[Tokens, Meta(description="Of an answer.")] = 256
    dataset_tb: Annotated[Positive, Meta(description="Size of the dataset.")] | None = None
    bursty: Annotated[bool, Meta(description="Load comes in bursts.")] = False
    bound_by: Annotated[BoundBy | None, Meta(description="What binds the work.")] = None
    real_time: Annotated[bool | None, Meta(description="Someone waits for each answer.")] = None
    model_size: Annotated[
        ModelSize | None, Meta(description="What the smallest plan of it fills.")
    ] = None
    bandwidth: Annotated[Bandwidth | None, Meta(description="Between the GPUs at work.")] = None


class FourAnswers(Struct, frozen=True, kw_only=True):
    """Answers to the four questions; None where nobody gave one and nothing says so."""

    bound_by: BoundBy | None
    real_time: bool | None
    model_size: ModelSize | None
    bandwidth: Bandwidth | None
    worked_out: tuple[str, ...] = ()
    """Which of them came from the spec."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Questions that are still open."""
        names = ("bound_by", "real_time", "model_size", "bandwidth")
        return tuple(name for name in names if getattr(self, name) is None)


def four_answers(question: AdviseQuestion, design: Design | None) -> FourAnswers:
    """Return the four answers, those given first and the others from the design."""
    found: dict[str, object] = {
        "real_time": question.kind == "inference" and question.ttft_s <= REAL_TIME_S
    }
    if design is not None:
        found["bandwidth"] = _bandwidth(design)
        found["model_size"] = size = _model_size(question, design)
        found["bound_by"] = None if size is None else _bound_by(question, design, size)
    given = {name: getattr(question, name) for name in FourAnswers.__struct_fields__[:-1]}
    taken = {name: found.get(name) if value is None else value for name, value in given.items()}
    worked = tuple(name for name in given if given[name] is None and taken[name] is not None)
    return FourAnswers(**taken, worked_out=worked)  # pyright: ignore[reportArgumentType]


def _model_size(question: AdviseQuestion, design: Design) -> ModelSize | None:
    """Return what the smallest plan fills; a scale-up domain of many nodes counts as one."""
    if design.request is None:
        return None
    if question.kind == "training":
        points = design.curve.points if design.curve else ()
        least = points[0].gpus if points else None
    else:
        least = gpus_per_replica(design)
    node = max(design.target.gpus_per_node, design.target.scaleup_gpus)
    if least is None or least > node:
        return "larger"
    return "gpu" if least == 1 else "node"


def _bound_by(question: AdviseQuestion, design: Design, size: ModelSize) -> BoundBy:
    if question.kind == "inference":
        # Every token read back needs all weights once; prompts alone are arithmetic.
        return "memory" if question.output_tokens > 1 else "gpu"
    point = _today(design)
    if point is None or size == "larger":
        return "memory"
    traffic = sum(point.breakdown_s[part] for part in TRAFFIC) / point.step_s
    return "network" if traffic > NETWORK_BOUND_SHARE else "gpu"


def _today(design: Design) -> ScalePoint | None:
    points = design.curve.points if design.curve else ()
    within = [point for point in points if point.gpus <= design.gpus_today]
    return within[-1] if within else None


def _bandwidth(design: Design) -> Bandwidth:
    fleet = design.fleet
    if _spread(fleet):
        return "thin"
    fast = design.target.nic_bytes_per_s >= FAST_BYTES_PER_S_PER_GPU
    return "fast" if fast or design.target.gpus <= design.target.scaleup_gpus else "ordinary"


def _spread(fleet: OpenFleet) -> bool:
    """Return whether the GPUs stand in several sites that only thin lines join."""
    spec = fleet.spec
    by_site = {site.id: 0 for site in spec.sites}
    for pool in spec.pools:
        by_site[pool.site] += pool.gpus
    outside = spec.gpus - max(by_site.values())
    widest = max((link.bandwidth for link in spec.links), default=0)
    return outside > SPREAD_SHARE * spec.gpus and widest < THIN_BYTES_PER_S


def served(question: AdviseQuestion, fleet: OpenFleet) -> ServeAnswer | Misfit | None:
    """Return how the service would be served, or None where its load is not stated."""
    if question.kind != "inference" or question.model is None or question.qps is None:
        return None
    service = ServiceDemand(
        model=question.model,
        qps=question.qps,
        input_tokens=question.input_tokens,
        output_tokens=question.output_tokens,
        ttft_s=question.ttft_s,
        tpot_s=question.tpot_s,
        precisions=("bf16",),
    )
    request = ServeRequest(service=service, shape=model_shape(question.model, fleet.catalogue))
    return plan_serve(request, serve_targets(fleet), keep=1)
