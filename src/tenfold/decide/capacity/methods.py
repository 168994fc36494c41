"""Forecasting methods: each continues a series of evenly spaced values.

A method returns None if the series is too short for it. Series whose values are all positive are
continued in logarithms by the autoregressions, so that growth is relative.
"""

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Method = Callable[[Floats, int], Floats | None]

RECENT = 300
"""Values that the methods without a season look back on."""
SMOOTHING = np.linspace(0.05, 1.0, 20)
LEVEL_SHARES = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
TREND_SHARES = np.array([0.02, 0.1, 0.3])
DAMPING = np.array([0.8, 0.9, 0.97])
RIDGE = 1e-4
"""Penalty on each coefficient, per value: keeps forecasts stable where lags are alike."""
BEYOND = 3.0
"""How many standard deviations beyond the range seen a forecast may go."""
LONG_SEASON = 52


class Periods(Struct, frozen=True):
    """The seasons of a series, in values, shortest first; empty if none is known."""

    seasons: tuple[int, ...] = ()

    @property
    def main(self) -> int:
        """Return the shortest season, or 1."""
        return self.seasons[0] if self.seasons else 1


def methods_for(count: int, periods: Periods) -> dict[str, Method]:
    """Return the methods that suit a series of so many values, by name."""
    seasons = tuple(one for one in periods.seasons if count >= 3 * one + 10)
    found: dict[str, Method] = {"seasonal-naive": _seasonal_naive(periods.main)}
    if not seasons:
        found |= {"damped-trend": damped_trend, "theta": theta}
        found["autoregression-short"] = _autoregression((1, 2, 3, 4), 260)
        # A yearly season of weekly values is common, and harmless where there is none.
        seasons = (LONG_SEASON,) if count >= 3 * LONG_SEASON + 10 else ()
    if not seasons:
        return found
    if periods.seasons and seasons[-1] != periods.main:
        found["seasonal-naive-long"] = _seasonal_naive(seasons[-1])
    window = max(600, 8 * seasons[-1])
    waves = tuple((one, min(6 if one < 100 else 4, one // 2)) for one in seasons)
    found["autoregression"] = _autoregression(_seasonal_lags(seasons), window)
    found["autoregression-waves"] = _autoregression(_near_lags(seasons), window, waves)
    found["autoregression-dense"] = _autoregression(_dense_lags(seasons), window)
    return found


def simple_smoothing(values: Floats, horizon: int) -> Floats:
    """Continue the level: exponential smoothing with the best of twenty shares."""
    level = np.full(len(SMOOTHING), values[0])
    squares = np.zeros(len(SMOOTHING))
    for value in values[1:]:
        error = value - level
        squares += error * error
        level = level + SMOOTHING * error
    return np.full(horizon, level[squares.argmin()])


def theta(values: Floats, horizon: int) -> Floats:
    """Average a straight line and the smoothed series with twice its distance from the line."""
    values = values[-RECENT:]
    count = len(values)
    slope, start = np.polyfit(np.arange(count), values, 1)
    line = start + slope * np.arange(count)
    ahead = start + slope * (count + np.arange(horizon))
    return 0.5 * ahead + 0.5 * simple_smoothing(2 * values - line, horizon)


def damped_trend(values: Floats, horizon: int) -> Floats:
    """Continue level and trend, with a trend that fades."""
    values = values[-RECENT:]
    shares = np.meshgrid(LEVEL_SHARES, TREND_SHARES, DAMPING)
    level_share, trend_share, fades = (one.ravel() for one in shares)
    level = np.full(len(fades), values[0])
    trend, squares = np.zeros(len(fades)), np.zeros(len(fades))
    for value in values[1:]:
        expected = level + fades * trend
        error = value - expected
        squares += error * error
        trend = fades * trend + level_share * trend_share * error
        level = expected + level_share * error
    best = squares.argmin()
    return level[best] + trend[best] * np.cumsum(fades[best] ** np.arange(1, horizon + 1))


def _seasonal_naive(season: int) -> Method:
    def continued(values: Floats, horizon: int) -> Floats | None:
        return None if len(values) < season else np.resize(values[-season:], horizon)

    return continued


def _autoregression(
    lags: Sequence[int], window: int, waves: tuple[tuple[int, int], ...] = ()
) -> Method:
    """Regress each value on earlier ones and on sine waves, with a small ridge penalty."""

    def continued(values: Floats, horizon: int) -> Floats | None:
        seen = values[-window:]
        first = max(lags)
        if len(seen) <= first + len(lags) + 10:
            return None
        is_positive = bool(seen.min() > 0)
        scaled = np.log(seen) if is_positive else seen.copy()
        mean, spread = float(scaled.mean()), float(scaled.std()) or 1.0
        scaled = (scaled - mean) / spread
        inputs = [scaled[first - lag : len(scaled) - lag] for lag in lags]
        inputs += [wave[first:] for wave in _waves(np.arange(len(scaled)), waves)]
        inputs.append(np.ones(len(scaled) - first))
        weights = _ridge(np.stack(inputs, axis=1), scaled[first:])
        ahead = len(scaled) + np.arange(horizon)
        steps = np.stack([*_waves(ahead, waves), np.ones(horizon)], axis=1)
        low, high = scaled.min() - BEYOND, scaled.max() + BEYOND
        path = np.concatenate([scaled, np.zeros(horizon)])
        for step in range(horizon):
            at = len(scaled) + step
            lagged = path[[at - lag for lag in lags]]
            value = float(lagged @ weights[: len(lags)] + steps[step] @ weights[len(lags) :])
            path[at] = min(max(value, low), high)
        result = path[len(scaled) :] * spread + mean
        return np.exp(result) if is_positive else result

    return continued


def _ridge(inputs: Floats, wanted: Floats) -> Floats:
    """Return the weights of a linear regression; the last input, a constant, is not penalised."""
    penalty = np.full(inputs.shape[1], RIDGE * len(wanted))
    penalty[-1] *= 0.01
    weights = np.linalg.solve(inputs.T @ inputs + np.diag(penalty), inputs.T @ wanted)
    return weights.astype(np.float64)


def _waves(times: NDArray[np.int_], waves: tuple[tuple[int, int], ...]) -> list[Floats]:
    angles = [
        2 * np.pi * harmonic * times / season
        for season, harmonics in waves
        for harmonic in range(1, harmonics + 1)
    ]
    return [wave for angle in angles for wave in (np.sin(angle), np.cos(angle))]


def _near_lags(seasons: tuple[int, ...]) -> tuple[int, ...]:
    return _sorted([1, 2, 3, *(season + by for season in seasons for by in (-1, 0, 1))])


def _seasonal_lags(seasons: tuple[int, ...]) -> tuple[int, ...]:
    first = seasons[0]
    lags = [1, 2, 3, 4, 2 * first, *(season + by for season in seasons for by in range(-2, 3))]
    lags += [3 * first, 6 * first] if len(seasons) > 1 else [first // 4, first // 2]
    return _sorted(lags)


def _dense_lags(seasons: tuple[int, ...]) -> tuple[int, ...]:
    if seasons[0] > 40:
        return _near_lags(seasons)
    dense = range(1, seasons[0] + 3)
    return _sorted([*dense, *(season + by for season in seasons for by in range(-3, 4))])


def _sorted(lags: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted({lag: None for lag in lags if lag > 0}))
