"""Ceilings that depend on the model: scaling efficiency, the scale-up domain, GPU memory."""

from msgspec.structs import replace

from tenfold.decide.layout.scaling import curve, sizes
from tenfold.report.reasons.render import render
from tenfold.study.ceiling.design import Design, gpus_searched, grown
from tenfold.study.ceiling.layers import CeilingGrade, LayerBuilder, LayerCeiling

WIDE_DOMAIN_GPUS = 64
"""Layouts use powers of two, so racks of 72 share their links among 64."""
DOMAIN_LOSS_MAX = 0.1
"""A domain is a limit if a wide one would give a tenth more throughput."""
NO_MODEL = "no model given; set `--model`, or `model` under `[expects]`"


def efficiency(design: Design) -> LayerCeiling:
    """Return the largest size up to which doubling still pays off."""
    request, made = design.request, design.curve
    name = LayerBuilder("efficiency", request.job.model if request else "", design.gpus_today)
    if request is None or made is None:
        return name.unknown(NO_MODEL)
    if made.knee is None:
        return name.unknown(
            f"`{request.job.model}` does not fit at any size, so there is no scaling curve"
        )
    if made.knee == made.points[-1].gpus:
        text = f"{request.job.model} still scales at {made.knee:,} GPUs, the largest size checked"
        return name.free(_grade(design), text)
    why = next((render(one) for one in made.reasons if one.code == "knee"), "")
    lost = _lost_at_double(design, made.knee)
    return name.binds(made.knee, _grade(design), why, lost)


def _grade(design: Design) -> CeilingGrade:
    return "assumption" if design.question.global_batch is None else "supposed"


def _lost_at_double(design: Design, knee: int) -> float | None:
    """Return what a doubling at the knee loses against perfect scaling."""
    points = {point.gpus: point for point in design.curve.points} if design.curve else {}
    if 2 * knee not in points:
        return None
    return max(0.0, 1 - points[2 * knee].tokens_per_s / points[knee].tokens_per_s / 2)


def scale_up(design: Design) -> LayerCeiling:
    """Return the largest job that a wide scale-up domain would hardly speed up.

    Both sides run on a non-blocking fabric: the cost of oversubscription is another layer.
    """
    request, domain = design.request, design.target.scaleup_gpus
    name = LayerBuilder(
        "scale-up", f"{domain} GPUs on {design.target.accelerator} links", design.gpus_today
    )
    if request is None:
        return name.unknown(NO_MODEL)
    if domain >= WIDE_DOMAIN_GPUS:
        return name.free(
            "supposed",
            f"a domain of {domain} GPUs is wide enough for any common tensor-parallel degree",
        )
    largest = grown(design, gpus_searched(design.target))
    plain = replace(largest, leaf_oversubscription=1.0, pod_oversubscription=1.0)
    wide = replace(plain, scaleup_gpus=WIDE_DOMAIN_GPUS)
    ours, _ = curve(request, plain, sizes(plain))
    theirs, _ = curve(request, wide, sizes(wide))
    rates = {point.gpus: point.tokens_per_s for point in theirs.points}
    gain = {point.gpus: rates[point.gpus] / point.tokens_per_s - 1 for point in ours.points}
    good = [gpus for gpus in gain if gain[gpus] <= DOMAIN_LOSS_MAX]
    if not good:
        least = f"{DOMAIN_LOSS_MAX:.0%}"
        text = (
            f"{request.job.model} gains more than {least} from a wide scale-up domain at every size"
        )
        return name.binds(domain, _grade(design), text)
    ceiling = max(good)
    if ceiling == max(gain):
        return name.free(
            _grade(design), f"a wider scale-up domain would not speed up {request.job.model}"
        )
    beyond = min(gpus for gpus in gain if gpus > ceiling)
    text = (
        f"at {beyond:,} GPUs {request.job.model} would be {gain[beyond]:.0%} faster with "
        f"scale-up domains of {WIDE_DOMAIN_GPUS} GPUs instead of {domain}"
    )
    return name.binds(ceiling, _grade(design), text, gain[beyond] / (1 + gain[beyond]))


def gpu_memory(design: Design) -> LayerCeiling:
    """Return whether the model fits: memory sets the smallest job, not the largest.

    Larger jobs need less memory per GPU, so memory is a limit only if today's fleet is smaller
    than the minimum for the model.
    """
    request, made = design.request, design.curve
    name = LayerBuilder("gpu-memory", f"{design.target.accelerator} memory", design.gpus_today)
    if request is None or made is None:
        return name.unknown(NO_MODEL)
    if not made.points:
        return name.binds(
            0, _grade(design), f"{request.job.model} does not fit at any size checked"
        )
    least = made.points[0].gpus
    if least > design.gpus_today:
        text = (
            f"{request.job.model} needs at least {least:,} GPUs, "
            f"and the fleet has {design.gpus_today:,}"
        )
        return name.binds(0, _grade(design), text)
    text = f"{request.job.model} fits on {least:,} or more GPUs"
    return name.free(_grade(design), text)
