"""Calibrate a profile with observed runs: update its coefficients and model the residual.

The analytic model predicts log(step) from a profile's coefficients. Observed runs update them by a
linearised Bayesian step (so three launch-bound runs move the launch floor, not the matmul
efficiency), and the residual becomes an offset that similar runs share: a Gaussian process.
With no observation both are zero and the interval is the profile's own.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tenfold.physics.training.arrays import Accelerator, Plans, Shape
from tenfold.physics.training.coefficients import NAMES, with_coefficients
from tenfold.physics.training.profile import TrainingProfile
from tenfold.physics.training.step import CHUNK_ROWS, straggling, time_plans

Floats = NDArray[np.float64]
# Normal quantile of an 80% interval.
INTERVAL_Z = 1.2816
ITERATIONS = 5
NUDGE = 1e-3
# Width of an unseen stack's own offset: leave-source-out misses of whole stacks.
UNSEEN_STACK = 0.15
# Starts of the search, in widths of the floors' own prior.
FLOOR_STARTS = (0.0, 0.8, 1.6)
FLOOR_COEFFICIENTS = np.array([float(name in {"launch_s", "moe_launch_s"}) for name in NAMES])


@dataclass(frozen=True, slots=True)
class Similarity:
    """Standard deviations (log time) of the residual, and its length scales."""

    family: float = 0.03
    stack: float = 0.04
    part: float = 0.04
    shape: float = 0.10
    twin: float = 0.06
    drift: float = 0.004
    noise: float = 0.025
    scales: tuple[float, ...] = (1.0, 1.0, 1.5, 1.5, 1.0, 1.0, 1.5, 2.0, 1.0, 1.0, 1.5)


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of one family on one accelerator generation, as arrays.

    `stack` (framework and version) and `part` (accelerator) name what pairs of runs may share;
    one name alone holds for all runs, which spares a search the comparison of strings.
    """

    shape: Shape
    plans: Plans
    accelerator: Accelerator
    stack: NDArray[np.str_]
    part: NDArray[np.str_]


@dataclass(frozen=True, slots=True)
class Traits:
    """The features that similarity is computed from; a single name applies to all runs."""

    features: Floats
    scale: Floats
    stack: NDArray[np.str_]
    part: NDArray[np.str_]


@dataclass(frozen=True, slots=True)
class Anchors:
    """Published runs of a family whose residuals correct their neighbours; ships with a profile."""

    traits: Traits
    weights: Floats


@dataclass(frozen=True, slots=True)
class Prior:
    """A profile before observed runs: its coefficients and their standard deviations (`sigma`)."""

    profile: TrainingProfile
    coefficients: Floats
    sigma: Floats
    like: Similarity
    anchors: Anchors | None = None


@dataclass(frozen=True, slots=True)
class Calibration:
    """A calibrated profile, with what is needed to correct and bound new predictions."""

    profile: TrainingProfile
    like: Similarity
    prior_sigma: Floats
    coefficients: Floats
    seen_slopes: Floats
    seen: Traits
    weights: Floats
    inverse: Floats
    anchors: Anchors | None = None


def calibrate(start: Prior, runs: Runs, observed_s: Floats) -> Calibration:
    """Fit a profile to observed steps, within the uncertainty of its coefficients.

    A launch floor well below the work has no slope, so the search also starts from raised floors
    and keeps the most probable end.
    """
    traits, count = traits_of(runs), len(observed_s)
    coefficients, sigma, like, anchors = start.coefficients, start.sigma, start.like, start.anchors
    empty = np.zeros((count, len(coefficients))), np.zeros(count), np.eye(count)
    best, lowest = (coefficients, *empty), np.inf
    offset = similarity_of(traits, traits, like) + like.noise**2 * np.eye(count)
    target = np.log(observed_s) - anchor_offset(traits, anchors, like)
    for shift in FLOOR_STARTS if count else ():
        first = coefficients + shift * sigma * FLOOR_COEFFICIENTS
        end, cost = _settle(start, first, runs, target, offset)
        if cost < lowest:
            best, lowest = end, cost
    current, slopes, weights, inverse = best
    return Calibration(
        profile=with_coefficients(start.profile, current),
        like=like,
        prior_sigma=sigma,
        coefficients=current,
        seen_slopes=slopes,
        seen=traits,
        weights=weights,
        inverse=inverse,
        anchors=anchors,
    )


