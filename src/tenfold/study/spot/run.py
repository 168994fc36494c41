"""Run a job on a recorded availability of spot capacity, under one policy."""

from collections.abc import Sequence
from functools import partial

from msgspec import Struct

from tenfold.decide.provision.spot import decide, policy_of
from tenfold.model.spot import SpotPolicyName, SpotTask
from tenfold.model.units import HOUR, SECOND
from tenfold.sim.spot import Availability, run_spot, spot_s_at_most

HOUR_S = HOUR / SECOND
ROUNDING_S = 0.001


class SpotResult(Struct, frozen=True, kw_only=True):
    """What a policy cost: the mean over all starts."""

    policy: SpotPolicyName
    starts: int
    cost_ratio_to_ondemand: float
    """Over the price of the work alone on demand."""
    deadline_met: bool
    """Whether every start met it."""
    deadlines_missed: int
    preemptions: float
    changeovers: float
    spot_h: float
    ondemand_h: float
    finished_h: float
    lower_bound: float
    """The same ratio if the future were known and changes were free."""


def run_policy(
    name: SpotPolicyName, task: SpotTask, availability: Availability, starts: Sequence[int]
) -> SpotResult:
    """Return what a policy costs, from each of these samples of the trace."""
    runs = run_spot(
        availability,
        starts,
        work_s=task.work_s,
        changeover_s=task.changeover_s,
        decide=partial(decide, policy_of(name, task), task),
    )
    cost = runs.spot_s * task.spot_price + runs.ondemand_s * task.ondemand_price
    whole = task.work_s * task.ondemand_price
    missed = int((runs.finished_s > task.deadline_s + ROUNDING_S).sum())
    return SpotResult(
        policy=name,
        starts=len(starts),
        cost_ratio_to_ondemand=float(cost.mean()) / whole,
        deadline_met=missed == 0,
        deadlines_missed=missed,
        preemptions=float(runs.preemptions.mean()),
        changeovers=float(runs.changeovers.mean()),
        spot_h=float(runs.spot_s.mean()) / HOUR_S,
        ondemand_h=float(runs.ondemand_s.mean()) / HOUR_S,
        finished_h=float(runs.finished_s.mean()) / HOUR_S,
        lower_bound=_lower_bound(task, availability, starts),
    )


def _lower_bound(task: SpotTask, availability: Availability, starts: Sequence[int]) -> float:
    spot_s = spot_s_at_most(
        availability, starts, work_s=task.work_s, deadline_s=task.deadline_s
    ).mean()
    saved = float(spot_s) * (task.ondemand_price - task.spot_price)
    return 1 - max(saved, 0.0) / (task.work_s * task.ondemand_price)


def spread_starts(samples: int, count: int) -> list[int]:
    """Return `count` samples of a trace, evenly spread, the first one first."""
    return [index * samples // count for index in range(min(count, samples))]
