"""Why the losing families of layouts lost, each with its figures."""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tenfold.decide.layout.request import PlanningTarget, TrainRequest
from tenfold.decide.layout.search import PARTS, Timed, breakdown_at, plan_at
from tenfold.decide.layout.space import candidates
from tenfold.model.plan import TrainPlan
from tenfold.model.reason import Reason, Value
from tenfold.physics.arrays import Floats
from tenfold.physics.training.arrays import Plans, take
from tenfold.physics.training.memory import memory_of
from tenfold.physics.training.shapes import training_shape


class LayoutFamily(Struct, frozen=True, kw_only=True):
    """A kind of layout: which axes it uses besides data parallelism."""

    code: str


FAMILIES = (
    LayoutFamily(code="data"),
    LayoutFamily(code="tensor"),
    LayoutFamily(code="pipeline"),
    LayoutFamily(code="tensor-pipeline"),
    LayoutFamily(code="context"),
)


def family_of(plan: TrainPlan) -> LayoutFamily:
    """Return the family that a plan belongs to."""
    code = _codes(*(np.asarray([float(degree)]) for degree in (plan.tp, plan.pp, plan.cp)))[0]
    return FAMILIES[int(code)]


def _codes(tp: Floats, pp: Floats, cp: Floats) -> NDArray[np.int64]:
    return np.where(cp > 1, 4, (tp > 1) + 2 * (pp > 1)).astype(np.int64)


def why(timed: Timed) -> list[Reason]:
    """Return why the best layout won and each other family lost."""
    if timed.found == 0:
        return [_nothing_fits(timed)]
    best = plan_at(timed, 0)
    winner = family_of(best)
    reasons = [_won(timed, best, winner)]
    codes = _plan_codes(timed.plans)
    everything = candidates(timed.request, timed.target, timed.gpus)
    all_codes = _plan_codes(everything)
    for place, family in enumerate(FAMILIES):
        if family.code == winner.code:
            continue
        own = np.flatnonzero(codes == place)
        if len(own):
            reasons.append(_slower(timed, family, int(own[0])))
        elif (all_codes == place).any():
            reasons.append(_too_large(timed, family, everything, all_codes == place))
        elif (
            family.code == "data" and timed.request.job.tp is None and timed.request.job.pp is None
        ):
            fields = {"sequences": timed.request.global_batch, "ranks": timed.gpus}
            reasons.append(Reason("data-not-whole", fields))
    return reasons


def _plan_codes(plans: Plans) -> NDArray[np.int64]:
    return _codes(np.asarray(plans.tp), np.asarray(plans.pp), np.asarray(plans.cp))


def _won(timed: Timed, best: TrainPlan, winner: LayoutFamily) -> Reason:
    parts = breakdown_at(timed, 0)
    step_s = float(timed.step_s[0])
    compute = parts["compute_s"] / step_s
    rest = max((part for part in PARTS if part != "compute_s"), key=lambda part: parts[part])
    fields: dict[str, Value] = {
        "memory_bytes": float(timed.memory_bytes[0]),
        "room_bytes": float(np.asarray(timed.target.part.memory_bytes)),
        "compute": compute,
        "next": rest,
        "share": parts[rest] / step_s,
    }
    if best.tp * best.pp * best.cp == 1:
        fields["whole"] = "yes"
    return Reason(f"{winner.code}-wins", fields)


def _slower(timed: Timed, family: LayoutFamily, place: int) -> Reason:
    """Return which part of the step makes this family's best layout slower."""
    ours, best = breakdown_at(timed, place), breakdown_at(timed, 0)
    slower = float(timed.step_s[place] / timed.step_s[0] - 1)
    worst = max(PARTS, key=lambda part: ours[part] - best[part])
    plan, winner = plan_at(timed, place), plan_at(timed, 0)
    is_twice = worst == "compute_s" and plan.recompute == "full" != winner.recompute
    redone = "recompute-some" if plan.recompute_layers else "recompute"
    fields: dict[str, Value] = {
        name: degree
        for name, degree in (("tp", plan.tp), ("pp", plan.pp), ("cp", plan.cp))
        if degree > 1
    }
    fields["slower"], fields["part"] = slower, redone if is_twice else worst
    fields["seconds"], fields["best"] = ours[worst], best[worst]
    return Reason(f"{family.code}-slower", fields)


def _too_large(
    timed: Timed, family: LayoutFamily, everything: Plans, mine: NDArray[np.bool_]
) -> Reason:
    least = least_memory(timed.request, timed.target, everything, mine)
    capacity = float(np.asarray(timed.target.part.memory_bytes))
    return Reason(f"{family.code}-does-not-fit", {"least_bytes": least, "room_bytes": capacity})


def least_memory(
    request: TrainRequest, target: PlanningTarget, plans: Plans, mine: NDArray[np.bool_]
) -> float:
    """Return the least peak memory among some layouts, in bytes."""
    chosen = take(plans, np.flatnonzero(mine))
    peak = memory_of(training_shape(request.shape), chosen, target.profile).peak_bytes
    return float(np.asarray(peak).min())


def _fixed(
    request: TrainRequest,
    names: tuple[str, ...] = ("tp", "pp", "cp", "ep", "micro_batch", "shard"),
) -> tuple[str, ...]:
    given = [(name, getattr(request.job, name)) for name in names]
    return tuple(f"{name}={value}" for name, value in given if value is not None)


def _nothing_fits(timed: Timed) -> Reason:
    fields: dict[str, Value] = {"model": timed.request.job.model, "gpus": timed.gpus}
    if timed.searched == 0:
        fields["sequences"], fields["tokens"] = timed.request.global_batch, timed.request.seq
        fields["fixed"] = _fixed(timed.request)
        job = timed.request.job
        needed = (job.tp or 1) * (job.pp or 1) * (job.cp or 1)
        if needed > timed.gpus:
            fields["fixed"] = _fixed(timed.request, ("tp", "pp", "cp"))
            fields["needed"] = needed
        return Reason("no-whole-layout", fields)
    fields["least_bytes"] = float(timed.least_memory_bytes)
    fields["room_bytes"] = float(np.asarray(timed.target.part.memory_bytes))
    return Reason("memory-exceeded", fields)
