"""The fit of stack profiles: default, family, family x generation, stack, by robust least squares.

Levels add up in log (or logit) space and each deviation has a prior of mean zero, so a small
source moves its own profile a little and the default hardly at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.planner.training_rows import Rows, pick
from tenfold.physics.arrays import Floats
from tenfold.physics.training.calibration import (
    Anchors,
    Similarity,
    anchor,
    anchor_offset,
    traits_of,
)
from tenfold.physics.training.coefficients import CENTRE, NAMES, TABLE, WIDTHS, values_of
from tenfold.physics.training.profile import TrainingProfile
from tenfold.physics.training.step import time_plans

KNOBS = len(NAMES)
LIKE = Similarity()
# Anchors kept per family and generation: enough to cover, few enough to search with.
ANCHORS_MAX = 240
RESIDUAL_WIDTH = 0.06
STEPS_MAX = 60
NUDGE = 1e-4

# Gradients are new in every step, and attention gets every key and value head repeated.
COMPILED = {
    "grad_bytes": 2.0,
    "optimizer_bytes": 54.0,
    "grad_held_bytes": 0.0,
    "grad_fresh_bytes": 2.0,
    "grad_copy_bytes": 4.0,
    "kv_repeated": 1.0,
}
# Structural facts of a family, known from its documentation rather than fitted.
FIXED: dict[str, dict[str, float]] = {
    "megatron": {"flash": 0.0, "grad_bytes": 2.0},
    "megatron-deepspeed": {"flash": 0.0, "grad_bytes": 2.0},
    # Its fused loss writes the gradient over the logits.
    "llm-foundry": {"grad_bytes": 2.0, "logits_bytes": 6.0},
    # The loss over a split vocabulary keeps one softmax, which becomes the gradient.
    "megatron-core": {"logits_bytes": 8.0},
    "meta": {"logits_bytes": 8.0},
    # Memory by phase, from peaks measured on an H200: this script keeps one more vector of the
    # block, and turns gradients to single precision one by one.
    "pytorch-compile": {
        **COMPILED,
        "grad_copy_bytes": 2.85,
        "block_extra": 0.83,
        "logits_extra_bytes": 2.4,
    },
    # The compiler fuses the loss; more than this would not have fitted runs that were published.
    "maxtext": {"grad_bytes": 2.0, "logits_bytes": 6.0},
    "metaseq": {"grad_bytes": 2.0},
}
FIXED_DEFAULT = {
    "flash": 1.0,
    "grad_bytes": 4.0,
    "scatter_gather": 1.0,
    "optimizer_bytes": 45.0,
    "grad_held_bytes": 4.0,
    "grad_fresh_bytes": 0.0,
    "grad_copy_bytes": 0.0,
    "kv_repeated": 0.0,
    "block_extra": 0.0,
    "logits_extra_bytes": 0.0,
    "logits_bytes": 12.0,
}
# Stacks of a family whose memory differs from it, level by level; the rest is the family's.
VARIANTS: dict[str, tuple[tuple[str, ...], dict[str, float]]] = {
    # All gradients are copied to single precision before the optimizer runs.
    "stack:pytorch-masters@hopper": (
        ("pytorch-compile", "pytorch-compile@hopper"),
        {**COMPILED, "block_extra": 0.0, "logits_extra_bytes": 0.0},
    ),
}
# Where a family's knob is expected before any row. Eager stacks dispatch some 50 operations a
# layer pass at 13 us each, against the default's mix of compiled and graph-captured ones;
# whole-block compilers fuse the element-wise chains that others run one by one.
_EAGER = np.array([np.log(0.65e-3 / 0.2e-3) if name == "launch_s" else 0.0 for name in NAMES])
_FUSED = np.array([np.log(0.8) if name == "elementwise" else 0.0 for name in NAMES])
# Its attention is the kernel that the law was timed with.
_KERNEL = np.array(
    [-np.log(TABLE["attention"][0]) if name == "attention" else 0.0 for name in NAMES]
)
EXPECTED: dict[str, Floats] = {
    "megatron": _EAGER,
    "megatron-deepspeed": _EAGER,
    "pytorch-compile": _FUSED + _KERNEL,
    "maxtext": _FUSED,
}
# Its pipeline engine reduces gradients after the last backward pass, under nothing.
UNOVERLAPPED = ("megatron-deepspeed",)
NO_OVERLAP = float(np.log(0.005 / 0.995))


def settled(theta: Floats, family: Sequence[str]) -> Floats:
    """Fix the knobs that documentation settles, whatever the rows say."""
    late = np.array([name in UNOVERLAPPED for name in family])
    theta[late, NAMES.index("dp_overlap")] = NO_OVERLAP
    return theta


def fixed_of(family: str) -> dict[str, float]:
    """Return the documented facts of a family."""
    return FIXED_DEFAULT | FIXED.get(family, {})


def profile_from(theta: Floats, family: Sequence[str]) -> TrainingProfile:
    """Return a profile of arrays from knob positions (rows x knobs)."""
    values = values_of(theta)
    named = {name: values[:, place] for place, name in enumerate(NAMES)}
    facts = [fixed_of(name) for name in family]
    named |= {key: np.array([fact[key] for fact in facts]) for key in FIXED_DEFAULT}
    return TrainingProfile(**named)


@dataclass(frozen=True, slots=True)
class Fitted:
    """Deviations per group and their posterior; an unseen group counts as what is expected."""

    centre: Floats
    groups: dict[str, Floats]
    places: dict[str, int]
    covariance: Floats

    def theta(self, keys: Sequence[str]) -> Floats:
        """Return the knob positions of one stack, named from wide to narrow."""
        none = np.zeros(KNOBS)
        moves = [self.groups.get(key, EXPECTED.get(key, none)) for key in keys]
        family = keys[0] if keys else "default"
        return settled((self.centre + sum(moves, none))[None], [family])[0]

    def spread(self, keys: Sequence[str]) -> Floats:
        """Return how well each knob is known; an unseen level adds its prior width.

        The floor admits that rows of one source err alike.
        """
        own = np.arange(KNOBS)
        columns = [own, *(self.places[key] + own for key in keys if key in self.places)]
        variance = np.zeros(KNOBS)
        for left in columns:
            for right in columns:
                variance += self.covariance[left, right]
        for level, key in enumerate(keys):
            if key not in self.places:
                variance += WIDTHS[1 + level] ** 2
        return np.sqrt(np.maximum(variance, WIDTHS[3] ** 2))

    def step_s(self, rows: Rows) -> Floats:
        """Return the steps of rows by the physics alone."""
        theta = np.array([self.theta(keys) for keys in rows.levels.tolist()])
        profile = profile_from(theta, rows.levels[:, 0].tolist())
        runs = rows.runs
        return np.asarray(time_plans(runs.shape, runs.plans, runs.accelerator, profile).step_s)


class _Problem:
    """Centre and deviations of all groups as one vector, with cost and curvature."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.family = rows, rows.levels[:, 0].tolist()
        self.names = [sorted(set(column)) for column in rows.levels.T.tolist()]
        columns = zip(self.names, rows.levels.T, strict=True)
        self.index = [np.searchsorted(names, column) for names, column in columns]
        self.starts = np.cumsum([KNOBS, *(KNOBS * len(names) for names in self.names)])
        tiles = [np.tile(WIDTHS[1 + at], len(names)) for at, names in enumerate(self.names)]
        self.widths = np.concatenate([WIDTHS[0], *tiles])
        families = [EXPECTED.get(name, np.zeros(KNOBS)) for name in self.names[0]]
        rest = np.zeros(len(self.widths) - KNOBS * (1 + len(families)))
        self.expected = np.concatenate([np.zeros(KNOBS), *families, rest])
        self.weight = _weights(rows) / RESIDUAL_WIDTH

    def theta(self, x: Floats) -> Floats:
        total = np.repeat((CENTRE + x[:KNOBS])[None], len(self.rows), 0)
        for level, index in enumerate(self.index):
            block = x[self.starts[level] : self.starts[level + 1]].reshape(-1, KNOBS)
            total = total + block[index]
        return settled(total, self.family)

    def residual(self, theta: Floats) -> Floats:
        runs, profile = self.rows.runs, profile_from(theta, self.family)
        step_s = time_plans(runs.shape, runs.plans, runs.accelerator, profile).step_s
        return np.log(step_s / self.rows.step_s) * self.weight

    def cost(self, x: Floats, residual: Floats) -> float:
        loss = np.sum(np.sqrt(1 + residual * residual) - 1)
        return float(loss + 0.5 * np.sum(((x - self.expected) / self.widths) ** 2))

    def normal(self, x: Floats, base: Floats) -> tuple[Floats, Floats]:
        """Return gradient and curvature: reweighted least squares for the soft-L1 loss.

        A knob is nudged for all groups at once, since a row belongs to one group a level.
        """
        theta, row = self.theta(x), np.arange(len(self.rows))
        slopes = np.zeros((len(self.rows), len(x)))
        for knob in range(KNOBS):
            moved = theta.copy()
            moved[:, knob] += NUDGE
            slope = (self.residual(moved) - base) / NUDGE
            slopes[row, knob] = slope
            for level, index in enumerate(self.index):
                slopes[row, self.starts[level] + index * KNOBS + knob] = slope
        weighted = slopes / np.sqrt(1 + base * base)[:, None]
        prior = 1 / self.widths**2
        gradient = weighted.T @ base + (x - self.expected) * prior
        return gradient, slopes.T @ weighted + np.diag(prior)


