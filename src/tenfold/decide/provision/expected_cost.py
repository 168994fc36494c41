"""The lowest expected cost of finishing a task, by dynamic programming over work and slack.

Slack is the time to spare if the rest ran on demand. Running spends none of it, waiting spends the
time waited, and each start spends a changeover. Spot capacity comes and goes as a Markov chain;
its two means are unknown, so there is a table for each pair on a grid.
"""

from functools import lru_cache
from math import ceil, sqrt

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tenfold.model.spot import ON_DEMAND, SPOT, WAIT, SpotTask

Floats = NDArray[np.float64]
Choices = NDArray[np.int8]

MODES = 3

CELLS_MOST = 20_000
"""Cells of work times slack: about two seconds for all pairs of means."""
WORK_CELLS_MOST = 480
HOUR_S = 3_600.0
UP_MEANS_S = HOUR_S * np.array([0.25, 0.5, 1, 2, 4, 8, 16, 32, 64])
DOWN_MEANS_S = HOUR_S * np.array([0.25, 0.5, 1, 2, 4, 8, 16, 32])
PRIOR_UP_S = 4 * HOUR_S
"""An assumption, as the next two: single GPUs in nine zones of AWS were up for 0.7 to 10.5 hours at
a time (public availability traces of February 2023)."""
PRIOR_DOWN_S = 2 * HOUR_S
PRIOR_WEIGHT = 2.0
"""How many losses, and returns, the prior counts for."""
TIE = 1e-9
"""What waiting a step costs, of the task on demand: if running costs no more, the job runs."""
LATE = 1e17
NEVER = 1e18


class ChoiceTables(Struct, frozen=True):
    """The best choice by pair of means, work left, slack, availability and mode."""

    step_s: float
    best: Choices

    def choices(
        self,
        *,
        left_s: Floats,
        slack_s: Floats,
        is_available: NDArray[np.bool_],
        mode: Choices,
        means_s: tuple[Floats, Floats],
    ) -> Choices:
        """Return the best choice for each run."""
        works, slacks = self.best.shape[0] - 1, self.best.shape[1] - 1
        work = np.clip(np.ceil(left_s / self.step_s - 1e-9), 1, works).astype(np.intp)
        slack = np.clip(np.floor(slack_s / self.step_s + 1e-9), 0, slacks).astype(np.intp)
        up = _nearest(means_s[0], UP_MEANS_S)
        down = _nearest(means_s[1], DOWN_MEANS_S)
        pair = up * len(DOWN_MEANS_S) + down
        return self.best[work, slack, pair, is_available.astype(np.intp), mode.astype(np.intp)]

    def mean_up_s(self, up_s: Floats, losses: Floats) -> Floats:
        """Return how long spot capacity lasts, from what was seen and the prior."""
        return (PRIOR_WEIGHT * PRIOR_UP_S + up_s) / (PRIOR_WEIGHT + losses)

    def mean_down_s(self, down_s: Floats, returns: Floats) -> Floats:
        """Return how long spot capacity stays away."""
        return (PRIOR_WEIGHT * PRIOR_DOWN_S + down_s) / (PRIOR_WEIGHT + returns)


@lru_cache(maxsize=1)
def choice_tables(task: SpotTask) -> ChoiceTables:
    """Return the tables of a task; empty ones if there is no time for a choice.

    The last ones are kept: a task is often compared on several traces.
    """
    slack_s = max(task.deadline_s - task.work_s, 0.0)
    step_s = max(sqrt(task.work_s * slack_s / CELLS_MOST), task.work_s / WORK_CELLS_MOST)
    return ChoiceTables(step_s, _best(task, step_s, ceil(task.work_s / step_s), slack_s))


def _nearest(means_s: Floats, grid_s: Floats) -> NDArray[np.intp]:
    """Return the index of the grid's nearest mean, by ratio."""
    index = np.rint(np.log2(means_s / grid_s[0]))
    return np.clip(index, 0, len(grid_s) - 1).astype(np.intp)


