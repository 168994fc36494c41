"""Forecast a series: methods ranked on its own past, and intervals from the errors they made.

Each method forecasts the last horizons of the series from the values before them. The three with
the smallest errors are combined by their median, and the errors of the combination, without the
origin that chose it, give the width of the intervals: their coverage is measured, not assumed.
"""

from collections.abc import Mapping, Sequence
from math import ceil

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from tenfold.decide.capacity.methods import Floats, Periods, methods_for
from tenfold.model.errors import NoAnswer

LEVELS = (0.80, 0.95)
COMBINED = 3
ORIGINS_MOST = 8
CALIBRATED_ON = 3
"""The most recent origins, which the width is calibrated on: at earlier ones methods had seen less
of the series and made larger errors than they will make now.
"""
VALUES_PER_SERIES = 24
"""Past values that the width rests on at least, if the horizon is short."""
BLOCKS = 4
"""Parts of the horizon whose coverage is measured one by one."""
VALUES_LEAST = 8
HORIZON_OVER_HISTORY = 1.5
SERIES_LEAST = 20
"""With fewer series together, the width is widened by a constant."""
WIDER = 1.1
"""An assumption for few series: the factor measured on the weekly series of the M4 competition."""
SEASONS = (7, 12, 24, 48, 52, 96, 144, 168, 288)
WEEKS_OF = {24: 168, 48: 336, 96: 672, 144: 1_008, 288: 2_016}
"""Values per day, and then per week."""
CORRELATED = 0.3
TROUGH = 0.1
TINY = 1e-9


class Forecast(Struct, frozen=True):
    """How a series continues, with intervals of 80 and 95%."""

    mean: list[float]
    lo80: list[float]
    hi80: list[float]
    lo95: list[float]
    hi95: list[float]
    methods: list[str]
    seasons: list[int]
    origins: int
    """How many times the past was forecast."""
    coverage80: list[float]
    """How often past values of all series together were inside their interval, by part of the
    horizon; empty if no history is long enough to tell.
    """
    coverage95: list[float]


class Coverage(Struct, frozen=True):
    """How often past values were inside their interval, by part of the horizon."""

    level: float
    by_block: list[float]
    """Empty if no history carries a forecast of its own past over the whole horizon."""
    values: int


class _Fit(Struct, frozen=True):
    """A combination of methods, and the errors it made."""

    mean: Floats
    errors: Floats
    """By origin and step, in logarithms if `is_positive`."""
    methods: list[str]
    seasons: tuple[int, ...]
    is_positive: bool
    is_never_negative: bool
    is_tried: bool
    """Whether the errors were made on the past, and not assumed."""


def forecast(
    series: Mapping[str, Floats], horizon: int, season: int | None = None
) -> tuple[dict[str, Forecast], list[Coverage]]:
    """Return the forecast of each series, and the coverage of the intervals on their past.

    Raise if a series is too short for the horizon.
    """
    fits = {name: _fit(name, values, horizon, season) for name, values in series.items()}
    shape = _growth([fit.errors for fit in fits.values() if fit.is_positive], horizon)
    shapes = {
        name: shape if fit.is_positive and len(fits) >= SERIES_LEAST else _growth([fit.errors])
        for name, fit in fits.items()
    }
    found = {name: _empty(fit) for name, fit in fits.items()}
    covered: list[Coverage] = []
    for level in LEVELS:
        factors, coverage = _calibrated(list(fits.values()), list(shapes.values()), level)
        covered.append(coverage)
        for name, fit in fits.items():
            width = _width(fit.errors, shapes[name], level) * factors
            found[name] = _with_interval(found[name], fit, width, coverage)
    return found, covered


def find_seasons(values: Floats, season: int | None) -> Periods:
    """Return the seasons of a series: the one given with its week, or the most correlated."""
    if season is None:
        season = _most_correlated(values)
    if season is None or season < 2:
        return Periods()
    week = WEEKS_OF.get(season)
    return Periods((season,) if week is None else (season, week))


