"""The usage law of a measured resource, point by point."""

import math

import pytest

from tenfold.model.growth.measured import UsagePoint
from tenfold.physics.growth.usage import (
    Usage,
    factor_at,
    factor_range,
    fit_usage,
    spread_of,
    usage_at,
)


def points(*pairs: tuple[float, float], limit: float = 100.0) -> list[UsagePoint]:
    return [
        UsagePoint(
            layer="monitoring", resource="cpu", factor=factor, usage=used, limit=limit, unit="core"
        )
        for factor, used in pairs
    ]


def test_a_straight_line_is_found_with_its_base_and_no_spread():
    found = fit_usage(points((1, 5), (2, 7), (3, 9)))
    assert found == pytest.approx(Usage(3, 2, 1, 2, 2))
    assert usage_at(found, 10) == pytest.approx(23)
    assert factor_at(found, 100) == pytest.approx(48.5)


def test_a_base_below_nothing_is_nothing():
    found = fit_usage(points((1, 1), (2, 3), (3, 5)))
    assert found.base == 0.0
    assert found.slope == pytest.approx(22 / 14)


def test_a_falling_usage_is_taken_for_a_flat_one_that_never_meets_its_limit():
    found = fit_usage(points((1, 5), (2, 4), (3, 3)))
    assert (found.base, found.slope) == pytest.approx((4, 0))
    assert factor_at(found, 100) == math.inf
    assert spread_of(found) == 0.0


def test_a_lone_point_may_be_half_base():
    found = fit_usage(points((2, 10)))
    assert found == Usage(0, 5, 1, 2.5, 5)
    assert factor_range(found, 100) == (20, 40)


def test_repeats_at_one_factor_are_a_lone_point():
    assert fit_usage(points((2, 9), (2, 11))) == fit_usage(points((2, 10)))


def test_points_that_disagree_widen_the_interval_around_the_slope():
    found = fit_usage(points((1, 5), (2, 8), (3, 8), (4, 12)))
    assert found.slope_low < found.slope < found.slope_high
    low, high = factor_range(found, 100)
    assert low < factor_at(found, 100) < high
    assert spread_of(found) > 0.1


def test_four_factors_over_four_times_the_span_may_bend_the_line():
    bent = [(k, 10.0 * k**1.5) for k in (1, 2, 4, 8)]
    found = fit_usage(points(*bent))
    assert found.power == pytest.approx(1.5)
    assert usage_at(found, 64) == pytest.approx(10 * 64**1.5, rel=0.01)


def test_usage_that_bends_down_is_a_line_whose_range_reaches_the_curve():
    bent = fit_usage(points(*((k, 10.0 * k**0.7) for k in (1, 2, 4, 8))))
    assert bent.power == 1.0
    beyond = 10.0 * (4 * 8) ** 0.7
    low, high = factor_range(bent, beyond)
    assert low <= factor_at(bent, beyond) < 4 * 8 <= high


def test_the_interval_of_a_bent_line_reaches_the_straight_one():
    bent = fit_usage(points(*((k, 10.0 * k**1.5) for k in (1, 2, 4, 8))))
    straight = fit_usage(points((1, 10.0), (8, 10 * 8**1.5)))
    assert spread_of(bent) > 0.1
    assert factor_at(bent, 900) < factor_at(straight, 900) < factor_range(bent, 900)[1]


def test_fewer_factors_or_a_shorter_span_do_not_bend_it():
    assert fit_usage(points((1, 10), (4, 26), (8, 43))).power == 1.0
    assert fit_usage(points((4, 26), (5, 31), (6, 35), (8, 43))).power == 1.0


def test_noise_alone_does_not_bend_it():
    assert fit_usage(points((1, 10.3), (2, 19.8), (4, 40.5), (8, 79.6))).power == 1.0


def test_a_base_above_the_limit_is_broken_at_any_factor():
    assert factor_at(Usage(5, 1, 1, 1, 1), 4) == 0.0


def test_no_points_are_no_question():
    with pytest.raises(AssertionError, match="at least one point"):
        fit_usage([])