def _best(task: SpotTask, step_s: float, works: int, slack_s: float) -> Choices:
    """Fill the tables from the last step of work to the first, and from no slack to all of it."""
    chain = _Chain(step_s)
    slacks = int(slack_s / step_s + 1e-9) + 1
    best = np.full((works + 1, slacks, chain.pairs, 2, MODES), ON_DEMAND, np.int8)
    # Cost to finish, by slack, pair, availability and mode. None: no work is left after the step.
    after: Floats | None = None
    for work in range(1, works + 1):
        step = _Step(task, step_s, chain, after)
        after = np.zeros((slacks, chain.pairs, 2, MODES))
        for slack in range(slacks):
            options = np.full((MODES, MODES, chain.pairs, 2), NEVER)
            # If no choice is in time, on demand is the least late.
            options[ON_DEMAND] = LATE
            if slack - 1 >= step.changeover:
                options[WAIT, :] = chain.expected(after[slack - 1], WAIT) + step.waiting
            step.add(options, ON_DEMAND, slack)
            step.add(options, SPOT, slack)
            # Spot capacity that is not there cannot be chosen.
            options[SPOT, :, :, 0] = NEVER
            best[work, slack] = np.moveaxis(options.argmin(axis=0), 0, -1)
            after[slack] = np.moveaxis(options.min(axis=0), 0, -1)
    return best


class _Step:
    """What one step of work costs, with what follows it."""

    def __init__(
        self, task: SpotTask, step_s: float, chain: "_Chain", after: Floats | None
    ) -> None:
        self.changeover = task.changeover_s / step_s
        """In steps of slack."""
        self.waiting = TIE * task.work_s * task.ondemand_price
        self._changeover_s = task.changeover_s
        self._step_s = step_s
        self._prices = {SPOT: task.spot_price, ON_DEMAND: task.ondemand_price}
        self._chain = chain
        self._after = after

    def add(self, options: Floats, target: int, slack: int) -> None:
        """Add the cost of a step on `target`, from the same mode and from others."""
        price = self._prices[target]
        # A run on spot keeps enough slack to change to on-demand capacity, unless it finishes.
        is_bound = target == SPOT and self._after is not None
        needs = self.changeover if is_bound else 0.0
        if slack >= needs:
            options[target, target] = price * self._step_s + self._rest(slack, target)
        left = slack - self.changeover
        if left < needs:
            return
        changed = price * (self._step_s + self._changeover_s) + self._rest(left, target)
        for mode in range(MODES):
            if mode != target:
                options[target, mode] = changed

    def _rest(self, slack: float, mode: int) -> Floats | float:
        """Return the expected cost of what follows, linear between cells of slack."""
        if self._after is None:
            return 0.0
        low = int(slack)
        share, high = slack - low, min(low + 1, len(self._after) - 1)
        row = self._after[low] * (1 - share) + self._after[high] * share
        return self._chain.expected(row, mode)


class _Chain:
    """Availability after one step, for each pair of means."""

    def __init__(self, step_s: float) -> None:
        up_s = np.repeat(UP_MEANS_S, len(DOWN_MEANS_S))
        down_s = np.tile(DOWN_MEANS_S, len(UP_MEANS_S))
        self.pairs = len(up_s)
        rate = 1 / up_s + 1 / down_s
        share = (1 / down_s) / rate
        fade = np.exp(-rate * step_s)
        self._stays: Floats = share + (1 - share) * fade
        self._returns: Floats = share * (1 - fade)

    def expected(self, costs: Floats, mode: int) -> Floats:
        """Return the expected cost a step later, by pair and present availability.

        A run whose spot capacity is lost waits.
        """
        up = costs[:, 1, mode]
        down = costs[:, 0, WAIT if mode == SPOT else mode]
        from_down = (1 - self._returns) * down + self._returns * up
        from_up = (1 - self._stays) * down + self._stays * up
        return np.stack([from_down, from_up], axis=1)
