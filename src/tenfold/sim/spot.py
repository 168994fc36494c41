"""Run a task on a recorded availability of spot capacity, from many starts at once."""

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tenfold.model.spot import ON_DEMAND, SPOT, WAIT

Floats = NDArray[np.float64]


ROUNDING_S = 1e-6
PARTS_MOST = 500_000


class Availability(Struct, frozen=True):
    """Whether spot capacity is available, from each of these times to the next; then it repeats.

    A job decides at each of these times, and knows how long it is to the next.
    """

    lasts_s: Floats
    is_up: NDArray[np.bool_]

    def split(self, step_s: float) -> "Availability":
        """Return the same availability in parts that are no longer than a step.

        Rows that are far apart, such as one row per change, would otherwise hide from the job that
        it may decide in between, and show it how long its capacity lasts.
        """
        step_s = max(step_s, float(self.lasts_s.sum()) / PARTS_MOST)
        parts = np.maximum(np.ceil(self.lasts_s / step_s - ROUNDING_S), 1).astype(np.intp)
        return Availability(np.repeat(self.lasts_s / parts, parts), np.repeat(self.is_up, parts))


class SpotState(Struct):
    """Where each run is, and what it has seen; the same shape as the view of a decider."""

    now_s: Floats
    step_s: Floats
    work_left_s: Floats
    changeover_left_s: Floats
    mode: NDArray[np.int8]
    is_available: NDArray[np.bool_]
    up_s: Floats
    down_s: Floats
    losses: Floats
    returns: Floats


class SpotRuns(Struct, frozen=True):
    """What became of each run."""

    spot_s: Floats
    ondemand_s: Floats
    finished_s: Floats
    preemptions: Floats
    """How often spot capacity was lost while it was in use."""
    changeovers: Floats
    """How often the job started, on spot or on-demand capacity."""


def run_spot(
    availability: Availability,
    starts: Sequence[int],
    *,
    work_s: float,
    changeover_s: float,
    decide: Callable[[SpotState], NDArray[np.int8]],
) -> SpotRuns:
    """Run the task once from each of these samples of the trace, until all have finished."""
    count, samples = len(starts), len(availability.is_up)
    first = np.array(starts, dtype=np.intp)
    state = _fresh(count, work_s)
    spot_s, ondemand_s, finished_s = np.zeros(count), np.zeros(count), np.zeros(count)
    preemptions, changeovers = np.zeros(count), np.zeros(count)
    seen: NDArray[np.bool_] | None = None
    for step in range(_steps_most(availability, work_s, changeover_s)):
        is_left = state.work_left_s > 0
        if not is_left.any():
            break
        at = (first + step) % samples
        state.is_available = availability.is_up[at]
        state.step_s = availability.lasts_s[at]
        if seen is not None:
            state.losses += seen & ~state.is_available
            state.returns += ~seen & state.is_available
        seen = state.is_available
        is_lost = (state.mode == SPOT) & ~state.is_available
        preemptions += is_lost & is_left
        state.mode = np.where(is_lost, WAIT, state.mode).astype(np.int8)
        state.changeover_left_s = np.where(is_lost, 0.0, state.changeover_left_s)
        chosen = decide(state)
        starts_now = (chosen != state.mode) & (chosen != WAIT)
        changeovers += starts_now & is_left
        begun_s = np.where(starts_now, changeover_s, state.changeover_left_s)
        state.changeover_left_s = np.where(chosen == WAIT, 0.0, begun_s)
        state.mode = chosen
        used_s = np.minimum(state.step_s, state.work_left_s + state.changeover_left_s)
        used_s = np.where((chosen == WAIT) | ~is_left, 0.0, used_s)
        changing_s = np.minimum(state.changeover_left_s, used_s)
        state.changeover_left_s = state.changeover_left_s - changing_s
        left_s = np.maximum(state.work_left_s - (used_s - changing_s), 0.0)
        state.work_left_s = np.where(left_s < ROUNDING_S, 0.0, left_s)
        spot_s += np.where(chosen == SPOT, used_s, 0.0)
        ondemand_s += np.where(chosen == ON_DEMAND, used_s, 0.0)
        is_done = is_left & (state.work_left_s == 0)
        finished_s = np.where(is_done, state.now_s + used_s, finished_s)
        state.up_s += np.where(state.is_available, state.step_s, 0.0)
        state.down_s += np.where(state.is_available, 0.0, state.step_s)
        state.now_s = state.now_s + state.step_s
    assert (state.work_left_s == 0).all(), "a run did not end: its decider never ran it"
    return SpotRuns(spot_s, ondemand_s, finished_s, preemptions, changeovers)


def spot_s_at_most(
    availability: Availability, starts: Sequence[int], *, work_s: float, deadline_s: float
) -> Floats:
    """Return how long each run could be on spot capacity if it knew the future and changed free."""
    edges = np.concatenate([[0.0], np.cumsum(availability.lasts_s)])
    up = np.concatenate([[0.0], np.cumsum(availability.lasts_s * availability.is_up)])
    begins = edges[np.array(starts, dtype=np.intp)]
    periods, rest = np.divmod(begins + deadline_s, edges[-1])
    until = periods * up[-1] + np.interp(rest, edges, up)
    return np.minimum(until - np.interp(begins, edges, up), work_s)


def _fresh(count: int, work_s: float) -> SpotState:
    return SpotState(
        now_s=np.zeros(count),
        step_s=np.zeros(count),
        work_left_s=np.full(count, work_s),
        changeover_left_s=np.zeros(count),
        mode=np.zeros(count, np.int8),
        is_available=np.zeros(count, np.bool_),
        up_s=np.zeros(count),
        down_s=np.zeros(count),
        losses=np.zeros(count),
        returns=np.zeros(count),
    )


def _steps_most(availability: Availability, work_s: float, changeover_s: float) -> int:
    """Return a bound that only a decider that waits for ever can exceed."""
    period_s = float(availability.lasts_s.sum())
    periods = 10 + int(100 * (work_s + changeover_s) / period_s)
    return periods * len(availability.is_up)


def generated_availability(*, up_s: float, down_s: float, days: float, seed: int) -> Availability:
    """Return availability that comes and goes with these means, where no trace is known."""
    random = np.random.default_rng(seed)
    stretches = max(2, int(days * 86_400 / (up_s + down_s)) + 1)
    lasts = np.empty(2 * stretches)
    lasts[0::2] = random.exponential(up_s, stretches)
    lasts[1::2] = random.exponential(down_s, stretches)
    return Availability(np.maximum(lasts, 60.0), np.arange(2 * stretches) % 2 == 0)