def _weights(rows: Rows) -> Floats:
    """Down-weight crowded sources, and routed models, whose shapes come from model cards."""
    sources = sorted(set(rows.source.tolist()))
    share = {name: float(np.sum(rows.source == name)) ** -0.2 for name in sources}
    trust = np.where(np.asarray(rows.runs.shape.experts) > 0, 0.6, 1.0)
    return trust * np.array([share[name] for name in rows.source.tolist()])


def fit(rows: Rows) -> Fitted:
    """Fit the centre and all groups present in `rows` by damped Gauss-Newton steps."""
    problem = _Problem(rows)
    x = problem.expected.copy()
    base = problem.residual(problem.theta(x))
    value, damping = problem.cost(x, base), 1e-2
    for _ in range(STEPS_MAX):
        gradient, curvature = problem.normal(x, base)
        before = value
        for _ in range(8):
            ridge = damping * np.diag(np.diag(curvature))
            step = np.linalg.solve(curvature + ridge, -gradient)
            trial = problem.residual(problem.theta(x + step))
            cost = problem.cost(x + step, trial)
            if cost < value:
                x, base, value, damping = x + step, trial, cost, damping / 4
                break
            damping *= 6
        if before - value < 1e-4 * value:
            break
    _, curvature = problem.normal(x, base)
    groups: dict[str, Floats] = {}
    places: dict[str, int] = {}
    for level, names in enumerate(problem.names):
        for at, name in enumerate(names):
            start = int(problem.starts[level]) + at * KNOBS
            groups[name], places[name] = x[start : start + KNOBS], start
    return Fitted(CENTRE + x[:KNOBS], groups, places, np.linalg.inv(curvature))


