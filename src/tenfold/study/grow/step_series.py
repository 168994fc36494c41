"""How well larger jobs scale, from timed runs at small scale.

Rows with a step time were measured; rows without one are layouts planned for more GPUs. The timed
rows calibrate the planner, which then estimates all sizes of a series, timed ones too: an error at
both ends of a ratio cancels out. Beyond the planned rows the largest layout grows by data
parallelism, until a batch has no more sequences than replicas.
"""

from collections.abc import Mapping, Sequence
from math import expm1, log1p, sqrt
from typing import NamedTuple

from msgspec.structs import replace

from tenfold.model.errors import InputError
from tenfold.model.estimate import TrainConfig, TrainEstimate, TrainRow
from tenfold.model.facts.catalogue import Catalogue
from tenfold.physics.training.names import stack_key, version_family
from tenfold.study.estimate.fill import fill
from tenfold.study.estimate.train import estimate_train

GROWN_MOST = 64
"""How far a layout is extrapolated: as far as factors are ever shown."""


class StepSeries(NamedTuple):
    """One model on one stack: its size today, and tokens/s per GPU at this and larger sizes."""

    name: str
    gpus: int
    scaling: tuple[tuple[int, float], ...]
    """GPUs, and tokens/s per GPU relative to today's size."""
    spreads: tuple[tuple[int, float], ...]
    """GPUs, and how far that relative rate may be off."""

    def spread_where(self, least: float) -> float:
        """Return how far the rate may be off once it falls to `least`."""
        shares = dict(self.scaling)
        below = [spread for gpus, spread in self.spreads if shares[gpus] <= least]
        return (below or [self.spreads[-1][1]])[0]


class PlannerEstimate(NamedTuple):
    """The planner's estimate of a row."""

    tokens_per_s_per_gpu: float
    spread: float


def step_series(rows: Sequence[TrainRow], catalogue: Catalogue) -> tuple[StepSeries, ...]:
    """Return a series for each model and stack with at least one timed run."""
    groups: dict[tuple[object, ...], list[TrainRow]] = {}
    for row in rows:
        groups.setdefault(_key(row, catalogue), []).append(row)
    timed = [row for row in rows if row.step_s is not None]
    sizes = [_sizes(group) for group in groups.values() if any(row.step_s for row in group)]
    said = calibrated_estimates([row for own in sizes for row in own], catalogue, timed)
    found: list[StepSeries] = []
    for own in sizes:
        known = [(row, said[row]) for row in own if row in said]
        found.append(_series(known, {one.name for one in found}))
    return tuple(found)


def calibrated_estimates(
    configs: Sequence[TrainConfig], catalogue: Catalogue, timed: Sequence[TrainRow]
) -> Mapping[TrainConfig, PlannerEstimate]:
    """Return planner estimates of configurations after calibration with timed runs.

    Impossible layouts are left out: an extrapolated series ends there.
    """
    requested = list(dict.fromkeys(configs))
    found: dict[TrainConfig, PlannerEstimate] = {}
    for config, answer in zip(requested, estimate_train(requested, catalogue, timed), strict=True):
        if isinstance(answer, TrainEstimate):
            low, high = answer.interval_s
            found[config] = PlannerEstimate(answer.tokens_per_s_per_gpu, (high / low) ** 0.5 - 1.0)
    return found


def _key(row: TrainRow, catalogue: Catalogue) -> tuple[object, ...]:
    """Return what the runs of one series have in common, however it is spelled."""
    try:
        filled = fill(row, catalogue)
    except InputError as error:
        raise InputError(
            error.code, f"run `{row.id}` is not possible: {error.message}", error.hint
        ) from None
    plan = filled.plan
    stack = version_family(stack_key(row.stack or ""))
    work = (float(plan.seq), float(plan.precision), float(plan.recompute))
    return filled.shape, filled.part.name, stack, *work


def _sizes(group: Sequence[TrainRow]) -> list[TrainRow]:
    """Return the runs of today's size, the largest one timed, and all larger ones."""
    today = max(row.gpus for row in group if row.step_s is not None)
    here = [row for row in group if row.gpus == today and row.step_s is not None]
    larger = sorted((row for row in group if row.gpus > today), key=lambda row: row.gpus)
    known = [*here, *larger]
    return [*known, *_grown(known[-1], group)]


def _grown(row: TrainRow, group: Sequence[TrainRow]) -> list[TrainRow]:
    """Return a layout on more GPUs: more replicas, with the batch size for that scale."""
    wider = _batch_grows(group)
    replicas = row.gpus // ((row.tp or 1) * (row.pp or 1) * (row.cp or 1))
    rows: list[TrainRow] = []
    by = 2
    while by <= GROWN_MOST:
        batch = row.global_batch and (row.global_batch * by if wider else row.global_batch)
        if batch and batch < replicas * by:
            break
        grown = replace(
            row,
            id=f"{row.id} times {by}",
            gpus=row.gpus * by,
            dp=row.dp and row.dp * by,
            global_batch=batch,
            step_s=None,
            memory_gib=None,
        )
        rows.append(grown)
        by *= 2
    return rows


def _batch_grows(group: Sequence[TrainRow]) -> bool:
    """Return whether the batch grows with the GPUs in all rows; a single size keeps its batch."""
    each = {(row.global_batch or 0) / row.gpus for row in group}
    return len({row.gpus for row in group}) > 1 and len(each) == 1


def _series(known: Sequence[tuple[TrainRow, PlannerEstimate]], taken: set[str]) -> StepSeries:
    """Return one series; of several runs of the same size the fastest counts."""
    first = known[0][0]
    best: dict[int, PlannerEstimate] = {}
    for row, said in known:
        best[row.gpus] = max(best.get(row.gpus, said), said)
    sizes, today = sorted(best), best[first.gpus]
    name = f"model {_model(first)} on {first.accelerator}"
    shares = {gpus: best[gpus].tokens_per_s_per_gpu / today.tokens_per_s_per_gpu for gpus in sizes}
    return StepSeries(
        name=f"{name} as {first.id}" if name in taken else name,
        gpus=first.gpus,
        scaling=_to_the_end(shares),
        spreads=tuple((gpus, _beyond(best[gpus].spread, today.spread)) for gpus in sizes),
    )


def _beyond(spread: float, today: float) -> float:
    """Return how far a ratio may be off, given the spread of both sides.

    The uncertainty of today's size applies to larger ones too and cancels out in the ratio.
    """
    return expm1(sqrt(max(0.0, log1p(spread) ** 2 - log1p(today) ** 2)))


def _to_the_end(shares: dict[int, float]) -> tuple[tuple[int, float], ...]:
    """Return shares by size, including sizes at which GPUs idle for lack of sequences."""
    largest, first = max(shares), min(shares)
    idle = [
        (largest << bit, shares[largest] / (1 << bit)) for bit in range(1, GROWN_MOST.bit_length())
    ]
    return (*shares.items(), *(point for point in idle if point[0] <= first * GROWN_MOST))


def _model(row: TrainRow) -> str:
    if isinstance(row.model, str):
        return row.model
    return f"of {row.model.layers} layers of {row.model.hidden}"
