"""What holds for every usage, admission and all-reduce, whatever was measured."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.grow.rigs.shared_rates import fit_cut, ring_s, tree_s
from tenfold.model.growth.growth import Controller
from tenfold.model.growth.measured import UsagePoint
from tenfold.physics.growth.admission import backlog_wait_s, starts_per_s
from tenfold.physics.growth.usage import factor_at, factor_range, fit_usage, usage_at

factors = st.floats(0.05, 64.0)
amounts = st.floats(0.0, 1e6)
positive = st.floats(1e-3, 1e6)
NEAR = 1e-6


def point(factor: float, used: float) -> UsagePoint:
    return UsagePoint(layer="a", resource="b", factor=factor, usage=used, limit=1.0, unit="u")


measured = st.lists(st.builds(point, factors, amounts), min_size=1, max_size=12)


@given(measured, factors, factors)
def test_a_usage_never_falls_with_its_factor_and_is_never_below_nothing(points, one, other):
    constraint = fit_usage(points)
    low, high = sorted((one, other))
    assert constraint.base >= 0.0
    assert 0.0 <= constraint.slope_low <= constraint.slope <= constraint.slope_high
    assert 0.0 <= usage_at(constraint, low) <= usage_at(constraint, high) * (1 + NEAR)


@given(measured, positive)
def test_at_the_breaking_factor_the_usage_is_its_limit(points, limit):
    constraint = fit_usage(points)
    breaks = factor_at(constraint, limit)
    if 0.0 < breaks < 1e9:
        assert usage_at(constraint, breaks) == pytest.approx(limit, rel=NEAR)
    low, high = factor_range(constraint, limit)
    assert low <= breaks * (1 + NEAR)
    assert breaks <= high * (1 + NEAR) or math.isinf(high)


@given(amounts, positive, st.lists(factors, min_size=2, max_size=8, unique=True))
def test_a_line_that_is_one_is_found(base, slope, at):
    constraint = fit_usage([point(factor, base + slope * factor) for factor in at])
    for factor in at:
        assert usage_at(constraint, factor) == pytest.approx(base + slope * factor, rel=1e-3)


@given(measured, st.randoms(use_true_random=False))
def test_the_order_of_the_points_does_not_matter(points, dice):
    shuffled = list(points)
    dice.shuffle(shuffled)
    there, back = fit_usage(points), fit_usage(shuffled)
    for factor in (0.1, 1.0, 10.0):
        assert usage_at(there, factor) == pytest.approx(usage_at(back, factor), rel=1e-3, abs=NEAR)


@given(measured, st.floats(1e-3, 1e3))
def test_a_change_of_unit_changes_nothing_but_the_unit(points, unit):
    constraint = fit_usage(points)
    scaled = fit_usage([point(one.factor, one.usage * unit) for one in points])
    for factor in (0.1, 1.0, 10.0):
        said = usage_at(constraint, factor) * unit
        assert usage_at(scaled, factor) == pytest.approx(said, rel=1e-3, abs=NEAR)


@given(positive, positive, st.integers(2, 64), st.floats(1.0, 32.0), st.floats(0.0, 1.0))
def test_more_bytes_ranks_or_crossings_never_make_an_all_reduce_faster(
    size, rate, ranks, crossings, alpha_s
):
    for took in (ring_s, tree_s):
        now = took(size, ranks, crossings, rate, alpha_s)
        assert took(size * 2, ranks, crossings, rate, alpha_s) >= now
        assert took(size, ranks + 1, crossings, rate, alpha_s) >= now * (1 - NEAR)
        assert took(size, ranks, crossings + 1, rate, alpha_s) >= now


@given(st.floats(1e3, 1e9), st.floats(1e-5, 1.0), st.integers(2, 16))
def test_a_cut_is_found_again_from_its_own_times(rate, alpha_s, ranks):
    timed = [
        (float(size), ring_s(size, ranks, 1.0, rate, alpha_s))
        for size in (rate * 0.1, rate * 0.3, rate)
    ]
    cut = fit_cut(timed, ranks, 1.0)
    assert cut.link_bytes_per_s == pytest.approx(rate, rel=1e-3)
    assert cut.alpha_s == pytest.approx(alpha_s, rel=1e-3, abs=1e-6)


@given(positive, positive, amounts, amounts)
def test_more_arrivals_never_wait_less_and_more_capacity_never_more(rate, capacity, window, depth):
    now = backlog_wait_s(rate, capacity, window, depth)
    assert backlog_wait_s(rate * 2, capacity, window, depth) >= now
    assert backlog_wait_s(rate, capacity * 2, window, depth) <= now


@given(st.floats(0.1, 1e3), st.integers(1, 64), st.floats(0.01, 1.0), st.floats(0.01, 1e5))
def test_a_controller_starts_no_faster_than_the_least_of_its_figures(cycles, heads, share, cost):
    rate = starts_per_s(
        Controller(
            kind="kueue",
            cycles_per_min=cycles,
            heads_per_cycle=heads,
            admitted_share=share,
            cost_ms_per_job=cost,
        )
    ).per_s
    assert rate == pytest.approx(min(cycles / 60 * heads * share, 1000 / cost))
