"""The outcome of a layout over a whole run: time, cost, failures and energy."""

import numpy as np
from msgspec import Struct

from tenfold.decide.layout.request import PlanningTarget, TrainRequest
from tenfold.decide.layout.search import Timed, breakdown_at, plan_at
from tenfold.model.plan import Precision, TrainPlan
from tenfold.physics.operations.energy import footprint, gpu_power_w
from tenfold.physics.operations.goodput import (
    best_interval_s,
    checkpoint_bytes,
    checkpoint_s,
    goodput,
)
from tenfold.physics.training.arrays import model_flops_per_token
from tenfold.physics.training.shapes import training_shape

GIB = float(1 << 30)
BUSY_LOAD = 0.6
"""A GPU that waits for memory or the network still draws this share of its range; an assumption."""


class Run(Struct, frozen=True, kw_only=True):
    """A run of some length, failures and checkpoints included."""

    days: float
    usd: float
    tokens: float
    kwh: float
    co2e_kg: float


class Outcome(Struct, frozen=True, kw_only=True):
    """One layout and its expected performance."""

    plan: TrainPlan
    step_s: float
    tokens_per_s_per_gpu: float
    model_tflops_per_gpu: float
    mfu: float
    memory_gib: float
    breakdown_s: dict[str, float]
    bottleneck: str
    usd_per_step: float
    usd_per_million_tokens: float
    kwh_per_million_tokens: float
    effective_share: float
    checkpoint_interval_s: float
    failures_per_day: float
    run: Run | None = None


def outcome_at(timed: Timed, place: int) -> Outcome:
    """Return one of the layouts found with its expected performance."""
    request, target = timed.request, timed.target
    step_s = float(timed.step_s[place])
    plan = plan_at(timed, place)
    parts = breakdown_at(timed, place)
    share, interval_s, per_day = goodput_of(request, target, plan.gpus)
    tokens_per_s = request.global_batch * request.seq / step_s
    flops = float(
        np.asarray(model_flops_per_token(training_shape(request.shape), float(request.seq)))
    )
    tflops = tokens_per_s * flops / plan.gpus / 1e12
    peak = _peak_tflops(target, request.job.precision)
    usd_per_step = target.usd(plan.gpus, step_s / share)
    energy = _energy(target, plan.gpus, step_s / share, tflops / peak)
    step_tokens = request.global_batch * request.seq
    return Outcome(
        plan=plan,
        step_s=step_s,
        tokens_per_s_per_gpu=tokens_per_s / plan.gpus,
        model_tflops_per_gpu=tflops,
        mfu=tflops / peak,
        memory_gib=float(timed.memory_bytes[place]) / GIB,
        breakdown_s=parts,
        bottleneck=bottleneck(parts),
        usd_per_step=usd_per_step,
        usd_per_million_tokens=usd_per_step / step_tokens * 1e6,
        kwh_per_million_tokens=energy[0] / step_tokens * 1e6,
        effective_share=share,
        checkpoint_interval_s=interval_s,
        failures_per_day=per_day,
        run=_run(request, target, plan.gpus, tokens_per_s * share, energy),
    )


def _peak_tflops(target: PlanningTarget, precision: Precision) -> float:
    part = target.part
    peaks = {
        "fp32": part.peak_fp32,
        "tf32": part.peak_tf32,
        "fp8": part.peak_fp8,
        "fp4": part.peak_fp4,
    }
    return float(np.asarray(peaks.get(precision, part.peak_bf16))) / 1e12


def bottleneck(parts: dict[str, float]) -> str:
    """Return the largest part of a step, without its unit."""
    return max(parts, key=lambda part: parts[part]).removesuffix("_s")


def goodput_of(
    request: TrainRequest, target: PlanningTarget, gpus: int
) -> tuple[float, float, float]:
    """Return the share of time spent training, the best checkpoint interval, failures per day."""
    size = checkpoint_bytes(np.asarray([float(request.shape.params)]))
    count = np.asarray([float(gpus)])
    save_s = checkpoint_s(
        size,
        np.asarray([target.checkpoint_bytes_per_s]),
        count,
        np.asarray([target.nic_bytes_per_s]),
    )
    interval_s = best_interval_s(count, target.reliability, save_s)
    found = goodput(count, target.reliability, save_s, interval_s)
    return float(found.ettr[0]), float(interval_s[0]), float(found.failures_per_day[0])


def _energy(target: PlanningTarget, gpus: int, seconds: float, mfu: float) -> tuple[float, float]:
    """Return kWh and kg of CO2e of some seconds; GPUs that compute draw near their limit."""
    power = target.power
    load = np.asarray([min(1.0, BUSY_LOAD + mfu * (1.0 - BUSY_LOAD))])
    taken = footprint(
        np.asarray([float(gpus)]),
        np.asarray([seconds]),
        gpu_power_w(np.asarray([power.tdp_w]), load),
        server_overhead=power.server_overhead,
        pue=power.pue,
        grid_g_per_kwh=power.co2_g_per_kwh,
    )
    return float(taken.energy_kwh[0]), float(taken.co2e_kg[0])


def _run(
    request: TrainRequest,
    target: PlanningTarget,
    gpus: int,
    tokens_per_s: float,
    step_energy: tuple[float, float],
) -> Run | None:
    if request.job.tokens is None:
        return None
    seconds = request.job.tokens / tokens_per_s
    steps = request.job.tokens / (request.global_batch * request.seq)
    return Run(
        days=seconds / 86_400,
        usd=target.usd(gpus, seconds),
        tokens=request.job.tokens,
        kwh=step_energy[0] * steps,
        co2e_kg=step_energy[1] * steps,
    )
