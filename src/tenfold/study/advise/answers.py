"""The four questions of scaling, answered from the fleet and the model if possible.

What is the bottleneck, is it real time, how large is the model, how fast is the network: an answer
given explicitly always wins over a derived one.
"""

from typing import Annotated, Literal

import numpy as np
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
"""What the smallest plan needs: one GPU, one node, or more than a node."""
Bandwidth = Literal["thin", "ordinary", "fast"]
"""The network between the GPUs: a link between sites, an ordinary network, an RDMA fabric."""
REAL_TIME_S = 1.0
THIN_BYTES_PER_S = 10e9 / 8
FAST_BYTES_PER_S_PER_GPU = 200e9 / 8
BATCH_TTFT_S, BATCH_TPOT_S = 3600.0, 10.0
"""Targets of requests that no user waits for; an assumption."""
USERS_HEADROOM = 0.1
"""Share of a replica's capacity left free where users wait, as `plan serve` does."""
NETWORK_BOUND_SHARE = 0.3
SPREAD_SHARE = 0.2
"""Share of GPUs outside the largest site above which a fleet counts as spread over sites."""


Positive = Annotated[float, Meta(gt=0, le=1e9)]
Tokens = Annotated[int, Meta(gt=0, le=10**9)]


class AdviseQuestion(Struct, frozen=True, kw_only=True):
    """A job or service to advise on; None is derived, or left open."""

    kind: Annotated[Kind, Meta(description="Kind of workload (default: training)")] = "training"
    model: Annotated[
        str | None, Meta(description="Name of a known model, or path to its config.json")
    ] = None
    qps: Annotated[Positive, Meta(description="Requests per second")] | None = None
    ttft_s: Annotated[
        Positive, Meta(description="Target time to first token, in seconds (default: 1)")
    ] = 1.0
    tpot_s: Annotated[
        Positive, Meta(description="Target time per output token, in seconds (default: 0.1)")
    ] = 0.1
    input_tokens: Annotated[Tokens, Meta(description="Prompt length in tokens (default: 1024)")] = (
        1024
    )
    output_tokens: Annotated[
        Tokens, Meta(description="Response length in tokens (default: 256)")
    ] = 256
    dataset_tb: Annotated[Positive, Meta(description="Size of the dataset in TB")] | None = None
    bursty: Annotated[bool, Meta(description="Treat the load as bursty")] = False
    bound_by: Annotated[BoundBy | None, Meta(description="Bottleneck of the workload")] = None
    real_time: Annotated[bool | None, Meta(description="Whether users wait for each response")] = (
        None
    )
    model_size: Annotated[
        ModelSize | None,
        Meta(
            description="Smallest unit that the model fits on: one GPU, one node, or"
            " more than a node"
        ),
    ] = None
    bandwidth: Annotated[
        Bandwidth | None,
        Meta(
            description="Network between the GPUs: a slow link between sites, an "
            "ordinary network, or a fast fabric [choices: wan, ordinary, fast]"
        ),
    ] = None


class FourAnswers(Struct, frozen=True, kw_only=True):
    """Answers to the four questions; None if neither given nor derived."""

    bound_by: BoundBy | None
    real_time: bool | None
    model_size: ModelSize | None
    bandwidth: Bandwidth | None
    worked_out: tuple[str, ...] = ()
    """Which of them were derived."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Questions that are still open."""
        names = ("bound_by", "real_time", "model_size", "bandwidth")
        return tuple(name for name in names if getattr(self, name) is None)


def four_answers(question: AdviseQuestion, design: Design | None) -> FourAnswers:
    """Return the four answers: those given, the others from the design."""
    found: dict[str, object] = {
        "real_time": question.kind == "inference" and question.ttft_s <= REAL_TIME_S
    }
    if design is not None:
        found["bandwidth"] = _bandwidth(question, design)
        found["model_size"] = size = _model_size(question, design)
        found["bound_by"] = None if size is None else _bound_by(question, design, size)
    given = {name: getattr(question, name) for name in FourAnswers.__struct_fields__[:-1]}
    taken = {name: found.get(name) if value is None else value for name, value in given.items()}
    worked = tuple(name for name in given if given[name] is None and taken[name] is not None)
    return FourAnswers(**taken, worked_out=worked)  # pyright: ignore[reportArgumentType]


def _model_size(question: AdviseQuestion, design: Design) -> ModelSize | None:
    """Return what the smallest plan needs; a scale-up domain of many nodes counts as one node."""
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
        # Every output token reads all weights once; prompts alone are compute-bound.
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


def _bandwidth(question: AdviseQuestion, design: Design) -> Bandwidth:
    if _spread(question, design):
        return "thin"
    fast = design.target.nic_bytes_per_s >= FAST_BYTES_PER_S_PER_GPU
    return "fast" if fast or design.target.gpus <= design.target.scaleup_gpus else "ordinary"


def _spread(question: AdviseQuestion, design: Design) -> bool:
    """Return whether the GPUs are in several sites, with links too slow for the job between them.

    A link is too slow for training if the gradients of the model take a large part of its step.
    """
    spec = design.fleet.spec
    by_site = {site.id: 0 for site in spec.sites}
    for pool in spec.pools:
        by_site[pool.site] += pool.gpus
    outside = spec.gpus - max(by_site.values())
    widest = max((link.bandwidth for link in spec.links), default=0)
    return outside > SPREAD_SHARE * spec.gpus and widest < _needed_bytes_per_s(question, design)


def _needed_bytes_per_s(question: AdviseQuestion, design: Design) -> float:
    """Return the rate below which a link between sites holds up the job, or any job."""
    point = _today(design)
    if question.kind == "inference" or design.request is None or point is None:
        return THIN_BYTES_PER_S
    params = design.request.shape.params
    gradients = params * float(np.asarray(design.target.profile.grad_bytes))
    # Each site sends its sum to the others and receives theirs, once a step.
    return 2.0 * gradients / (NETWORK_BOUND_SHARE * point.step_s)


def served(question: AdviseQuestion, fleet: OpenFleet) -> ServeAnswer | Misfit | None:
    """Return the serving plan, or None if the load is not given.

    Where users are said not to wait, latency is no target and replicas run full.
    """
    if question.kind != "inference" or question.model is None or question.qps is None:
        return None
    waits = question.real_time is not False
    service = ServiceDemand(
        model=question.model,
        qps=question.qps,
        input_tokens=question.input_tokens,
        output_tokens=question.output_tokens,
        ttft_s=question.ttft_s if waits else BATCH_TTFT_S,
        tpot_s=question.tpot_s if waits else BATCH_TPOT_S,
        precisions=("bf16",),
        # A queue that no user waits for levels the load, so nothing need be left free for peaks.
        headroom=USERS_HEADROOM if waits else 0.0,
        # Advice is about the size of a replica and their number, not about losing one.
        spare_replicas=0,
    )
    request = ServeRequest(service=service, shape=model_shape(question.model, fleet.catalogue))
    return plan_serve(request, serve_targets(fleet), keep=1)
