"""Finish a job by its deadline on spot and on-demand capacity, at the lowest cost.

At every decision a job waits, runs on spot capacity, or runs on demand. Starting on either costs
a changeover, in which it pays and makes no progress. A guard that all policies share starts the
job on demand at the last moment that is safe, so no policy misses a deadline that can be met.

Many runs are decided at once, as arrays: a simulation of all offsets of a trace is one pass.
"""

from typing import Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tenfold.decide.provision.expected_cost import ChoiceTables, choice_tables
from tenfold.model.spot import ON_DEMAND, SPOT, WAIT, SpotPolicyName, SpotTask

Floats = NDArray[np.float64]
Choices = NDArray[np.int8]
Flags = NDArray[np.bool_]

ROUNDING_S = 1e-6


class SpotView(Protocol):
    """What is known at one moment of each of many runs of one task."""

    now_s: Floats
    """Since the start of the run."""
    step_s: Floats
    """Until the next decision."""
    work_left_s: Floats
    changeover_left_s: Floats
    mode: Choices
    """Where each run is: WAIT, SPOT or ON_DEMAND. A run whose spot capacity was lost waits."""
    is_available: Flags
    """Whether spot capacity is available until the next decision."""
    up_s: Floats
    """Time seen so far in which spot capacity was available."""
    down_s: Floats
    losses: Floats
    """How often it was seen to end, and to return."""
    returns: Floats


class SpotPolicy(Protocol):
    """Chooses what each run does until the next decision."""

    def choose(self, view: SpotView) -> Choices:
        """Return WAIT, SPOT or ON_DEMAND for each run; the guard may overrule it."""
        ...


def policy_of(name: SpotPolicyName, task: SpotTask) -> SpotPolicy:
    """Return a policy by name."""
    match name:
        case "on-demand":
            return OnDemand()
        case "greedy":
            return Greedy()
        case "uniform-progress":
            return UniformProgress(task)
        case "tenfold":
            return LeastExpectedCost(task)


def decide(policy: SpotPolicy, task: SpotTask, view: SpotView) -> Choices:
    """Return a policy's choices, with those that would endanger the deadline replaced."""
    wanted = policy.choose(view)
    may_wait, may_spot = safe_choices(task, view)
    is_safe = ((wanted == WAIT) & may_wait) | ((wanted == SPOT) & may_spot)
    return np.where(is_safe, wanted, ON_DEMAND).astype(np.int8)


def safe_choices(task: SpotTask, view: SpotView) -> tuple[Flags, Flags]:
    """Return which runs may wait, and which may be on spot, until the next decision.

    Afterwards there must be time to change to on-demand capacity and to finish there.
    """
    after_s = task.deadline_s - view.now_s - view.step_s + ROUNDING_S
    may_wait = after_s >= view.work_left_s + task.changeover_s
    lost_s = np.where(view.mode == SPOT, view.changeover_left_s, task.changeover_s)
    progress_s = np.maximum(view.step_s - lost_s, 0.0)
    is_finished = view.work_left_s <= progress_s
    fits = after_s + view.step_s >= view.work_left_s + lost_s
    may_spot = (after_s >= view.work_left_s - progress_s + task.changeover_s) | (is_finished & fits)
    return may_wait, may_spot & view.is_available


class OnDemand(Struct, frozen=True):
    """Run on demand throughout."""

    def choose(self, view: SpotView) -> Choices:
        """Return ON_DEMAND for each run."""
        return np.full(len(view.mode), ON_DEMAND, np.int8)


class Greedy(Struct, frozen=True):
    """Use spot capacity while there is any, wait otherwise; once on demand, stay there."""

    def choose(self, view: SpotView) -> Choices:
        """Return SPOT where it is available."""
        chosen = np.where(view.is_available, SPOT, WAIT)
        return np.where(view.mode == ON_DEMAND, ON_DEMAND, chosen).astype(np.int8)


class UniformProgress(Struct, frozen=True):
    """Keep progress at or above the straight line from the start to the deadline.

    As published: spot capacity is used while there is any; below the line the job runs on demand,
    and it returns only when it is two changeovers ahead of the line.
    """

    task: SpotTask

    def choose(self, view: SpotView) -> Choices:
        """Return ON_DEMAND for runs below the line."""
        rate = self.task.work_s / self.task.deadline_s
        done_s = self.task.work_s - view.work_left_s
        is_behind = done_s < rate * view.now_s
        is_ahead = done_s >= rate * (view.now_s + 2 * self.task.changeover_s)
        off_spot = np.where(is_behind, ON_DEMAND, WAIT)
        idle = np.where(view.is_available, SPOT, off_spot)
        back = np.where(view.is_available, SPOT, WAIT)
        on_demand = np.where(is_ahead, back, ON_DEMAND)
        return np.where(view.mode == ON_DEMAND, on_demand, idle).astype(np.int8)


class LeastExpectedCost:
    """Choose the lowest expected cost, from how long spot capacity has lasted and stayed away.

    Spot capacity that costs no less than on-demand capacity is never used.

    The tables of expected cost are made once per task. The means that select a table are learnt
    while the job runs.
    """

    def __init__(self, task: SpotTask) -> None:
        self.task = task
        self.tables: ChoiceTables | None = None

    def choose(self, view: SpotView) -> Choices:
        """Return the choice with the lowest expected cost for each run."""
        if self.task.spot_price >= self.task.ondemand_price:
            return np.full(len(view.mode), ON_DEMAND, np.int8)
        if self.task.changeover_s == 0:
            # Changing costs nothing, so spot capacity is always right, and so is waiting.
            return np.where(view.is_available, SPOT, WAIT).astype(np.int8)
        if self.tables is None:
            self.tables = choice_tables(self.task)
        slack_s = self.task.deadline_s - view.now_s - view.work_left_s - view.changeover_left_s
        return self.tables.choices(
            left_s=view.work_left_s,
            slack_s=slack_s,
            is_available=view.is_available,
            mode=view.mode,
            means_s=(
                self.tables.mean_up_s(view.up_s, view.losses),
                self.tables.mean_down_s(view.down_s, view.returns),
            ),
        )
