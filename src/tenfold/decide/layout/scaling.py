"""How throughput grows with GPUs: the curve, its knee, and where it falls."""

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from tenfold.decide.layout.batches import CLOSE, best_batch, better_batch, tokens_per_s
from tenfold.decide.layout.request import PlanningTarget, TrainRequest
from tenfold.decide.layout.search import Timed, breakdown_at, plan_at
from tenfold.model.plan import TrainPlan
from tenfold.model.reason import Reason, Value

KNEE_RETURN = 0.7
"""The knee is the last size up to which each doubling returns at least this share."""
SIZES_MAX = 24
GROWN_LEAST = 0.01
"""Growth of a part's share of the step below which it does not explain lost throughput."""


class ScalePoint(Struct, frozen=True, kw_only=True):
    """The best layout at one size. `efficiency` is per GPU, relative to the best size."""

    gpus: int
    step_s: float
    tokens_per_s: float
    efficiency: float
    plan: TrainPlan
    breakdown_s: dict[str, float]


class ScalingCurve(Struct, frozen=True, kw_only=True):
    """Sizes that fit, from the smallest; `knee` and `slower_from` are numbers of GPUs."""

    points: tuple[ScalePoint, ...]
    global_batch: int
    """Sequences per step as requested; a size that they do not divide over has another number."""
    searched: int
    knee: int | None
    slower_from: int | None
    reasons: tuple[Reason, ...]
    judged: tuple[int, ...] = ()
    """The sizes that the knee is chosen from: those that the requested batch divides over."""

    @property
    def scales_throughout(self) -> bool:
        """Whether throughput still scales at the largest size tried."""
        return bool(self.points) and self.knee == max(self.judged)


def sizes(target: PlanningTarget, most: int | None = None) -> list[int]:
    """Return sizes to try: doublings up to a node, then 1, 2, 3, 4, 6, 8, 12 nodes..., then all."""
    largest = min(target.gpus, most or target.gpus)
    node = target.gpus_per_node
    doubled = [1 << bit for bit in range(SIZES_MAX)]
    steps = [size for size in doubled if size <= node or size % node == 0]
    steps += [node * nodes for nodes in (*doubled, *(3 * one for one in doubled))]
    return sorted(dict.fromkeys([*(size for size in steps if size <= largest), largest]))


def curve(
    request: TrainRequest, target: PlanningTarget, counts: Sequence[int]
) -> tuple[ScalingCurve, list[Timed]]:
    """Return the best layout at each size, and the scaling curve."""
    found: list[Timed] = []
    searched = 0
    uneven: list[int] = []
    for gpus in counts:
        timed, tried = best_batch(request, target, gpus)
        searched += tried
        if timed.found:
            found.append(timed)
        elif timed.searched == 0:
            uneven.append(gpus)
    # A size that the batch does not divide over trains another run: it is shown, but not judged.
    whole = {timed.gpus for timed in found if timed.request.global_batch == request.global_batch}
    found, tried = _dips_filled(request, found)
    searched += tried
    points = _points(found)
    exact = [point for point in points if point.gpus in whole] or points
    knee, slower_from = _knee(exact), _slower_from(exact)
    made = ScalingCurve(
        points=tuple(points),
        global_batch=request.global_batch,
        searched=searched,
        knee=knee,
        slower_from=slower_from,
        judged=tuple(point.gpus for point in exact),
        reasons=(*_reasons(exact, knee, slower_from), *_uneven(uneven, request)),
    )
    return made, found


def _dips_filled(request: TrainRequest, found: list[Timed]) -> tuple[list[Timed], int]:
    """Return the sizes with a close batch wherever the requested one divides poorly.

    That is where a larger size does more per GPU: the batch is at fault there, not the size. The
    size that was asked for keeps its batch.
    """
    filled: list[Timed] = []
    searched = 0
    best = 0.0
    for timed in reversed(found):
        better = None
        if timed.gpus != request.job.gpus and _per_gpu(timed) < (1 - CLOSE) * best:
            better, tried = better_batch(timed, request.global_batch)
            searched += tried
        filled.append(better or timed)
        best = max(best, _per_gpu(filled[-1]))
    return filled[::-1], searched


def _per_gpu(timed: Timed) -> float:
    return tokens_per_s(timed) / timed.gpus


def _uneven(sizes: list[int], request: TrainRequest) -> list[Reason]:
    if not sizes:
        return []
    return [Reason("size-not-whole", {"sequences": request.global_batch, "sizes": tuple(sizes)})]


def _points(found: list[Timed]) -> list[ScalePoint]:
    rates = [tokens_per_s(timed) for timed in found]
    best = max((rate / timed.gpus for rate, timed in zip(rates, found, strict=True)), default=1.0)
    return [
        ScalePoint(
            gpus=timed.gpus,
            step_s=float(timed.step_s[0]),
            tokens_per_s=rate,
            efficiency=rate / timed.gpus / best,
            plan=plan_at(timed, 0),
            breakdown_s=breakdown_at(timed, 0),
        )
        for rate, timed in zip(rates, found, strict=True)
    ]


def _returned(before: ScalePoint, after: ScalePoint) -> float:
    """Return the gain in throughput as a share of the gain in GPUs."""
    gained = after.tokens_per_s / before.tokens_per_s - 1
    return gained / (after.gpus / before.gpus - 1)


def _knee(points: list[ScalePoint]) -> int | None:
    """Return the last size up to which every larger size still paid off."""
    if not points:
        return None
    knee = points[0].gpus
    for before, after in pairwise(points):
        if _returned(before, after) < KNEE_RETURN:
            break
        knee = after.gpus
    return knee


def _slower_from(points: list[ScalePoint]) -> int | None:
    for before, after in pairwise(points):
        if after.tokens_per_s < before.tokens_per_s:
            return after.gpus
    return None


def _reasons(points: list[ScalePoint], knee: int | None, slower_from: int | None) -> list[Reason]:
    reasons: list[Reason] = []
    for before, after in pairwise(points):
        if before.gpus == knee:
            share = _returned(before, after)
            fields = _grown(before, after)
            fields["returned"] = max(share, 0)
            reasons.append(Reason("knee", fields))
        if after.gpus == slower_from:
            reasons.append(Reason("returns-negative", _grown(before, after)))
    return reasons


def _grown(before: ScalePoint, after: ScalePoint) -> dict[str, Value]:
    """Return two sizes, and the part whose share of the step grew most, if one clearly did."""
    parts = after.breakdown_s
    share = {
        name: parts[name] / after.step_s - before.breakdown_s[name] / before.step_s
        for name in parts
        if name != "compute_s"
    }
    worst = max(share, key=lambda name: share[name])
    was = before.breakdown_s[worst] / before.step_s
    now = parts[worst] / after.step_s
    sizes: dict[str, Value] = {"gpus": before.gpus, "next": after.gpus}
    grew: dict[str, Value] = {"part": worst, "was": was, "now": now}
    return sizes | grew if now - was >= GROWN_LEAST else sizes
