"""Plan a training run: from a model and a fleet file to layouts with intervals."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta, Struct, structs

from tenfold.compose.fleet import OwnFacts, open_fleet
from tenfold.decide.layout.outcome import Outcome
from tenfold.decide.layout.request import PlanningTarget, TrainRequest
from tenfold.decide.layout.search import search
from tenfold.decide.layout.train import TrainAnswer, plan_train
from tenfold.files.models.hf_config import read_hf_config
from tenfold.model.errors import InputError
from tenfold.model.estimate import NoEstimate, TrainEstimate, TrainRow
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.facts.shape import ModelShape
from tenfold.model.fleet.facility import PriceKind
from tenfold.model.plan import TrainingJob
from tenfold.model.reason import Misfit
from tenfold.physics.training.memory import Memory, memory_of
from tenfold.study.estimate.fill import fill, runs_of
from tenfold.study.estimate.train import estimate_train
from tenfold.study.plan.exchange import Exchange, exchanged
from tenfold.study.plan.target import ChosenTarget, train_target

DEFAULT_SEQ = 4096
GIB = float(1 << 30)
TIGHT_SHARE = 0.95
"""Memory estimates can be off by a few percent, so a plan above this may not start."""
# Tokens per step by model size, as in published runs of that size; an assumption.
DEFAULT_STEP_TOKENS = ((3e9, 0.5e6), (20e9, 4e6), (100e9, 4e6), (float("inf"), 16e6))


class TrainQuestion(TrainingJob, frozen=True, kw_only=True):
    """The options of `plan train`: a job, and where to run it."""

    fleet: Annotated[Path, Meta(description="Fleet file")]
    accelerator: Annotated[
        str | None,
        Meta(description="Accelerator to use (default: the type with the most GPUs on one fabric)"),
    ] = None
    stack: Annotated[
        str | None, Meta(description="Training framework and version (default: megatron-core)")
    ] = None
    failures: Annotated[str | None, Meta(description="Failure preset (default: llama-3)")] = None
    gradient_bits: Annotated[
        Literal[8, 16, 32] | None, Meta(description="Bits per gradient sent over the network")
    ] = None
    compression_bytes: Annotated[
        float | None,
        Meta(
            ge=0,
            le=1e6,
            description="Memory traffic to compress one gradient value, in bytes (default: "
            "12 for --gradient-bits 16, 18 for 8)",
        ),
    ] = None
    no_overlap: Annotated[bool, Meta(description="Do not overlap communication with compute")] = (
        False
    )
    facts: OwnFacts = None


class TrainPlanResult(Struct, frozen=True, kw_only=True):
    """The request, the target chosen for it, and the plans found."""

    request: TrainRequest
    chosen: ChosenTarget
    answer: TrainAnswer | Misfit
    estimates: tuple[TrainEstimate, ...]
    """Estimates of the plans, in the same order."""
    usd_by_kind: dict[str, float]
    """Cost of the best plan's run (or step) at the median price of each kind."""
    notes: tuple[str, ...]
    """Assumptions and warnings."""


def model_shape(model: str, catalogue: Catalogue) -> ModelShape:
    """Return the shape of a preset, or of a model's config.json."""
    if model.endswith(".json"):
        return read_hf_config(Path(model))
    return catalogue.models.get(model).shape


def train_request(job: TrainingJob, catalogue: Catalogue) -> TrainRequest:
    """Return a job with its model looked up, and a default batch if none is given."""
    shape = model_shape(job.model, catalogue)
    seq = job.seq or min(DEFAULT_SEQ, shape.context or DEFAULT_SEQ)
    batch = job.global_batch or default_batch(shape, seq)
    return TrainRequest(job=job, shape=shape, seq=seq, global_batch=batch)


def plan_training(question: TrainQuestion, observed: Sequence[TrainRow] = ()) -> TrainPlanResult:
    """Plan a training job on a fleet."""
    if question.tokens is None and (question.deadline_s or question.budget_usd):
        raise InputError(
            "missing-tokens",
            "a deadline or a budget requires the length of the run",
            "add it in tokens: `--tokens 1e12`",
            field="--tokens",
        )
    fleet = open_fleet(question.fleet, question.facts)
    chosen = train_target(
        fleet,
        accelerator=question.accelerator,
        stack=question.stack,
        failures=question.failures,
        exchange=Exchange(
            gradient_bits=question.gradient_bits,
            compress_bytes=question.compression_bytes,
            overlap=not question.no_overlap,
        ),
        observed=list(observed),
    )
    request = train_request(question, fleet.catalogue)
    if question.budget_usd is not None and not chosen.target.usd_per_gpu_hour:
        raise InputError(
            "no-price",
            f"`--budget` is given, but there is no price for `{chosen.target.accelerator}`",
            "set `price` for the pool in the fleet file",
            file=str(question.fleet),
        )
    answer = plan_train(request, chosen.target)
    estimates = () if isinstance(answer, Misfit) else _estimates(answer, fleet.catalogue, observed)
    return TrainPlanResult(
        request=request,
        chosen=chosen,
        answer=answer,
        estimates=estimates,
        usd_by_kind=_usd_by_kind(answer, chosen.target, fleet.catalogue),
        notes=(
            *chosen.notes,
            *_train_notes(answer, chosen.target),
            *_compression_note(question, answer, chosen, request),
        ),
    )


