"""The same jobs on more GPUs each: what they have to do stays, so they are over sooner.

A job on k times its GPUs is not k times as fast: what it loses is told by the scaling curve of
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

Curve = Sequence[tuple[int, float]]
"""Efficiency by GPUs, rising in GPUs."""
NODE_GPUS = 8
"""GPUs of the usual node, for jobs that do not say how they are spread."""


def resized(jobs: Sequence[Job], factor: float, scaling: Mapping[str, Curve]) -> list[Job]:
    """Return every job on `factor` times its GPUs, at equal work."""
    made: dict[tuple[str, int], Shape] = {}
    work: list[Job] = []
    for job in jobs:
        milli = _milli(job.shape)
        wanted = _wanted_milli(job.shape, factor)
        if wanted == milli:
            work.append(job)
            continue
        key = (job.shape.key, wanted)
        if key not in made:
            made[key] = _shape(job.shape, wanted / milli, wanted)
        work.append(_sized(job, made[key], scaling.get(job.profile, ())))
    return work


def _milli(shape: Shape) -> int:
    return shape.gpus * WHOLE or shape.milli


def _wanted_milli(shape: Shape, factor: float) -> int:
    """Return the size nearest to the one wished for: whole nodes stay whole nodes."""
    wished = _milli(shape) * factor
    if shape.milli and wished < WHOLE:
        return max(1, round(wished))
    if not wished:
        return 0
    gpus, unit = wished / WHOLE, 1
    if shape.gpus_per_node and gpus > shape.gpus_per_node:
        unit = shape.gpus_per_node
    elif shape.gpus % NODE_GPUS == 0 and gpus > NODE_GPUS:
        unit = NODE_GPUS
    return max(1, round(gpus / unit)) * unit * WHOLE


def _shape(shape: Shape, ratio: float, milli: int) -> Shape:
    return shape_of(
        milli / WHOLE,
        gpus_per_node=shape.gpus_per_node,
        accelerators=shape.accelerators,
        cpus=shape.cpus_milli * ratio / 1_000,
        memory_gib=shape.memory_mib * ratio / 1_024,
        where=shape.where,
    )


def _sized(job: Job, shape: Shape, curve: Curve) -> Job:
    before, after = _milli(job.shape) / WHOLE, _milli(shape) / WHOLE
    gain = after * efficiency_at(curve, after) / (before * efficiency_at(curve, before))
    return replace(
        job,
        shape=shape,
        duration_ms=_over(job.duration_ms, gain),
        limit_ms=_over(job.limit_ms, gain),
        terms=None if job.terms is None else _terms(job.terms, after / before, gain),
    )


def _terms(terms: Terms, ratio: float, gain: float) -> Terms:
    if not terms.least_gpus and terms.busy_ms is None:
        return terms
    return replace(
        terms,
        least_gpus=terms.least_gpus and max(1, int(terms.least_gpus * ratio)),
        most_gpus=ceil(terms.most_gpus * ratio),
        busy_ms=_over(terms.busy_ms, gain),
    )


def _over(time_ms: Millis | None, gain: float) -> Millis | None:
    return None if time_ms is None else Millis(ceil(time_ms / gain))
