"""Calibrate a profile with observed runs: update its coefficients and model the residual.

The analytic model predicts log(step) from a profile's coefficients. Observed runs update them by a
linearised Bayesian step (so three launch-bound runs move the launch floor, not the matmul
efficiency), and the residual becomes an offset that similar runs share: a Gaussian process.
With no observation both are zero and the interval is the profile's own.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tenfold.physics.training.arrays import Accelerator, Plans, Shape, take
from tenfold.physics.training.coefficients import NAMES, with_coefficients
from tenfold.physics.training.profile import TrainingProfile
from tenfold.physics.training.step import CHUNK_ROWS, straggling, time_plans

Floats = NDArray[np.float64]
FEW = 3
# Misses (log time, root mean square) from which a profile is of another stack: below the first,
# nine of ten runs of stacks that were left out whole missed by less.
REFUTED = (0.15, 0.20)
# Normal quantile of an 80% interval.
INTERVAL_Z = 1.2816
ITERATIONS = 5
NUDGE = 1e-3
# Width of an unseen stack's own offset: leave-source-out misses of whole stacks.
UNSEEN_STACK = 0.15
# Intervals widen with the distance to the nearest known run, in length scales of similarity and of
# straggling. Up to NEAR, runs are alike; from there to FAR, sources left out whole missed by up to
# FAR_WIDTH more (log time), and families left out whole by no more than WIDEST.
NEAR, FAR = 2.0, 5.0
FAR_WIDTH, WIDEST = 0.20, 0.30
STRAGGLING_LENGTH = 1.5
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
    trust: float = 1.0
    """How much of what the observed runs say is kept."""


def calibrate(start: Prior, runs: Runs, observed_s: Floats) -> Calibration:
    """Fit a profile to observed steps, as far as they predict each other better than it does.

    A few runs that happen to be odd would make all others worse, so each of them is predicted from
    the rest: what that gains decides how far the profile moves.
    """
    fitted = _fitted(start, runs, observed_s)
    trust = _trust(start, runs, observed_s)
    moved = start.coefficients + trust * (fitted.coefficients - start.coefficients)
    return replace(
        fitted,
        profile=with_coefficients(start.profile, moved),
        coefficients=moved,
        weights=trust * fitted.weights,
        trust=trust,
    )


def _trust(start: Prior, runs: Runs, observed_s: Floats) -> float:
    """Return how much of a fit to keep: all where few runs predict each other, 0 where they do not.

    It is also kept as far as most of them err to one side, and where the profile is so far off
    that any fit is better. More than a few outvote an odd one, as `_settle` trusts those less.
    """
    count = len(observed_s)
    if not 0 < count <= FEW:
        return 1.0
    nothing = np.zeros(0, np.intp)
    base, _ = predict(_fitted(start, _pick(runs, nothing), observed_s[nothing]), runs)
    miss = np.log(observed_s) - base
    if count == 1:
        # One run cannot tell its own oddity from what its stack has in common.
        return float(miss @ miss / (miss @ miss + start.like.twin**2))
    left = miss.copy()
    for held in range(count):
        kept, one = np.delete(np.arange(count), held), np.array([held])
        own = _fitted(start, _pick(runs, kept), observed_s[kept])
        left[held] = np.log(observed_s[held]) - predict(own, _pick(runs, one))[0][0]
    square = max(float(miss @ miss), 1e-12)
    predicted = np.clip(4.0 * (1.0 - left @ left / square), 0.0, 1.0)
    refuted = np.clip((np.sqrt(square / count) - REFUTED[0]) / (REFUTED[1] - REFUTED[0]), 0.0, 1.0)
    shared = _shared(miss) ** 2
    return max(float(predicted), float(refuted), shared / (shared + start.like.twin**2))


def _shared(miss: Floats) -> float:
    """Return the least miss of the majority that err to one side; 0 if there is no majority."""
    high, low = miss[miss > 0], miss[miss < 0]
    if len(high) == len(low):
        return 0.0
    return float(high.min()) if len(high) > len(low) else float(low.max())


def _pick(runs: Runs, index: NDArray[np.intp]) -> Runs:
    stack = runs.stack if len(runs.stack) == 1 else runs.stack[index]
    part = runs.part if len(runs.part) == 1 else runs.part[index]
    shape, plans = take(runs.shape, index), take(runs.plans, index)
    return Runs(shape, plans, take(runs.accelerator, index), stack, part)


def _fitted(start: Prior, runs: Runs, observed_s: Floats) -> Calibration:
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
    far = FAR_WIDTH * np.clip((distance(own, traits) - NEAR) / (FAR - NEAR), 0.0, 1.0)
    if len(own.weights) == 0:
        return base, _widened(_settled(prior, near, own.profile), far)
    shared = similarity_of(traits, own.seen, like)
    cross = shared + (slopes * own.prior_sigma**2) @ own.seen_slopes.T
    explained = np.einsum("ij,jk,ik->i", cross, own.inverse, cross)
    explained = explained * own.trust * (2.0 - own.trust)
    left = np.maximum(prior - explained, like.noise**2)
    return base + shared @ own.weights, _widened(_settled(left, near, own.profile), far)


def _widened(variance: Floats, far: Floats) -> Floats:
    """Return the standard deviation with what distance adds, and no more than ever missed."""
    return np.minimum(np.sqrt(variance + far**2), WIDEST)


def distance(calibration: Calibration, traits: Traits) -> Floats:
    """Return how far runs are from the nearest published or observed one of their family."""
    own = calibration
    known = [own.seen] if own.anchors is None else [own.seen, own.anchors.traits]
    nearest = np.full(len(traits.scale), np.inf)
    for others in known:
        if len(others.scale):
            apart = (traits.scale[:, None] - others.scale[None]) / STRAGGLING_LENGTH
            square = _square_distance(traits, others, own.like) + apart**2
            nearest = np.minimum(nearest, square.min(axis=1))
    return np.sqrt(nearest)


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
    near = np.exp(-0.5 * _square_distance(a, b, like))
    stack = a.stack[:, None] == b.stack[None]
    part = stack & (a.part[:, None] == b.part[None])
    total = like.family**2 + like.stack**2 * stack + like.part**2 * part
    total = total + (like.shape**2 + like.twin**2 * stack) * near
    return total + like.drift**2 * a.scale[:, None] * b.scale[None]


def _square_distance(a: Traits, b: Traits, like: Similarity) -> Floats:
    scales = np.asarray(like.scales)
    left, right = a.features / scales, b.features / scales
    square = (left**2).sum(1)[:, None] + (right**2).sum(1)[None] - 2.0 * left @ right.T
    return np.maximum(square, 0.0)
