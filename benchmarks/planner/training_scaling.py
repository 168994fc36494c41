"""What more GPUs cost per GPU, and which plan is best: the two questions accuracy alone hides."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.planner.training_judge import Judge, ask, observed
from benchmarks.planner.training_rows import Rows, pick
from benchmarks.verdict import Verdict
from tenfold.model.facts.catalogue import Catalogue

SPAN = 8
# A stack with this many small runs would be calibrated on far more than a user has.
KNOWN_MAX = 60
VTRAIN = "vTrain ground truth multi node"


@dataclass(frozen=True, slots=True)
class Loss:
    """Loss of per-GPU throughput between two sizes of one series, observed and predicted."""

    label: str
    gpus_from: float
    gpus_to: float
    observed: float
    predicted: float
    network_gbps: float = 0.0
    """Of each GPU, in each direction."""


def scaling_losses(judge: Judge) -> list[Loss]:
    """Return the losses of every published series with one stack that spans enough GPUs.

    A series is calibrated on runs of its stack at an eighth of its largest scale or less, with its
    source left out of the fit.
    """
    rows = judge.rows
    found: list[Loss] = []
    for index in _series(rows):
        own = pick(rows, index)
        gpus = np.asarray(own.runs.plans.gpus)
        small = gpus <= gpus.max() / SPAN
        known = _known(rows, own, float(gpus.max()) / SPAN)
        known = pick(own, small) if len(known) > KNOWN_MAX else known
        source = str(own.source[0])
        said = ask(own, judge.without(source), observed(known)).step_s
        tokens = np.asarray(own.runs.plans.global_batch) * np.asarray(own.runs.plans.seq)
        rate = tokens / gpus / np.stack([own.step_s, said])
        base = int(np.flatnonzero(small)[np.argmax(gpus[small])])
        for top in np.flatnonzero(gpus == gpus.max()):
            truth, told = (1 - rate[:, top] / rate[:, base]).tolist()
            label = f"{own.runs.stack[0]:16} {own.runs.part[0]:13} {own.model[0]}"
            gbps = float(np.asarray(own.runs.plans.nic_bytes_s)[top]) * 8 / 1e9
            found.append(Loss(label, float(gpus[base]), float(gpus[top]), truth, told, gbps))
    return found


def _series(rows: Rows) -> list[NDArray[np.intp]]:
    """Return the rows of each stack, accelerator and model that span 8x GPUs."""
    plans = rows.runs.plans
    groups: dict[tuple[object, ...], list[int]] = {}
    for at in range(len(rows)):
        if "vTrain" in rows.source[at]:
            # Its plans are good and deliberately bad ones, not one plan at several sizes.
            continue
        key = (
            rows.source[at],
            rows.runs.stack[at],
            rows.runs.part[at],
            rows.model[at],
            *(float(np.asarray(column)[at]) for column in (plans.seq, plans.precision)),
            float(np.asarray(plans.recompute)[at]),
        )
        groups.setdefault(key, []).append(at)
    gpus = np.asarray(plans.gpus)
    spans = [np.array(index, np.intp) for index in groups.values()]
    return [index for index in spans if gpus[index].max() >= SPAN * gpus[index].min()]


def _known(rows: Rows, own: Rows, gpus_max: float) -> Rows:
    alike = (rows.source == own.source[0]) & (rows.runs.stack == own.runs.stack[0])
    alike &= rows.runs.part == own.runs.part[0]
    return pick(rows, alike & (np.asarray(rows.runs.plans.gpus) <= gpus_max))


def scaling(judge: Judge, thresholds: dict[str, float]) -> list[Verdict]:
    """Print the losses and judge them against `it stays the same`."""
    losses = scaling_losses(judge)
    print("\nScaling loss per GPU, calibrated at <= 1/8 of the largest scale, source left out")
    print(f"{'stack':16} {'accelerator':13} {'model':12} {'gpus':>14} | {'seen':>6} {'said':>6}")
    for loss in losses:
        label = f"{loss.label:43} {loss.gpus_from:5.0f} -> {loss.gpus_to:5.0f}"
        print(f"{label} | {loss.observed:+6.1%} {loss.predicted:+6.1%}")
    points = 100 * float(np.median([abs(one.observed - one.predicted) for one in losses]))
    same = 100 * float(np.median([abs(one.observed) for one in losses]))
    print(f"{len(losses)} series: median error {points:.1f} points; `it stays the same` {same:.1f}")
    return [
        Verdict("scaling loss: median error", points, thresholds["scaling_points"], " points"),
        Verdict(
            "scaling loss: error over that of `it stays the same`",
            points / same,
            thresholds["scaling_over_same"],
        ),
    ]


def ranking(judge: Judge, thresholds: dict[str, float]) -> list[Verdict]:
    """Print the regret of the plan we would pick of those that vTrain measured."""
    rows = judge.of_source(VTRAIN)
    print("\nRanking, vTrain multi node: how much slower the plan picked is than the best measured")
    worst: dict[str, float] = {}
    for name, catalogue in (
        ("as shipped (rows seen)", judge.shipped),
        ("source left out", judge.without(VTRAIN)),
    ):
        regret = _regrets(rows, catalogue)
        worst[name] = max(regret.values())
        told = "  ".join(f"{model} {share:.1%}" for model, share in regret.items())
        print(f"{name:24} {told}")
    limit = thresholds["ranking_regret_percent"]
    return [
        Verdict(f"top-1 regret, {name}: worst model", 100 * share, limit, "%")
        for name, share in worst.items()
    ]


def _regrets(rows: Rows, catalogue: Catalogue) -> dict[str, float]:
    said = ask(rows, catalogue).step_s
    shape = rows.runs.shape
    models = np.array(
        [
            f"h{h:.0f} x {n:.0f}"
            for h, n in zip(np.asarray(shape.hidden), np.asarray(shape.layers), strict=True)
        ]
    )
    regrets: dict[str, float] = {}
    for model in dict.fromkeys(models.tolist()):
        own = np.flatnonzero(models == model)
        picked = own[np.argmin(said[own])]
        count = f"{model} ({len(own)} plans)"
        regrets[count] = float(rows.step_s[picked] / rows.step_s[own].min() - 1)
    return regrets
