"""What else fits on a design: the largest models, the replicas and the data rate."""

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tenfold.decide.layout.request import PlanningTarget, TrainRequest
from tenfold.decide.layout.scaling import sizes
from tenfold.decide.layout.serve import ServeAnswer, ServeRequest, plan_serve
from tenfold.decide.layout.space import candidates
from tenfold.model.estimate import NoEstimate, ServeEstimate, ServeRow
from tenfold.model.facts.shape import ModelPreset
from tenfold.model.plan import Precision, ServiceDemand, TrainingJob
from tenfold.physics.training.memory import fits, memory_of
from tenfold.physics.training.shapes import training_shape
from tenfold.study.ceiling.design import Design
from tenfold.study.ceiling.storage import feed_rate, feeding_tier, supplied_bytes_per_s
from tenfold.study.estimate.serve import estimate_serve
from tenfold.study.plan.target import serve_targets
from tenfold.study.plan.train import train_request

SIZES_TRIED = 3
"""How many of the largest sizes are tried: the very largest is often not a power of two."""
LOW_QPS, USUAL_TTFT_S, USUAL_TPOT_S = 0.01, 1.0, 0.1
"""Load and targets with which a model counts as served."""
USUAL_TOKENS = 1024
"""Tokens of a prompt and of an answer, if replicas are counted without a load."""


class CapacitySummary(Struct, frozen=True, kw_only=True):
    """Largest models, replicas and data rate; None if nothing fits or nothing is stated."""

    model_trained_largest: str | None
    model_trained_params_b: float | None
    model_served_by_node_largest: str | None
    model_served_by_node_params_b: float | None
    model_served_by_node_precision: Precision | None
    """Of its weights: the widest in which one node serves it."""
    gpus_per_replica: int | None
    replicas: int | None
    """Replicas of the model in 16 bit, on all GPUs of this kind."""
    tier: str | None
    data_bytes_per_s: float | None
    """What the tier supplies to a job on all of today's GPUs."""
    data_bytes_per_s_needed: float | None


def capacity_summary(design: Design) -> CapacitySummary:
    """Return the largest models, the replicas and the data rate of a design."""
    trained = _largest_trained(design)
    served, precision = _largest_served(design)
    each = gpus_per_replica(design)
    tier, need = feeding_tier(design), feed_rate(design)
    gpus = design.gpus_today
    return CapacitySummary(
        model_trained_largest=trained.name if trained else None,
        model_trained_params_b=trained.params_b if trained else None,
        model_served_by_node_largest=served.name if served else None,
        model_served_by_node_params_b=served.params_b if served else None,
        model_served_by_node_precision=precision,
        gpus_per_replica=each,
        replicas=None if each is None else gpus // each,
        tier=str(tier.id) if tier else None,
        data_bytes_per_s=supplied_bytes_per_s(design, tier, gpus) if tier else None,
        data_bytes_per_s_needed=None if need is None else need[0] * gpus,
    )


def _by_size(design: Design) -> list[ModelPreset]:
    return sorted(design.fleet.catalogue.models, key=lambda preset: -preset.shape.params)


def _largest_trained(design: Design) -> ModelPreset | None:
    for preset in _by_size(design):
        request = train_request(TrainingJob(model=preset.name), design.fleet.catalogue)
        if trains(request, design.target):
            return preset
    return None


def trains(request: TrainRequest, target: PlanningTarget) -> bool:
    """Return whether some layout of a job fits in memory on most of a ground."""
    # Only memory matters here, and the most frugal plan decides it.
    frugal = replace(request, job=replace(request.job, recompute="full", micro_batch=1))
    return any(_fits(frugal, target, gpus) for gpus in sizes(target)[-SIZES_TRIED:])


def _fits(request: TrainRequest, target: PlanningTarget, gpus: int) -> bool:
    plans = candidates(request, target, gpus)
    if np.size(plans.dp) == 0:
        return False
    memory = memory_of(training_shape(request.shape), plans, target.profile)
    return bool(np.any(fits(memory, target.part)))


def _largest_served(design: Design) -> tuple[ModelPreset | None, Precision | None]:
    """Return the largest model for which `plan serve` finds a replica inside a node, and how."""
    pools = [str(pool.id) for pool in design.pools]
    targets = [one for one in serve_targets(design.fleet) if one.pool in pools]
    for preset in _by_size(design):
        service = ServiceDemand(
            model=preset.name,
            qps=LOW_QPS,
            input_tokens=USUAL_TOKENS,
            output_tokens=USUAL_TOKENS,
            ttft_s=USUAL_TTFT_S,
            tpot_s=USUAL_TPOT_S,
            spare_replicas=0,
        )
        answer = plan_serve(ServeRequest(service=service, shape=preset.shape), targets)
        plans = answer.plans if isinstance(answer, ServeAnswer) else ()
        inside = [plan for plan in plans if plan.gpus_per_replica <= design.target.gpus_per_node]
        kinds = {plan.precision for plan in inside}
        if inside:
            return preset, next(kind for kind in service.precisions if kind in kinds)
    return None, None


def gpus_per_replica(design: Design) -> int | None:
    """Return the fewest GPUs that fit a replica of the model."""
    if design.request is None or design.request.job.model.endswith(".json"):
        return None
    most = min(design.gpus_today, 64)
    degrees = [1 << bit for bit in range(7) if 1 << bit <= most]
    domain = design.target.scaleup_gpus
    rows = [
        _row(design.request.job.model, design, min(size, domain), max(1, size // domain))
        for size in degrees
    ]
    answers = estimate_serve(rows, design.fleet.catalogue)
    return next((size for size, one in zip(degrees, answers, strict=True) if _holds(one)), None)


def _holds(answer: ServeEstimate | NoEstimate) -> bool:
    return isinstance(answer, ServeEstimate) and answer.fits


def _row(model: str, design: Design, tp: int, pp: int = 1) -> ServeRow:
    return ServeRow(
        id=model,
        model=model,
        accelerator=design.target.accelerator,
        tp=tp,
        pp=pp,
        precision="bf16",
        input_tokens=USUAL_TOKENS,
        output_tokens=USUAL_TOKENS,
        mode="max-throughput",
    )
