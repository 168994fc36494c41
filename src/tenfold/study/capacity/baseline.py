"""Demand without drivers: a forecast of the history, the growth of `[pace]`, or today's level."""

from math import ceil, log2

import numpy as np
from msgspec.structs import replace

from tenfold.decide.capacity.forecast import HORIZON_OVER_HISTORY, forecast
from tenfold.decide.capacity.persistence import lasting_share, towards_level
from tenfold.model.errors import NoAnswer
from tenfold.model.units import DAY, SECOND
from tenfold.physics.arrays import Floats
from tenfold.study.capacity.calendar import DAYS_PER_MONTH
from tenfold.study.capacity.inputs import CapacityInputs, TimedSeries
from tenfold.study.capacity.scenarios import Z90, Baseline

MONTH_S = DAYS_PER_MONTH * DAY / SECOND
TINY = 1e-9
PAYS_OVER_MONTHS = 12
"""Months of use that a purchase is judged by."""


def baseline_of(
    inputs: CapacityInputs, name: str, series: str, gpus: float, notes: list[str]
) -> Baseline:
    """Return the demand of one class by month without drivers."""
    months, pace = inputs.horizon.months, inputs.grow.grow.pace
    found = inputs.history.get(series)
    if found is not None:
        return _forecast(inputs, name, found, notes)
    ahead = np.arange(months, dtype=np.float64)
    if pace is None:
        return Baseline(name=name, median=np.full(months, gpus), log_sd=np.zeros(months))
    growth = ahead / pace.doubles_in_months
    # The rate is uncertain, so the spread widens with what it has grown by.
    spread = growth * np.log(2.0) * inputs.horizon.growth_spread
    return Baseline(name=name, median=gpus * 2.0**growth, log_sd=spread, shared="pace")


def _forecast(inputs: CapacityInputs, name: str, found: TimedSeries, notes: list[str]) -> Baseline:
    months = inputs.horizon.months
    values, step_s = _coarser(np.array(found.values), found.step_s)
    horizon = ceil(months * MONTH_S / step_s)
    most = int(HORIZON_OVER_HISTORY * len(values))
    carried = min(horizon, most)
    reach = carried * step_s / MONTH_S
    if carried < horizon and not inputs.drivers:
        raise NoAnswer(
            "history-too-short",
            f"series `{name}`: a history of {len(values) * step_s / MONTH_S:.1f} months is too "
            f"short for a forecast of {months}",
            f"plan at most {int(reach)} months, give a longer history, or say what is known "
            "about the rest with `--drivers`",
        )
    if carried < horizon:
        notes.append(
            f"{name}: the history supports a forecast of {reach:.1f} months; beyond that its last "
            "level is held, and growth comes from drivers alone"
        )
    result, covered = forecast({name: values}, carried)
    one = result[name]
    shares = ", ".join(f"{share:.0%}" for share in covered[0].by_block)
    tested = (
        f"covered {shares} of the past, from the first to the last quarter of the horizon"
        if shares
        else "is not tested on the past: the history is too short for that"
    )
    notes.append(f"{name}: forecast by {', '.join(one.methods)}; its 80% interval {tested}")
    mean, high = np.array(one.mean), np.array(one.hi80)
    drawn = towards_level(mean, values, one.origins)
    made = _by_month(name, drawn, drawn * high / np.maximum(mean, TINY), months, step_s)
    # A year of use has to pay for a purchase, so peaks that pass are left to what is rented.
    lasting = lasting_share(values, max(1, round(PAYS_OVER_MONTHS * MONTH_S / step_s)))
    if lasting < 1:
        notes.append(f"{name}: {lasting:.0%} of forecast errors last; passing peaks are rented")
    return replace(made, log_sd=made.log_sd * lasting)


def _by_month(name: str, mean: Floats, high: Floats, months: int, step_s: float) -> Baseline:
    """Return monthly means; beyond the forecast the last month is held."""
    at = np.minimum((np.arange(len(mean)) * step_s / MONTH_S).astype(int), months - 1)
    level, spread = np.zeros(months), np.zeros(months)
    last, last_spread = float(mean[0]), 0.0
    for month in range(months):
        here = at == month
        if here.any():
            last = max(0.0, float(mean[here].mean()))
            top = max(last, float(high[here].mean()))
            last_spread = float(np.log(max(top, TINY) / max(last, TINY)) / Z90) if last else 0.0
        level[month], spread[month] = last, min(last_spread, log2(16.0))
    return Baseline(name=name, median=level, log_sd=spread)


def _coarser(values: Floats, step_s: float) -> tuple[Floats, float]:
    """Return a history by day, or by week or month if it is long: months need no hours."""
    target = 86_400.0 if len(values) * step_s < 400 * 86_400.0 else 7 * 86_400.0
    times = max(1, round(target / step_s))
    usable = len(values) // times * times
    if times == 1 or usable < 16 * times:
        return values, step_s
    return values[-usable:].reshape(-1, times).mean(axis=1), step_s * times