def _most_correlated(values: Floats) -> int | None:
    count = len(values)
    line = np.polyval(np.polyfit(np.arange(count), values, 1), np.arange(count))
    rest = values - line
    total = float(rest @ rest)
    if total <= TINY * float(values @ values):
        return None
    found: dict[int, float] = {}
    for season in SEASONS:
        if count < 3 * season + 10:
            continue
        # A slow series correlates with all of its recent past: a season also has a trough.
        whole, half = (
            float(rest[lag:] @ rest[:-lag]) / total for lag in (season, max(1, season // 2))
        )
        if whole > half + TROUGH:
            found[season] = whole
    best = max(found, key=lambda season: found[season], default=None)
    return best if best is not None and found[best] > CORRELATED else None


def _fit(name: str, values: Floats, horizon: int, season: int | None) -> _Fit:
    error = too_short(name, len(values), horizon)
    if error is not None:
        raise error
    periods = find_seasons(values, season)
    methods = methods_for(len(values), periods)
    past = _past_forecasts(values, horizon, periods)
    is_tried = bool(past)
    past = past or [_assumed_errors(values, horizon, list(methods))]
    usable = [one for one in methods if all(one in made for made, _ in past)]
    losses = np.array([[_smape(seen, made[one]) for one in usable] for made, seen in past])
    is_positive = bool(values.min() > 0)
    errors: list[Floats] = []
    for origin, (made, seen) in enumerate(past):
        others = np.delete(losses, origin, axis=0) if len(past) > 1 else losses
        chosen = _best(usable, others)
        combined = np.median([made[one] for one in chosen], axis=0)
        errors.append(np.abs(_scaled(seen, is_positive) - _scaled(combined, is_positive)))
    chosen = _best(usable, losses)
    ahead = [methods[one](values, horizon) for one in chosen]
    mean = np.median([one for one in ahead if one is not None], axis=0)
    return _Fit(
        mean=np.maximum(mean, 0.0) if values.min() >= 0 else mean,
        errors=np.array(errors),
        methods=chosen,
        seasons=periods.seasons,
        is_positive=is_positive,
        is_never_negative=bool(values.min() >= 0),
        is_tried=is_tried,
    )


def too_short(name: str, count: int, horizon: int) -> NoAnswer | None:
    """Return the error if a history of so many values does not carry a forecast."""
    if count >= VALUES_LEAST and horizon <= HORIZON_OVER_HISTORY * count:
        return None
    most = int(HORIZON_OVER_HISTORY * count) if count >= VALUES_LEAST else 0
    problem = f"a history of {count:,} values is too short for a forecast of {horizon:,}"
    return NoAnswer(
        "history-too-short",
        f"series `{name}`: {problem}",
        f"forecast at most {most:,} values, or give a longer history"
        if most
        else f"give at least {VALUES_LEAST} values",
    )


def _past_forecasts(
    values: Floats, horizon: int, periods: Periods
) -> list[tuple[dict[str, Floats], Floats]]:
    """Return what each method forecast at earlier origins, and what came."""
    count = len(values)
    step = min(horizon, max(1, (count - VALUES_LEAST) // 2))
    least = min(max(60, 2 * step), count - step)
    most = max(ORIGINS_MOST, ceil(VALUES_PER_SERIES / horizon))
    origins = min(most, max(1, (count - least) // step))
    found: list[tuple[dict[str, Floats], Floats]] = []
    for back in range(1, origins + 1):
        known = values[: count - back * step]
        if len(known) < 4:
            break
        seen = values[count - back * step : count - back * step + horizon]
        made = {
            name: continued
            for name, method in methods_for(len(values), periods).items()
            if (continued := method(known, horizon)) is not None
        }
        if len(seen) == horizon and made:
            found.append((made, seen))
    return found


def _assumed_errors(
    values: Floats, horizon: int, names: Sequence[str]
) -> tuple[dict[str, Floats], Floats]:
    """Return the errors of the naive forecast, growing with the root of the horizon.

    For histories that are too short to forecast their own past over the whole horizon.
    """
    change = float(np.abs(np.diff(values)).mean())
    reach = np.sqrt(np.arange(1, horizon + 1))
    naive = np.full(horizon, values[-1])
    return dict.fromkeys(names, naive), naive + change * reach


def _best(names: Sequence[str], losses: Floats) -> list[str]:
    means = losses.mean(axis=0)
    ranked = sorted(range(len(names)), key=lambda index: (means[index], index))
    return [names[index] for index in ranked[:COMBINED]]


def _smape(seen: Floats, made: Floats) -> float:
    return float(np.mean(np.abs(seen - made) / (np.abs(seen) + np.abs(made) + TINY)))


def _scaled(values: Floats, is_positive: bool) -> Floats:
    return np.log(np.maximum(values, TINY)) if is_positive else values


def _growth(errors: Sequence[Floats], horizon: int = 1) -> Floats:
    """Return how errors grow over the horizon: smoothed, and never shrinking."""
    if not errors:
        return np.ones(horizon)
    means = np.median([one.mean(axis=0) for one in errors], axis=0)
    padded = np.pad(means, 2, mode="edge")
    smooth = np.convolve(padded, np.ones(5) / 5, "valid")
    return np.maximum(np.maximum.accumulate(smooth), TINY)


def _width(errors: Floats, shape: Floats, level: float) -> Floats:
    """Return the conformal half-width at each step."""
    scores = np.sort((errors / shape).ravel())
    rank = min(len(scores), ceil((len(scores) + 1) * level)) - 1
    return scores[rank] * shape


def _calibrated(
    fits: Sequence[_Fit], shapes: Sequence[Floats], level: float
) -> tuple[Floats, Coverage]:
    """Return a factor for the width at each step, and the coverage that it reaches on the past.

    Each of the most recent origins is judged by the errors of all others.
    """
    ratios: list[Floats] = []
    tried: list[bool] = []
    for fit, shape in zip(fits, shapes, strict=True):
        recent = max(CALIBRATED_ON, ceil(VALUES_PER_SERIES / len(shape)))
        for origin in range(min(recent, len(fit.errors))):
            rest = np.delete(fit.errors, origin, axis=0) if len(fit.errors) > 1 else fit.errors
            ratios.append(fit.errors[origin] / np.maximum(_width(rest, shape, level), TINY))
            tried.append(fit.is_tried)
    table = np.array(ratios)
    blocks = _blocks(table.shape[1])
    factors = np.full(table.shape[1], WIDER)
    if len(fits) >= SERIES_LEAST:
        for block in range(BLOCKS):
            at = blocks == block
            if at.any():
                factors[at] = float(np.quantile(table[:, at], level))
    seen = table[np.array(tried)]
    by_block = [
        float((seen[:, blocks == block] <= factors[blocks == block]).mean())
        for block in range(BLOCKS)
        if (blocks == block).any() and len(seen)
    ]
    return factors, Coverage(level, by_block, int(seen.size))


def _blocks(horizon: int) -> NDArray[np.int_]:
    return np.minimum(np.arange(horizon) * BLOCKS // horizon, BLOCKS - 1)


def _empty(fit: _Fit) -> Forecast:
    return Forecast(
        mean=fit.mean.tolist(),
        lo80=[],
        hi80=[],
        lo95=[],
        hi95=[],
        methods=fit.methods,
        seasons=[*fit.seasons],
        origins=len(fit.errors),
        coverage80=[],
        coverage95=[],
    )


def _with_interval(found: Forecast, fit: _Fit, width: Floats, coverage: Coverage) -> Forecast:
    if fit.is_positive:
        low, high = fit.mean * np.exp(-width), fit.mean * np.exp(np.minimum(width, 50.0))
    else:
        low, high = fit.mean - width, fit.mean + width
    if fit.is_never_negative:
        low = np.maximum(low, 0.0)
    lows, highs = low.tolist(), high.tolist()
    if coverage.level == LEVELS[0]:
        return replace(found, lo80=lows, hi80=highs, coverage80=coverage.by_block)
    return replace(found, lo95=lows, hi95=highs, coverage95=coverage.by_block)
