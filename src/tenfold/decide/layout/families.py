"""Why the losing families of layouts lost, each in a sentence with its figures."""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tenfold.decide.layout.ask import Ground, TrainAsk
from tenfold.decide.layout.search import PARTS, Timed, breakdown_at, plan_at
from tenfold.decide.layout.space import candidates
from tenfold.model.plan import TrainPlan
from tenfold.model.reason import Reason
from tenfold.physics.arrays import Floats
from tenfold.physics.training.arrays import Plans, take
from tenfold.physics.training.memory import memory_of
from tenfold.physics.training.shapes import training_shape

GIB = float(1 << 30)
SLOWER_WORDS = {
    "compute_s": "compute, in smaller and less efficient kernels",
    "tp_s": "tensor-parallel exchange in every layer",
    "moe_s": "expert exchange",
    "bubble_s": "pipeline bubbles",
    "p2p_s": "sends between stages",
    "dp_s": "exposed gradient and weight traffic",
    "optimizer_s": "the optimizer update",
    "other_s": "launch and step overhead",
    "jitter_s": "jitter",
}


class Family(Struct, frozen=True, kw_only=True):
    """A kind of layout: which axes it uses beside data parallelism."""

    name: str
    code: str


FAMILIES = (
    Family(name="data parallelism alone", code="data"),
    Family(name="tensor parallelism", code="tensor"),
    Family(name="pipeline parallelism", code="pipeline"),
    Family(name="tensor and pipeline parallelism", code="tensor-pipeline"),
    Family(name="context parallelism", code="context"),
)


def family_of(plan: TrainPlan) -> Family:
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
    everything = candidates(timed.ask, timed.ground, timed.gpus)
    all_codes = _plan_codes(everything)
    for place, family in enumerate(FAMILIES):
        if family.code == winner.code:
            continue
        own = np.flatnonzero(codes == place)
        if len(own):
            reasons.append(_slower(timed, family, int(own[0])))
        elif (all_codes == place).any():
            reasons.append(_too_large(timed, family, everything, all_codes == place))
        elif family.code == "data" and timed.ask.job.tp is None and timed.ask.job.pp is None:
            text = (
                f"{family.name} does not divide: {timed.ask.global_batch:,} sequences a step "
                f"over {timed.gpus:,} ranks"
            )
            reasons.append(Reason("data-not-whole", text))
    return reasons


def _plan_codes(plans: Plans) -> NDArray[np.int64]:
    return _codes(np.asarray(plans.tp), np.asarray(plans.pp), np.asarray(plans.cp))


def _won(timed: Timed, best: TrainPlan, winner: Family) -> Reason:
    parts = breakdown_at(timed, 0)
    step_s = float(timed.step_s[0])
    compute = parts["compute_s"] / step_s
    rest = max((part for part in PARTS if part != "compute_s"), key=lambda part: parts[part])
    memory = timed.memory_bytes[0] / GIB
    room = float(np.asarray(timed.ground.part.memory_bytes)) / GIB
    whole = best.tp * best.pp * best.cp == 1
    fit = "the model fits whole on a GPU and" if whole else "divided so, a GPU"
    text = (
        f"{winner.name} wins: {fit} takes {memory:.0f} of {room:.0f} GiB, and {compute:.0%} "
        f"of a step is compute; next is {SLOWER_WORDS[rest]} "
        f"({parts[rest] / step_s:.0%})"
    )
    return Reason(f"{winner.code}-wins", text)


def _slower(timed: Timed, family: Family, place: int) -> Reason:
    """Name the part of the step that this family's best layout spends more on."""
    ours, best = breakdown_at(timed, place), breakdown_at(timed, 0)
    slower = float(timed.step_s[place] / timed.step_s[0] - 1)
    worst = max(PARTS, key=lambda part: ours[part] - best[part])
    plan, winner = plan_at(timed, place), plan_at(timed, 0)
    cause = SLOWER_WORDS[worst]
    if worst == "compute_s" and plan.recompute == "full" != winner.recompute:
        cause = "compute, with the forward pass done twice since activations do not fit"
    return Reason(
        f"{family.code}-slower",
        f"{family.name}{_degrees(plan)} is {slower:.0%} slower: "
        f"{ours[worst]:.3g} s of a step instead of {best[worst]:.3g} go to {cause}",
    )


def _degrees(plan: TrainPlan) -> str:
    named = {"tp": plan.tp, "pp": plan.pp, "cp": plan.cp}
    used = ", ".join(f"{name} {degree}" for name, degree in named.items() if degree > 1)
    return f" (at best {used})" if used else ""


def _too_large(timed: Timed, family: Family, everything: Plans, mine: NDArray[np.bool_]) -> Reason:
    least = least_memory(timed.ask, timed.ground, everything, mine)
    room = float(np.asarray(timed.ground.part.memory_bytes)) / GIB
    return Reason(
        f"{family.code}-does-not-fit",
        f"{family.name} does not fit: its most frugal layout takes {least / GIB:.0f} GiB "
        f"of {room:.0f} a GPU",
    )


def least_memory(ask: TrainAsk, ground: Ground, plans: Plans, mine: NDArray[np.bool_]) -> float:
    """Return the least peak memory among some layouts, in bytes."""
    chosen = take(plans, np.flatnonzero(mine))
    peak = memory_of(training_shape(ask.shape), chosen, ground.profile).peak_bytes
    return float(np.asarray(peak).min())


def _fixed(ask: TrainAsk) -> str:
    names = ("tp", "pp", "cp", "ep", "micro_batch", "shard")
    given = [(name, getattr(ask.job, name)) for name in names]
    stated = [f"{name} {value}" for name, value in given if value is not None]
    return f", with {', '.join(stated)} fixed" if stated else ""


def _nothing_fits(timed: Timed) -> Reason:
    room = float(np.asarray(timed.ground.part.memory_bytes)) / GIB
    if timed.searched == 0:
        return Reason(
            "no-whole-layout",
            f"no layout of {timed.ask.job.model} divides evenly over {timed.gpus:,} GPUs: "
            f"{timed.ask.global_batch:,} sequences of {timed.ask.seq:,} tokens a step"
            f"{_fixed(timed.ask)}",
        )
    return Reason(
        "memory-exceeded",
        f"{timed.ask.job.model} does not fit on {timed.gpus:,} GPUs: its most frugal layout takes "
        f"{timed.least_memory_bytes / GIB:.0f} GiB of {room:.0f} a GPU",
    )