def _compression_note(
    question: TrainQuestion,
    answer: TrainAnswer | Misfit,
    chosen: ChosenTarget,
    request: TrainRequest,
) -> tuple[str, ...]:
    """Return whether compressed gradients pay, against the same GPUs and batch without them."""
    if isinstance(answer, Misfit) or question.gradient_bits is None:
        return ()
    best = answer.plans[0]
    own = exchanged(chosen.stack_calibration, Exchange(overlap=not question.no_overlap))
    plain = search(
        structs.replace(request, global_batch=best.plan.global_batch),
        structs.replace(chosen.target, calibration=own),
        best.plan.gpus,
    )
    before_s = float(plain.step_s[0])
    saved = 1 - best.step_s / before_s
    verdict = "pay" if saved > 0 else "do not pay"
    return (
        f"{question.gradient_bits}-bit gradients {verdict}: a step takes {best.step_s:.3g} s "
        f"instead of {before_s:.3g} s ({-saved:+.1%})",
    )


def _train_notes(answer: TrainAnswer | Misfit, target: PlanningTarget) -> tuple[str, ...]:
    if isinstance(answer, Misfit):
        return ()
    room = float(np.asarray(target.part.memory_bytes))
    return tight_memory(answer.plans[0].memory_gib, room / GIB)


def tight_memory(taken_gib: float, memory_gib: float) -> tuple[str, ...]:
    """Return a note if a plan leaves less memory free than the estimate may be off by."""
    if taken_gib <= TIGHT_SHARE * memory_gib:
        return ()
    return (
        f"the best plan uses {taken_gib:.1f} of {memory_gib:.1f} GiB per GPU "
        f"({taken_gib / memory_gib:.0%}): test that it fits before you rely on it",
    )


def _usd_by_kind(
    answer: TrainAnswer | Misfit, target: PlanningTarget, catalogue: Catalogue
) -> dict[str, float]:
    """Return the cost of the best plan at the fleet's price and at market prices."""
    if isinstance(answer, Misfit):
        return {}
    best = answer.plans[0]
    hours = best.plan.gpus * (
        best.step_s / best.effective_share / 3600 if best.run is None else best.run.days * 24
    )
    costs = {"fleet": hours * target.usd_per_gpu_hour} if target.usd_per_gpu_hour else {}
    kinds: tuple[PriceKind, ...] = ("on-demand", "spot")
    for kind in kinds:
        prices = [one.usd_per_gpu_hour for one in catalogue.prices_of(target.accelerator, kind)]
        if prices:
            costs[kind] = hours * median(prices)
    return costs


def best_memory(planned: TrainPlanResult, catalogue: Catalogue) -> Memory:
    """Return where the memory of the best plan goes."""
    assert not isinstance(planned.answer, Misfit), "only a plan has memory use"
    runs = runs_of([fill(planned.answer.plans[0].plan, catalogue)])
    return memory_of(runs.shape, runs.plans, planned.chosen.target.profile)


def default_batch(shape: ModelShape, seq: int) -> int:
    """Return a typical global batch in sequences, a power of two so that layouts divide it."""
    tokens = next(step for most, step in DEFAULT_STEP_TOKENS if shape.params <= most)
    return 1 << max(0, round(tokens / seq).bit_length() - 1)


def _estimates(
    answer: TrainAnswer, catalogue: Catalogue, observed: Sequence[TrainRow]
) -> tuple[TrainEstimate, ...]:
    """Estimate the best plans as `estimate train` would, with the figures of the search."""
    estimates = estimate_train([outcome.plan for outcome in answer.plans], catalogue, observed)
    return tuple(
        _as_searched(outcome, estimate)
        for outcome, estimate in zip(answer.plans, estimates, strict=True)
    )


def _as_searched(outcome: Outcome, estimate: TrainEstimate | NoEstimate) -> TrainEstimate:
    """Return the search's figures, which include compressed gradients and oversubscription."""
    assert isinstance(estimate, TrainEstimate), "a layout from the search can be estimated"
    low, high = estimate.interval_s
    factor = outcome.step_s / estimate.step_s
    return structs.replace(
        estimate,
        step_s=outcome.step_s,
        interval_s=(low * factor, high * factor),
        tokens_per_s_per_gpu=outcome.tokens_per_s_per_gpu,
        model_tflops_per_gpu=outcome.model_tflops_per_gpu,
        mfu=outcome.mfu,
        bottleneck=outcome.bottleneck,
        breakdown_s=outcome.breakdown_s,
    )
