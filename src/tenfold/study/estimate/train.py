"""Estimate training steps: fill in defaults, predict, and break the time down.

Rows of one family of stacks on one generation of accelerators are predicted together,
since observed runs of the family refine all of them.
"""

from collections.abc import Sequence

import numpy as np

from tenfold.model.errors import InputError
from tenfold.model.estimate import NoEstimate, RowId, TrainConfig, TrainEstimate, TrainRow
from tenfold.model.facts.catalogue import Catalogue
from tenfold.physics.arrays import Floats
from tenfold.physics.training.arrays import model_flops_per_token
from tenfold.physics.training.calibration import Calibration, Runs, interval, predict
from tenfold.physics.training.memory import fits, memory_of
from tenfold.physics.training.names import generation_of
from tenfold.physics.training.step import StepTimes, time_plans
from tenfold.study.estimate.fill import FilledConfig, calibrated, fill, runs_of

GIB = float(1 << 30)
PARTS = tuple(name for name in StepTimes.__slots__ if name != "step_s")
Group = tuple[str, str]


def estimate_train(
    configs: Sequence[TrainConfig], catalogue: Catalogue, observed: Sequence[TrainRow] = ()
) -> list[TrainEstimate | NoEstimate]:
    """Return one estimate for each configuration, in order; plans are named by position."""
    answers: list[TrainEstimate | NoEstimate | None] = [None] * len(configs)
    groups: dict[Group, list[tuple[int, FilledConfig]]] = {}
    for place, config in enumerate(configs):
        try:
            filled = fill(config, catalogue)
        except InputError as error:
            text = f"{error.message}; {error.hint}"
            answers[place] = NoEstimate(id=_id(config, place), error=text)
            continue
        groups.setdefault(_group(filled), []).append((place, filled))
    seen = _observed(observed, catalogue)
    for group, members in groups.items():
        known = seen.get(group, [])
        for place, answer in _answers(members, known):
            answers[place] = answer
    return [answer for answer in answers if answer is not None]


def _id(config: TrainConfig, place: int) -> RowId:
    return config.id if isinstance(config, TrainRow) else f"plan-{place + 1}"


def _group(filled: FilledConfig) -> Group:
    return filled.entry.family, generation_of(filled.part.name)


def _observed(rows: Sequence[TrainRow], catalogue: Catalogue) -> dict[Group, list[FilledConfig]]:
    """Return observed runs by group; raise `InputError` for an impossible one."""
    groups: dict[Group, list[FilledConfig]] = {}
    for number, row in enumerate(rows, start=1):
        if row.step_s is None:
            raise InputError(
                "missing-key",
                f"observed run {number} has no `step_s`",
                "add the measured seconds per step",
                line=number,
            )
        filled = fill(row, catalogue)
        groups.setdefault(_group(filled), []).append(filled)
    return groups


def _answers(
    members: Sequence[tuple[int, FilledConfig]], known: Sequence[FilledConfig]
) -> list[tuple[int, TrainEstimate]]:
    filled = [one for _, one in members]
    runs = runs_of(filled)
    own = calibrated(filled[0].entry, known)
    log_s, sigma = predict(own, runs)
    return _estimates(members, runs, own, np.exp(log_s), sigma)


def _estimates(
    members: Sequence[tuple[int, FilledConfig]],
    runs: Runs,
    own: Calibration,
    step_s: Floats,
    sigma: Floats,
) -> list[tuple[int, TrainEstimate]]:
    low, high = interval(step_s, sigma)
    times = time_plans(runs.shape, runs.plans, runs.accelerator, own.profile)
    memory = memory_of(runs.shape, runs.plans, own.profile)
    size = len(step_s)
    peak = np.broadcast_to(np.asarray(memory.peak_bytes), (size,))
    fits_memory = np.broadcast_to(np.asarray(fits(memory, runs.accelerator)), (size,))
    tokens = np.asarray(runs.plans.global_batch) * np.asarray(runs.plans.seq)
    flops = np.asarray(model_flops_per_token(runs.shape, runs.plans.seq))
    # Parts come from the analytic model, scaled to the calibrated step time.
    scale = step_s / np.asarray(times.step_s)
    estimates: list[tuple[int, TrainEstimate]] = []
    for at, (place, one) in enumerate(members):
        per_gpu = float(tokens[at] / step_s[at] / one.config.gpus)
        tflops = per_gpu * float(flops[at]) / 1e12
        parts = {
            name: float(np.broadcast_to(np.asarray(getattr(times, name)), (size,))[at] * scale[at])
            for name in PARTS
        }
        estimate = TrainEstimate(
            id=_id(one.config, place),
            notes=_notes(one, runs, at),
            step_s=float(step_s[at]),
            interval_s=(float(low[at]), float(high[at])),
            tokens_per_s_per_gpu=per_gpu,
            model_tflops_per_gpu=tflops,
            mfu=tflops / _peak_tflops(one),
            memory_gib=float(peak[at]) / GIB,
            fits=bool(fits_memory[at]),
            bottleneck=max(parts, key=lambda name: parts[name]).removesuffix("_s"),
            breakdown_s=parts,
        )
        estimates.append((place, estimate))
    return estimates


def _notes(one: FilledConfig, runs: Runs, at: int) -> tuple[str, ...]:
    if one.micro_known:
        return one.notes
    micro = float(np.asarray(runs.plans.micro_batch)[at])
    return (*one.notes, f"micro-batch of {micro:g} assumed: the fastest that fits")


def _peak_tflops(one: FilledConfig) -> float:
    part, precision = one.part, one.config.precision or "bf16"
    wider = (part.fp8_tflops,) if precision == "fp4" else ()
    peaks = (part.peak_tflops(precision), *wider, part.training_tflops, 1.0)
    return next(peak for peak in peaks if peak)