def anchors_of(fitted: Fitted, rows: Rows) -> dict[str, Anchors]:
    """Weigh residuals per family and generation; only the crowded source is thinned."""
    group = rows.levels[:, 1]
    residual = np.log(rows.step_s / fitted.step_s(rows))
    out: dict[str, Anchors] = {}
    for name in sorted(set(group.tolist())):
        kept = _kept(rows, np.flatnonzero(group == name))
        out[name] = anchor(traits_of(pick(rows, kept).runs), residual[kept], LIKE)
    return out


def _kept(rows: Rows, index: NDArray[np.intp]) -> NDArray[np.intp]:
    source = rows.source[index]
    counts = {name: int(np.sum(source == name)) for name in sorted(set(source.tolist()))}
    kept: list[NDArray[np.intp]] = []
    for place, name in enumerate(sorted(counts, key=lambda name: counts[name])):
        own = index[source == name]
        room = (ANCHORS_MAX - sum(map(len, kept))) // (len(counts) - place)
        if len(own) > room:
            points = traits_of(pick(rows, own).runs).features / np.array(LIKE.scales)
            own = own[_far_apart(points, room)]
        kept.append(own)
    return np.concatenate(kept)


def _far_apart(points: Floats, most: int) -> NDArray[np.intp]:
    chosen, distance = [0], ((points - points[0]) ** 2).sum(1)
    while len(chosen) < most:
        farthest = int(distance.argmax())
        chosen.append(farthest)
        distance = np.minimum(distance, ((points - points[farthest]) ** 2).sum(1))
    return np.array(chosen, np.intp)


def log_error(fitted: Fitted, anchors: dict[str, Anchors], rows: Rows) -> Floats:
    """Return log(predicted / observed) of rows by profiles and anchors."""
    error = np.log(fitted.step_s(rows) / rows.step_s)
    for name in sorted(set(rows.levels[:, 1].tolist()) & set(anchors)):
        index = np.flatnonzero(rows.levels[:, 1] == name)
        error[index] += anchor_offset(traits_of(pick(rows, index).runs), anchors[name], LIKE)
    return error


def held_out_log_error(rows: Rows, seed: int = 3) -> Floats:
    """Return errors of two folds: each half predicted by tables made from the other."""
    order = np.random.default_rng(seed).permutation(len(rows))
    error = np.zeros(len(rows))
    for test, train in ((order[::2], order[1::2]), (order[1::2], order[::2])):
        kept = pick(rows, np.sort(train))
        fitted = fit(kept)
        error[test] = log_error(fitted, anchors_of(fitted, kept), pick(rows, test))
    return error
