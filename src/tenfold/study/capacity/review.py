"""The quarterly review of a plan: was demand as forecast, and is capacity as planned?"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from tenfold.model.errors import InputError
from tenfold.study.capacity.answer import CapacityAnswer, Phase
from tenfold.study.capacity.baseline import MONTH_S
from tenfold.study.capacity.inputs import TimedSeries

QUARTER = 3


class ReviewMonth(Struct, frozen=True, kw_only=True):
    """One month: planned and actual GPUs."""

    day: str
    planned: float
    low: float
    high: float
    came: float
    error: float
    """Relative to the actual demand."""
    is_inside: bool
    """Whether demand was between P10 and P90."""
    own_planned: float


class Review(Struct, frozen=True, kw_only=True):
    """Plan against actual."""

    fleet: str
    months: tuple[ReviewMonth, ...]
    wape: float
    """Sum of absolute errors over the sum of demand."""
    bias: float
    """Sum of errors over the sum of demand; positive: more was planned than came."""
    covered: float
    """Share of months with demand between P10 and P90; 80% is expected."""
    own_actual: float | None
    """Own GPUs today, if stated."""
    own_planned: float
    due: tuple[Phase, ...]
    """Phases that have to be ordered within the next quarter, or should have been."""


def review(
    plan: CapacityAnswer, history: Sequence[TimedSeries], own_gpus: float | None = None
) -> Review:
    """Return how a plan compares with what happened since its first day.

    The histories begin on that day; several add up.
    """
    came = _by_month(history)
    count = min(len(came), len(plan.mix))
    if not count:
        raise InputError(
            "history-too-short",
            "the history does not cover a month of the plan",
            "review again once a month has passed",
        )
    months = tuple(
        ReviewMonth(
            day=one.day,
            planned=one.demand,
            low=one.demand_low,
            high=one.demand_high,
            came=float(came[at]),
            error=(one.demand - float(came[at])) / max(1e-9, float(came[at])),
            is_inside=one.demand_low <= came[at] <= one.demand_high,
            own_planned=one.own + one.reserved,
        )
        for at, one in enumerate(plan.mix[:count])
    )
    total = max(1e-9, sum(one.came for one in months))
    next_day = plan.mix[min(count + QUARTER, len(plan.mix) - 1)].day
    return Review(
        fleet=plan.fleet,
        months=months,
        wape=sum(abs(one.planned - one.came) for one in months) / total,
        bias=sum(one.planned - one.came for one in months) / total,
        covered=sum(one.is_inside for one in months) / count,
        own_actual=own_gpus,
        own_planned=months[-1].own_planned,
        due=tuple(
            one for one in plan.phases if one.order_by[:4].isdigit() and one.order_by <= next_day
        ),
    )


def _by_month(history: Sequence[TimedSeries]) -> list[float]:
    """Return mean demand of all series in each whole month."""
    means: list[list[float]] = []
    for one in history:
        values = np.array(one.values)
        months = int(len(values) * one.step_s // MONTH_S)
        at = (np.arange(len(values)) * one.step_s / MONTH_S).astype(int)
        means.append([float(values[at == month].mean()) for month in range(months)])
    count = min((len(one) for one in means), default=0)
    return [sum(one[month] for one in means) for month in range(count)]
