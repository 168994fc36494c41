"""Forecasts of series whose future is known, and the intervals around them."""

import numpy as np
import pytest

from tenfold.decide.capacity.forecast import find_seasons, forecast
from tenfold.model.errors import NoAnswer

HOURS = np.arange(24 * 7 * 5)
DAILY = 100 + 30 * np.sin(2 * np.pi * HOURS / 24) + 0.01 * HOURS


def noisy(values: np.ndarray, seed: int, spread: float = 3.0) -> np.ndarray:
    return values + np.random.default_rng(seed).normal(0, spread, len(values))


def test_a_daily_season_and_its_week_are_found():
    assert find_seasons(noisy(DAILY, 1), None).seasons == (24, 168)
    assert find_seasons(noisy(DAILY, 1), 12).seasons == (12,)
    assert find_seasons(np.random.default_rng(2).normal(50, 5, 300), None).seasons == ()
    assert find_seasons(np.full(100, 7.0), None).seasons == ()


def test_a_season_with_growth_continues():
    values = noisy(DAILY, 3)
    found, _ = forecast({"gpus": values[:-48]}, 48)
    one = found["gpus"]
    assert np.abs(np.array(one.mean) - DAILY[-48:]).max() < 8
    assert one.seasons == [24, 168]
    inside = (np.array(one.lo95) <= values[-48:]) & (values[-48:] <= np.array(one.hi95))
    assert inside.mean() > 0.85
    assert all(
        a <= b <= c <= d <= e
        for a, b, c, d, e in zip(one.lo95, one.lo80, one.mean, one.hi80, one.hi95, strict=True)
    )


def test_intervals_of_many_series_cover_what_they_say():
    draw = np.random.default_rng(4)
    walks = {
        str(index): 500 + np.cumsum(draw.normal(0.2, 2.0, 240)) + draw.normal(0, 3.0, 240)
        for index in range(60)
    }
    found, covered = forecast({name: values[:-12] for name, values in walks.items()}, 12)
    inside = [
        (np.array(one.lo80) <= walks[name][-12:]) & (walks[name][-12:] <= np.array(one.hi80))
        for name, one in found.items()
    ]
    assert 0.7 <= np.mean(inside) <= 0.9
    assert [one.level for one in covered] == [0.8, 0.95]
    assert all(0.75 <= one <= 0.85 for one in covered[0].by_block)


def test_the_same_series_has_the_same_forecast_whatever_its_neighbours_order():
    series = {"a": noisy(DAILY, 5), "b": noisy(DAILY, 6)}
    first, _ = forecast(series, 24)
    second, _ = forecast(dict(reversed(series.items())), 24)
    assert first["a"] == second["a"]


def test_a_series_that_was_never_negative_stays_so():
    falling = np.maximum(0.0, 50 - np.arange(60.0))
    one = forecast({"idle": falling}, 10)[0]["idle"]
    assert min(one.mean + one.lo95) >= 0


def test_a_short_history_still_has_an_interval_that_widens():
    one = forecast({"new": np.array([3.0, 4, 6, 5, 7, 8, 8, 9])}, 4)[0]["new"]
    widths = np.array(one.hi95) - np.array(one.lo95)
    assert (widths > 0).all()
    assert widths[-1] >= widths[0]


def test_a_history_too_short_for_the_horizon_is_refused():
    with pytest.raises(NoAnswer, match="is too short for a forecast of 60"):
        forecast({"gpus": np.arange(1.0, 31)}, 60)
    with pytest.raises(NoAnswer, match="a history of 3 values"):
        forecast({"gpus": np.array([1.0, 2, 3])}, 1)


def test_a_single_step_has_intervals_of_two_widths():
    one = forecast({"gpus": noisy(DAILY, 7)}, 1)[0]["gpus"]
    assert one.origins >= 24
    assert one.hi80[0] - one.lo80[0] < one.hi95[0] - one.lo95[0]


def test_the_season_does_not_depend_on_the_unit():
    assert find_seasons(noisy(DAILY, 1) * 1e-9, None).seasons == (24, 168)


def test_coverage_is_measured_or_not_given():
    short = {"gpus": np.arange(1.0, 41.0)}
    found, covered = forecast(short, 24)
    assert [one.by_block for one in covered] == [[], []]
    assert found["gpus"].coverage95 == []
    _, covered = forecast({**short, "long": noisy(DAILY, 8)}, 24)
    assert all(len(one.by_block) == 4 for one in covered)
    _, alone = forecast({"long": noisy(DAILY, 8)}, 24)
    assert [one.values for one in covered] == [one.values for one in alone]
