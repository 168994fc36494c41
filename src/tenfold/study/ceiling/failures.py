"""Ceilings of reliability: where checkpoints and failures take more time than allowed.

Two layers share one time budget. With checkpoints at the write rate of the tier, that tier is the
limit; with free checkpoints only failures are left, and no storage helps against those.
"""

from collections.abc import Callable

import numpy as np

from tenfold.physics.arrays import Floats
from tenfold.physics.operations.goodput import (
    best_interval_s,
    checkpoint_bytes,
    checkpoint_s,
    failures_per_s,
    goodput,
)
from tenfold.study.ceiling.compute import NO_MODEL
from tenfold.study.ceiling.design import GPUS_SEARCHED_MAX, Design
from tenfold.study.ceiling.layers import CeilingGrade, LayerBuilder, LayerCeiling, worst
from tenfold.study.ceiling.storage import NO_TIER

NODES_SEARCHED = 4 * GPUS_SEARCHED_MAX
GRID_POINTS = 400


def checkpoint_write(design: Design) -> LayerCeiling:
    """Return the largest job whose checkpoints and failures stay within the time allowed."""
    tier = max(design.tiers, key=lambda one: one.write_bandwidth, default=None)
    name = LayerBuilder(
        "checkpoint-write", f"tier {tier.id} writes" if tier else "", design.gpus_today
    )
    if tier is None:
        return name.unknown(NO_TIER.format(site=design.site))
    if design.request is None:
        return name.unknown(NO_MODEL)
    ceiling = _largest(design, lambda nodes: _share_left(design, nodes))
    size_tb = float(checkpoint_bytes(np.asarray(float(design.request.shape.params)))) / 1e12
    grade: CeilingGrade = "supposed" if "write_gb_per_s" in tier.defaulted else "stated"
    text = (
        f"at this size, {size_tb:.2g} TB checkpoints at {tier.write_bandwidth / 1e9:,.0f} GB/s and "
        f"failures (preset `{design.train.failures}`) take {_allowed(design)}"
    )
    return _layer(design, name, ceiling, worst(grade, _preset_grade(design)), text)


def failures(design: Design) -> LayerCeiling:
    """Return the largest job that failures alone leave enough time, with free checkpoints."""
    name = LayerBuilder("failures", f"failure rate of `{design.train.failures}`", design.gpus_today)
    ceiling = _largest(design, lambda nodes: _share_left_free(design, nodes))
    per_day = float(_rate_per_s(design, np.asarray([max(ceiling, 1.0)]))[0]) * 86_400
    text = (
        f"at {per_day:.1f} failures a day, detection and restarts take {_allowed(design)}, "
        "even with instant checkpoints"
    )
    return _layer(design, name, ceiling, _preset_grade(design), text)


def _layer(
    design: Design, name: LayerBuilder, nodes: float, grade: CeilingGrade, text: str
) -> LayerCeiling:
    if nodes >= NODES_SEARCHED:
        return name.free(grade, f"less than {_allowed(design)} at any size checked")
    return name.binds(int(nodes) * design.target.gpus_per_node, grade, text)


def _allowed(design: Design) -> str:
    return f"{design.question.loss_share_max:.0%} of the time"


def _preset_grade(design: Design) -> CeilingGrade:
    return "assumption" if design.question.failures is None else "supposed"


def _rate_per_s(design: Design, nodes: Floats) -> Floats:
    return failures_per_s(nodes * design.target.gpus_per_node, design.target.reliability)


def _share_left(design: Design, nodes: Floats) -> Floats:
    """Return the share of time spent training, at the best checkpoint interval."""
    target, request = design.target, design.request
    assert request is not None, "a checkpoint is of a model"
    gpus = nodes * target.gpus_per_node
    save_s = checkpoint_s(
        checkpoint_bytes(np.full(len(nodes), float(request.shape.params))),
        np.asarray(target.checkpoint_bytes_per_s),
        gpus,
        np.asarray(target.nic_bytes_per_s),
    )
    interval_s = best_interval_s(gpus, target.reliability, save_s)
    return goodput(gpus, target.reliability, save_s, interval_s).ettr


def _share_left_free(design: Design, nodes: Floats) -> Floats:
    """Return the same with free checkpoints: only detection and restarts are left."""
    down_s = design.target.reliability.detection_s + design.target.reliability.restart_s
    return np.exp(-np.minimum(_rate_per_s(design, nodes) * down_s, 600.0))


def _largest(design: Design, share_left: Callable[[Floats], Floats]) -> float:
    """Return the most nodes within the time allowed: a coarse grid, then every node."""
    least = 1.0 - design.question.loss_share_max
    grid = np.unique(np.floor(np.geomspace(1.0, NODES_SEARCHED, GRID_POINTS)))
    good = np.flatnonzero(share_left(grid) >= least)
    if not len(good):
        return 0.0
    place = int(good[-1])
    if place == len(grid) - 1:
        return float(grid[-1])
    fine = np.arange(int(grid[place]), int(grid[place + 1])).astype(np.float64)
    return float(fine[np.flatnonzero(share_left(fine) >= least)[-1]])