def _settle(
    start: Prior, first: Floats, runs: Runs, target: Floats, offset: Floats
) -> tuple[tuple[Floats, Floats, Floats, Floats], float]:
    """Iterate the linearised update from a start; return its end and how improbable it is."""
    profile, coefficients, sigma, current = start.profile, start.coefficients, start.sigma, first
    slopes, weights, inverse = (
        np.zeros((len(target), len(coefficients))),
        np.zeros_like(target),
        offset,
    )
    for _ in range(ITERATIONS):
        base, slopes = _linearise(profile, current, runs)
        innovation = target - base + slopes @ (current - coefficients)
        gram = (slopes * sigma**2) @ slopes.T + offset
        # A run far outside what its profile allows is often a different setup; trust it less.
        excess = np.maximum(np.abs(innovation) - 2.5 * np.sqrt(np.diag(gram)), 0.0)
        inverse = np.asarray(np.linalg.inv(gram + np.diag(excess**2)), np.float64)
        weights = inverse @ innovation
        move = np.clip(sigma**2 * (slopes.T @ weights), -3.0 * sigma, 3.0 * sigma)
        current = coefficients + move
    miss = target - np.log(_steps(with_coefficients(profile, current), runs))
    cost = float(
        miss @ np.linalg.solve(offset, miss) + np.sum(((current - coefficients) / sigma) ** 2)
    )
    return (current, slopes, weights, inverse), cost


def predict(calibration: Calibration, runs: Runs) -> tuple[Floats, Floats]:
    """Return (log step, its standard deviation) of new runs."""
    own, like, traits = calibration, calibration.like, traits_of(runs)
    base, slopes = _linearise(own.profile, own.coefficients, runs)
    base += anchor_offset(traits, own.anchors, like)
    prior = like.family**2 + like.stack**2 + like.part**2 + like.shape**2 + like.twin**2
    prior = prior + like.noise**2 + (like.drift * traits.scale) ** 2
    prior = prior + ((slopes * own.prior_sigma) ** 2).sum(1)
    # Neighbours among the anchors have already paid for most of that.
    near = nearness(traits, own.anchors, like)
    if len(own.weights) == 0:
        return base, np.sqrt(_settled(prior, near, own.profile))
    shared = similarity_of(traits, own.seen, like)
    cross = shared + (slopes * own.prior_sigma**2) @ own.seen_slopes.T
    explained = np.einsum("ij,jk,ik->i", cross, own.inverse, cross)
    left = np.maximum(prior - explained, like.noise**2)
    return base + shared @ own.weights, np.sqrt(_settled(left, near, own.profile))


def _settled(variance: Floats, near: Floats, profile: TrainingProfile) -> Floats:
    """Return variances drawn towards what a profile leaves unexplained, as far as it is near."""
    known = np.minimum(variance, float(profile.sigma) ** 2)
    return near * known + (1.0 - near) * variance


def correction(calibration: Calibration, runs: Runs) -> Floats:
    """Return the factor on physics steps: what a search multiplies its plans by."""
    own, traits = calibration, traits_of(runs)
    factor = np.empty(len(traits.scale))
    for begin in range(0, len(factor), CHUNK_ROWS):
        rows = slice(begin, begin + CHUNK_ROWS)
        part = _some(traits, rows)
        offset = anchor_offset(part, own.anchors, own.like)
        if len(own.weights):
            offset += similarity_of(part, own.seen, own.like) @ own.weights
        factor[rows] = np.exp(offset)
    return factor


def _some(traits: Traits, rows: slice) -> Traits:
    """Return the traits of some runs; names that hold for all stay as they are."""
    stack = traits.stack if len(traits.stack) == 1 else traits.stack[rows]
    part = traits.part if len(traits.part) == 1 else traits.part[rows]
    return Traits(traits.features[rows], traits.scale[rows], stack, part)


def anchor_offset(traits: Traits, anchors: Anchors | None, like: Similarity) -> Floats:
    """Return the log correction that published neighbours support."""
    if anchors is None:
        return np.zeros(len(traits.scale))
    return similarity_of(traits, anchors.traits, local(like)) @ anchors.weights


