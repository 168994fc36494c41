"""Plan a training job: ranked layouts, the Pareto front, the scaling curve and the reasons.

With a deadline the cheapest size that meets it is chosen, with a budget the fastest
within it, and with neither the knee of the scaling curve.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from tenfold.decide.layout.batches import best_batch, better_batch, tokens_per_s
from tenfold.decide.layout.choose import choose_size
from tenfold.decide.layout.families import why
from tenfold.decide.layout.outcome import Outcome, outcome_at
from tenfold.decide.layout.request import PlanningTarget, TrainRequest
from tenfold.decide.layout.scaling import ScalingCurve, curve, sizes
from tenfold.decide.layout.search import Timed, search
from tenfold.model.reason import Misfit, Reason

FRONT_PER_SIZE = 3


class TrainAnswer(Struct, frozen=True, kw_only=True):
    """Everything a layout search found."""

    searched: int
    plans: tuple[Outcome, ...]
    front: tuple[Outcome, ...]
    curve: ScalingCurve
    why: tuple[Reason, ...]


def plan_train(
    request: TrainRequest, target: PlanningTarget, *, keep: int = 10
) -> TrainAnswer | Misfit:
    """Return the best layouts of a job on a target, or why there are none."""
    if request.job.gpus is not None and request.job.gpus > target.gpus:
        return Misfit(
            (Reason("not-enough-gpus", {"asked": request.job.gpus, "alike": target.gpus}),)
        )
    made, found = curve(request, target, _counts(request, target))
    if not found:
        largest, _ = best_batch(request, target, request.job.gpus or target.gpus)
        return Misfit(tuple(why(largest)))
    chosen, choice = choose_size(request, found, made)
    if request.job.gpus is not None and chosen.gpus != request.job.gpus:
        return Misfit(tuple(why(best_batch(request, target, request.job.gpus)[0])))
    plans = tuple(outcome_at(chosen, place) for place in range(min(keep, chosen.found)))
    return TrainAnswer(
        searched=made.searched,
        plans=plans,
        front=front(_contenders(found)),
        curve=made,
        why=(
            *choice,
            *_batch(request, chosen),
            *_crossing(chosen.request, target, chosen),
            *why(chosen),
            *made.reasons,
        ),
    )


def _batch(request: TrainRequest, chosen: Timed) -> list[Reason]:
    """Return that the batch was changed to one that divides, or that another one is faster."""
    used = chosen.request.global_batch
    if used != request.global_batch:
        fields = {"asked": request.global_batch, "used": used, "gpus": chosen.gpus}
        return [Reason("batch-rounded", fields)]
    other, _ = better_batch(chosen, used)
    if other is None:
        return []
    batch = other.request.global_batch
    faster = tokens_per_s(other) / tokens_per_s(chosen) - 1
    fields = {"batch": used, "better": batch, "gpus": chosen.gpus, "faster": faster}
    return [Reason("batch-divides-poorly", fields)]


def _crossing(request: TrainRequest, target: PlanningTarget, chosen: Timed) -> list[Reason]:
    """Return the cost of forcing tensor parallelism beyond the scale-up domain."""
    if request.job.tp is None or request.job.tp <= target.scaleup_gpus:
        return []
    within = replace(request, job=replace(request.job, tp=target.scaleup_gpus))
    inside = search(within, target, chosen.gpus)
    if not inside.found:
        return []
    slower = float(chosen.step_s[0] / inside.step_s[0] - 1)
    fields = {
        "tp": request.job.tp,
        "domain": target.scaleup_gpus,
        "step_s": float(chosen.step_s[0]),
        "inside_s": float(inside.step_s[0]),
        "slower": slower,
    }
    return [Reason("tensor-crosses-domain", fields)]


def _counts(request: TrainRequest, target: PlanningTarget) -> list[int]:
    if request.job.gpus is None:
        return sizes(target)
    return sorted(dict.fromkeys([*sizes(replace(target, gpus=request.job.gpus)), request.job.gpus]))


def _contenders(found: Sequence[Timed]) -> list[Outcome]:
    return [
        outcome_at(timed, place)
        for timed in found
        for place in range(min(FRONT_PER_SIZE, timed.found))
    ]


def front(outcomes: Sequence[Outcome]) -> tuple[Outcome, ...]:
    """Return the Pareto-optimal outcomes by time, cost, GPUs and failures."""
    axes = [
        (
            one.step_s / one.effective_share,
            one.usd_per_step,
            float(one.plan.gpus),
            one.failures_per_day,
        )
        for one in outcomes
    ]
    kept: list[Outcome] = []
    for place, own in enumerate(axes):
        beaten = any(
            other != own and all(theirs <= ours for theirs, ours in zip(other, own, strict=True))
            for other in axes
        )
        twin = any(axes[earlier] == own for earlier in range(place))
        if not beaten and not twin:
            kept.append(outcomes[place])
    return tuple(kept)
