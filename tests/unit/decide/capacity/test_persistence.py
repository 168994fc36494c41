"""Which part of forecast errors lasts."""

import numpy as np

from tenfold.decide.capacity.persistence import lasting_share, towards_level


def test_errors_of_a_series_that_wanders_last():
    wandering = 100 * np.exp(np.cumsum(np.random.default_rng(1).normal(0, 0.05, 200)))
    assert lasting_share(wandering, 12) > 0.9


def test_errors_of_noise_around_a_level_average_out():
    noise = 100 * np.exp(np.random.default_rng(2).normal(0, 0.3, 200))
    assert 0.2 < lasting_share(noise, 12) < 0.4


def test_without_evidence_all_errors_last():
    assert lasting_share(np.array([1.0, 5.0, 2.0]), 12) == 1
    assert lasting_share(np.full(50, 7.0), 12) == 1
    assert lasting_share(np.arange(1.0, 60.0), 1) == 1


def test_a_forecast_that_was_hardly_tried_is_drawn_towards_the_present_level():
    steady = 100 * np.exp(np.random.default_rng(3).normal(0, 0.1, 40))
    rising = np.array([200.0, 300.0])
    level = steady[-1:].mean()
    once, often = (towards_level(rising, steady, origins) for origins in (1, 8))
    assert (once < often).all()
    assert (often < rising).all()
    assert (once > level).all()


def test_a_series_that_wanders_has_no_level_but_its_last_value():
    wandering = 100 * np.exp(np.cumsum(np.random.default_rng(1).normal(0, 0.05, 2_000)))
    drawn = towards_level(np.array([wandering[-1]]), wandering, 1)
    assert abs(drawn[0] / wandering[-1] - 1) < 1e-9