def local(like: Similarity) -> Similarity:
    """Return what published runs share with their neighbours alone.

    What a whole stack or part has in common is in its profile; a correction that carried
    it too would be wrong for runs that are unlike the published ones.
    """
    return replace(like, family=0.0, stack=0.0, part=0.0, drift=0.0)


def nearness(traits: Traits, anchors: Anchors | None, like: Similarity) -> Floats:
    """Return how near the nearest published run is: 1 where it is the same, 0 far away."""
    if anchors is None:
        return np.zeros(len(traits.scale))
    shared = similarity_of(traits, anchors.traits, local(like)).max(axis=1)
    return shared / (like.shape**2 + like.twin**2)


def anchor(traits: Traits, log_residual: Floats, like: Similarity) -> Anchors:
    """Weigh the residuals log(observed / predicted) of published runs."""
    gram = similarity_of(traits, traits, local(like)) + like.noise**2 * np.eye(len(log_residual))
    excess = np.maximum(np.abs(log_residual) - 2.5 * np.sqrt(np.diag(gram)), 0.0)
    weights = np.linalg.solve(gram + np.diag(excess**2), log_residual)
    return Anchors(traits, np.asarray(weights, np.float64))


def unseen(like: Similarity) -> Similarity:
    """Return the similarity for an unseen stack: its own offset is far less certain."""
    return replace(like, stack=UNSEEN_STACK)


def interval(step_s: Floats, log_sigma: Floats) -> tuple[Floats, Floats]:
    """Return the 80% interval around predicted steps."""
    width = np.exp(INTERVAL_Z * log_sigma)
    return step_s / width, step_s * width


def features_of(shape: Shape, plans: Plans) -> Floats:
    """Return what makes two runs alike, mostly in doublings."""
    micro_batches = plans.global_batch / (plans.dp * plans.micro_batch)
    columns = [
        np.log2(shape.hidden),
        np.log2(shape.layers),
        np.log2(plans.seq),
        np.log2(plans.micro_batch * plans.seq / plans.cp),
        np.log2(plans.tp),
        np.log2(plans.pp),
        np.log2(np.maximum(micro_batches, 1.0)),
        np.log2(np.maximum(shape.experts, 1.0)),
        np.asarray(plans.precision, float),
        np.where(np.asarray(plans.recompute) == 2, plans.recompute_share, 0.0),
        np.log2(plans.ep),
    ]
    size = np.size(plans.gpus)
    return np.stack([np.broadcast_to(np.asarray(c, float), (size,)) for c in columns], axis=1)


def scale_of(plans: Plans) -> Floats:
    """Return the straggling scale, along which stacks drift."""
    return np.asarray(straggling(plans.gpus), float)


def _linearise(profile: TrainingProfile, coefficients: Floats, runs: Runs) -> tuple[Floats, Floats]:
    """Return log steps and their slopes along every coefficient."""
    base = np.log(_steps(with_coefficients(profile, coefficients), runs))
    slopes = np.empty((len(base), len(coefficients)))
    for j in range(len(coefficients)):
        moved = coefficients.copy()
        moved[j] += NUDGE
        slopes[:, j] = (np.log(_steps(with_coefficients(profile, moved), runs)) - base) / NUDGE
    return base, slopes


def _steps(profile: TrainingProfile, runs: Runs) -> Floats:
    return np.asarray(time_plans(runs.shape, runs.plans, runs.accelerator, profile).step_s)


def traits_of(runs: Runs) -> Traits:
    """Return the features of runs that similarity needs."""
    features = features_of(runs.shape, runs.plans)
    return Traits(features, scale_of(runs.plans), runs.stack, runs.part)


def similarity_of(a: Traits, b: Traits, like: Similarity) -> Floats:
    """Return how much of their offsets two sets of runs of one family share."""
    scales = np.asarray(like.scales)
    left, right = a.features / scales, b.features / scales
    square = (left**2).sum(1)[:, None] + (right**2).sum(1)[None] - 2.0 * left @ right.T
    near = np.exp(-0.5 * np.maximum(square, 0.0))
    stack = a.stack[:, None] == b.stack[None]
    part = stack & (a.part[:, None] == b.part[None])
    total = like.family**2 + like.stack**2 * stack + like.part**2 * part
    total = total + (like.shape**2 + like.twin**2 * stack) * near
    return total + like.drift**2 * a.scale[:, None] * b.scale[None]
