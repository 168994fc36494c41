"""The same jobs on more GPUs each: what they have to do stays, so they are over sooner.

A job on k times its GPUs is not k times as fast: the loss comes from the scaling curve of
its profile, and the GPU time lost is the price of growing this way. Without a curve nothing
is lost. GPUs are whole, so a job takes the nearest size that its nodes allow and its duration
follows from the size it takes.
"""

from collections.abc import Mapping, Sequence
from math import ceil

from msgspec.structs import replace

from tenfold.model.job.job import WHOLE, Job, Shape, shape_of
from tenfold.model.job.terms import Terms
from tenfold.model.units import Millis
from tenfold.physics.scaling import efficiency_at

ScalingCurve = Sequence[tuple[int, float]]
"""Efficiency by GPUs, rising in GPUs."""
NODE_GPUS = 8
"""GPUs of the usual node, for jobs that do not say how they are spread."""


def scale_job_sizes(
    jobs: Sequence[Job], factor: float, scaling: Mapping[str, ScalingCurve]
) -> list[Job]:
    """Return every job on `factor` times its GPUs, at equal work."""
    shapes: dict[tuple[str, int], Shape] = {}
    scaled: list[Job] = []
    for job in jobs:
        milli = _milli(job.shape)
        target = _target_milli(job.shape, factor)
        if target == milli:
            scaled.append(job)
            continue
        key = (job.shape.key, target)
        if key not in shapes:
            shapes[key] = _scaled_shape(job.shape, target / milli, target)
        scaled.append(_scale_job(job, shapes[key], scaling.get(job.profile, ())))
    return scaled


def _milli(shape: Shape) -> int:
    return shape.gpus * WHOLE or shape.milli


def _target_milli(shape: Shape, factor: float) -> int:
    """Return the valid size nearest to the target: whole nodes stay whole nodes."""
    target_milli = _milli(shape) * factor
    if shape.milli and target_milli < WHOLE:
        return max(1, round(target_milli))
    if not target_milli:
        return 0
    gpus, unit = target_milli / WHOLE, 1
    if shape.gpus_per_node and gpus > shape.gpus_per_node:
        unit = shape.gpus_per_node
    elif shape.gpus % NODE_GPUS == 0 and gpus > NODE_GPUS:
        unit = NODE_GPUS
    return max(1, round(gpus / unit)) * unit * WHOLE


def _scaled_shape(shape: Shape, ratio: float, milli: int) -> Shape:
    return shape_of(
        milli / WHOLE,
        gpus_per_node=shape.gpus_per_node,
        accelerators=shape.accelerators,
        cpus=shape.cpus_milli * ratio / 1_000,
        memory_gib=shape.memory_mib * ratio / 1_024,
        where=shape.where,
    )


def _scale_job(job: Job, shape: Shape, curve: ScalingCurve) -> Job:
    before, after = _milli(job.shape) / WHOLE, _milli(shape) / WHOLE
    gain = after * efficiency_at(curve, after) / (before * efficiency_at(curve, before))
    return replace(
        job,
        shape=shape,
        duration_ms=_divided(job.duration_ms, gain),
        limit_ms=_divided(job.limit_ms, gain),
        terms=None if job.terms is None else _scale_terms(job.terms, after / before, gain),
    )


def _scale_terms(terms: Terms, ratio: float, gain: float) -> Terms:
    if not terms.least_gpus and terms.busy_ms is None:
        return terms
    return replace(
        terms,
        least_gpus=terms.least_gpus and max(1, int(terms.least_gpus * ratio)),
        most_gpus=ceil(terms.most_gpus * ratio),
        busy_ms=_divided(terms.busy_ms, gain),
    )


def _divided(time_ms: Millis | None, gain: float) -> Millis | None:
    return None if time_ms is None else Millis(ceil(time_ms / gain))
