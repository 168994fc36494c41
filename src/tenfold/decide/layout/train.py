"""Plan a training job: ranked layouts, the Pareto front, the scaling curve and the reasons.

With a deadline the cheapest size that meets it is chosen, with a budget the fastest
within it, and with neither the knee of the scaling curve.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from tenfold.decide.layout.batches import best_batch, better_batch, tokens_per_s
from tenfold.decide.layout.families import why
from tenfold.decide.layout.outcome import Outcome, outcome_at
from tenfold.decide.layout.request import PlanningTarget, TrainRequest
from tenfold.decide.layout.scaling import ScalingCurve, curve, sizes
from tenfold.decide.layout.search import Timed, search
from tenfold.model.reason import Misfit, Reason, Value

SECONDS_PER_DAY = 86_400
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
    chosen, choice = _choose(request, found, made)
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
    other = better_batch(chosen)
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


def _choose(
    request: TrainRequest, found: list[Timed], made: ScalingCurve
) -> tuple[Timed, list[Reason]]:
    """Return the size to recommend, and why that one."""
    if request.job.gpus is not None:
        exact = [timed for timed in found if timed.gpus == request.job.gpus]
        return (exact or found)[-1], []
    heads = [(timed, outcome_at(timed, 0)) for timed in found if timed.gpus in made.judged]
    if request.job.tokens is not None and request.job.deadline_s is not None:
        days = request.job.deadline_s / SECONDS_PER_DAY
        in_time = [pair for pair in heads if pair[1].run and pair[1].run.days <= days]
        if (
            in_time
            and request.job.budget_usd is not None
            and _least(in_time) > request.job.budget_usd
        ):
            best = min(in_time, key=lambda pair: _usd(pair[1]))
            return best[0], [_missed("budget", request.job.budget_usd, best[1])]
        if in_time:
            best = min(in_time, key=lambda pair: (_usd(pair[1]), pair[0].gpus))
            return best[0], [_met("deadline", days, best[1])]
        best = min(heads, key=lambda pair: _days(pair[1]))
        return best[0], [_missed("deadline", days, best[1])]
    if request.job.tokens is not None and request.job.budget_usd is not None:
        within = [pair for pair in heads if _usd(pair[1]) <= request.job.budget_usd]
        if within:
            best = min(within, key=lambda pair: _days(pair[1]))
            return best[0], [_met("budget", request.job.budget_usd, best[1])]
        best = min(heads, key=lambda pair: _usd(pair[1]))
        return best[0], [_missed("budget", request.job.budget_usd, best[1])]
    knee = next(timed for timed in found if timed.gpus == made.knee)
    if made.scales_throughout:
        return knee, [Reason("at-the-top", {"gpus": knee.gpus})]
    return knee, [Reason("at-the-knee", {"gpus": knee.gpus})]


def _least(heads: list[tuple[Timed, Outcome]]) -> float:
    return min(_usd(outcome) for _, outcome in heads)


def _usd(outcome: Outcome) -> float:
    return outcome.run.usd if outcome.run else outcome.usd_per_step


def _days(outcome: Outcome) -> float:
    return outcome.run.days if outcome.run else outcome.step_s


def _met(what: str, limit: float, outcome: Outcome) -> Reason:
    return Reason(f"{what}-met", _compared(limit, outcome))


def _missed(what: str, limit: float, outcome: Outcome) -> Reason:
    return Reason(f"{what}-missed", _compared(limit, outcome))


def _compared(limit: float, outcome: Outcome) -> dict[str, Value]:
    days, usd = float(_days(outcome)), float(_usd(outcome))
    return {"limit": limit, "gpus": outcome.plan.gpus, "days": days, "usd": usd}


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
