"""Time every layout that fits in memory, and rank them."""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tenfold.decide.layout.request import PlanningTarget, TrainRequest
from tenfold.decide.layout.space import candidates
from tenfold.model.plan import Recompute, Shard, TrainPlan
from tenfold.physics.training.arrays import RECOMPUTE_CODES, SHARD_CODES, Plans, take
from tenfold.physics.training.memory import fits, memory_of, with_least_recompute
from tenfold.physics.training.shapes import training_shape
from tenfold.physics.training.step import StepTimes, time_plans

Floats = NDArray[np.float64]
PARTS = tuple(name for name in StepTimes.__slots__ if name != "step_s")


class Timed(Struct, frozen=True, kw_only=True):
    """Every layout of one size: its memory and, if it fits, its step time.

    `searched` counts all of them; the arrays hold those that fit, fastest first.
    """

    request: TrainRequest
    target: PlanningTarget
    gpus: int
    searched: int
    plans: Plans
    memory_bytes: Floats
    times: StepTimes
    least_memory_bytes: float
    """Memory of the smallest layout, even if nothing fits."""

    @property
    def found(self) -> int:
        """Layouts that fit."""
        return len(self.memory_bytes)

    @property
    def step_s(self) -> Floats:
        """Seconds of a step, fastest first."""
        return np.asarray(self.times.step_s)


def search(request: TrainRequest, target: PlanningTarget, gpus: int) -> Timed:
    """Return all layouts of a job on some GPUs, fastest first."""
    shape = training_shape(request.shape)
    plans = candidates(request, target, gpus)
    searched = len(np.asarray(plans.dp))
    if request.job.recompute is None:
        plans = with_least_recompute(shape, plans, target.part, target.profile)
    memory = memory_of(shape, plans, target.profile)
    peak = np.broadcast_to(np.asarray(memory.peak_bytes), (searched,))
    fitting = np.flatnonzero(np.broadcast_to(fits(memory, target.part), (searched,)))
    plans, peak_fitting = take(plans, fitting), peak[fitting]
    times = _scaled_times(
        time_plans(shape, plans, target.part, target.profile), target.factor(shape, plans)
    )
    order = _order(plans, np.asarray(times.step_s))
    return Timed(
        request=request,
        target=target,
        gpus=gpus,
        searched=searched,
        plans=take(plans, order),
        memory_bytes=peak_fitting[order],
        times=take(times, order),
        least_memory_bytes=float(peak.min(initial=np.inf)),
    )


def _scaled_times(times: StepTimes, factor: Floats) -> StepTimes:
    """Return times with every part scaled by the same factor, so that they still add up."""
    return StepTimes(
        **{name: np.asarray(getattr(times, name)) * factor for name in StepTimes.__slots__}
    )


def _order(plans: Plans, step_s: Floats) -> NDArray[np.int64]:
    """Sort by time; if two differ by less than 0.1%, the simpler one wins."""
    plain = (
        np.log2(np.asarray(plans.tp))
        + np.log2(np.asarray(plans.pp))
        + np.log2(np.asarray(plans.cp))
        + np.asarray(plans.shard)
        + np.asarray(plans.recompute)
        + np.asarray(plans.virtual_stages) * 0.1
    )
    steps = np.round(np.log(np.maximum(step_s, 1e-12)) * 1000.0)
    return np.lexsort((step_s, plain, steps)).astype(np.int64)


def plan_at(timed: Timed, place: int) -> TrainPlan:
    """Return one of the layouts found as a record."""
    plans, request, target = timed.plans, timed.request, timed.target

    def whole(values: object) -> int:
        numbers = np.asarray(values)
        return int(numbers[place] if numbers.ndim else numbers)

    stage = -(-request.shape.layers // whole(plans.pp))
    share = float(np.broadcast_to(np.asarray(plans.recompute_share), (timed.found,))[place])
    layers = round(share * stage) if whole(plans.recompute) == RECOMPUTE_CODES["full"] else 0
    return TrainPlan(
        model=request.job.model,
        shape=request.shape,
        seq=request.seq,
        micro_batch=whole(plans.micro_batch),
        global_batch=request.global_batch,
        accelerator=target.accelerator,
        gpus=timed.gpus,
        gpus_per_node=target.gpus_per_node,
        tp=whole(plans.tp),
        pp=whole(plans.pp),
        dp=whole(plans.dp),
        cp=whole(plans.cp),
        ep=whole(plans.ep),
        virtual_stages=whole(plans.virtual_stages),
        shard=_SHARDS[whole(plans.shard)],
        recompute=_RECOMPUTES[whole(plans.recompute)],
        recompute_layers=layers if layers < stage else 0,
        sequence_parallel=bool(whole(plans.sequence_parallel)),
        precision=request.job.precision,
        stack=target.stack,
        nic_gbps_per_gpu=target.nic_bytes_per_s * 8 / 1e9,
    )


def breakdown_at(timed: Timed, place: int) -> dict[str, float]:
    """Return the step time of one layout by part."""
    return {
        part: float(np.broadcast_to(np.asarray(getattr(timed.times, part)), timed.found)[place])
        for part in PARTS
    }


_SHARDS: dict[int, Shard] = {code: name for name, code in SHARD_CODES.items() if name != "hsdp"}  # pyright: ignore[reportAssignmentType]
_RECOMPUTES: dict[int, Recompute] = {code: name for name, code in RECOMPUTE_CODES.items()}  # pyright: ignore[reportAssignmentType]
