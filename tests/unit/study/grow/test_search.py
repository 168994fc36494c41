"""Where laws break, alone and together."""

from math import inf, isclose

import pytest

from tenfold.model.growth.growth import Grade
from tenfold.physics.growth.breaking import (
    ASSUMED,
    DEFAULTED,
    FACTOR_LEAST,
    STATED,
    breaking_factor,
    weakest,
)
from tenfold.study.grow.layer import Constraint, break_of
from tenfold.study.grow.measured import MeasuredLayer
from tenfold.study.grow.search import find_bottleneck, rank, rankable


def constraint(
    layer: str,
    at: float,
    *,
    spread: float = 0.0,
    grade: Grade = "published",
    rank: int = 0,
    needs: str = "",
) -> Constraint:
    of = MeasuredLayer(layer)
    return Constraint(of, "it", lambda factor: factor / at, spread, grade, rank, needs)


@pytest.mark.parametrize("at", [1.0, 1.3, 2.0, 7.77, 63.9])
def test_a_straight_law_breaks_where_demand_meets_capacity(at: float):
    found = breaking_factor(lambda factor: factor / at, 64.0)
    assert found is not None
    assert isclose(found, at, rel_tol=1e-9)


def test_a_curved_law_and_a_step_are_found_too():
    square = breaking_factor(lambda factor: factor**2 / 10, 64.0)
    step = breaking_factor(lambda factor: 0.5 if factor <= 3 else 2.0, 64.0)
    assert square is not None
    assert isclose(square, 10**0.5, rel_tol=1e-9)
    assert step == pytest.approx(3.0)


def test_a_layer_that_binds_already_says_by_how_much():
    assert breaking_factor(lambda factor: factor / 0.4, 64.0) == pytest.approx(0.4)


def test_a_layer_that_never_holds_is_followed_down_to_the_least_factor():
    assert breaking_factor(lambda _: 5.0, 64.0) == FACTOR_LEAST
    assert breaking_factor(lambda _: inf, 64.0) == FACTOR_LEAST


def test_a_layer_that_holds_up_to_the_largest_factor_is_free():
    assert breaking_factor(lambda factor: factor / 10, 10.0) is None
    assert breaking_factor(lambda _: 0.99, 1_000.0) is None
    assert break_of(constraint("far", 100), 10.0).status == "free"


def test_the_interval_is_where_the_law_breaks_if_strain_is_off_by_its_spread():
    broken = break_of(constraint("power", 4, spread=0.25), 64.0)
    assert broken.k == pytest.approx(4.0)
    assert broken.low == pytest.approx(3.2)
    assert broken.high == pytest.approx(5.0)


def test_a_free_law_may_still_break_at_the_low_end_of_its_interval():
    broken = break_of(constraint("power", 12, spread=1.0), 10.0)
    assert (broken.status, broken.k, broken.high) == ("free", None, None)
    assert broken.low == pytest.approx(6.0)


def test_a_law_without_its_figure_is_unknown():
    broken = break_of(constraint("floor", 2, needs="`floor_racks`"), 10.0)
    assert broken == (None, None, None, "unknown")
    assert MeasuredLayer("floor").unknown("racks", "`floor_racks`").needs == "`floor_racks`"


def test_a_capacity_of_nothing_is_strained_without_end():
    none = MeasuredLayer("floor").constraint("racks", lambda factor: factor, 0.0, STATED, str)
    assert none.utilisation(1.0) == inf


def test_a_law_is_known_no_better_than_its_worst_figure():
    assert weakest(STATED, DEFAULTED) == DEFAULTED
    assert weakest(DEFAULTED, ASSUMED, STATED) == ASSUMED


def test_layers_stand_in_the_order_in_which_they_break_then_free_then_unknown():
    constraints = [
        constraint("late", 8),
        constraint("unknown", 1, needs="x"),
        constraint("free", 99),
        constraint("soon", 2),
    ]
    assert [one.constraint.layer for one in rank(constraints, 10.0)] == [
        "soon",
        "late",
        "free",
        "unknown",
    ]


def test_of_layers_that_break_at_once_the_cause_stands_first():
    constraints = [constraint("effect", 2, rank=9), constraint("cause", 2, rank=1)]
    assert [one.constraint.layer for one in rank(constraints, 10.0)] == ["cause", "effect"]


def test_the_whole_breaks_with_its_weakest_law_and_near_ones_are_rivals():
    constraints = [
        constraint("b", 2.2, spread=0.1),
        constraint("a", 2, spread=0.1),
        constraint("c", 6, spread=0.1),
    ]
    found = find_bottleneck(constraints, 10.0)
    assert found.k == pytest.approx(2.0)
    assert found.constraint is not None
    assert found.constraint.layer == "a"
    assert [one.layer for one in found.overlapping] == ["a", "b"]


def test_a_fleet_without_a_break_has_no_rivals():
    assert find_bottleneck([constraint("far", 99)], 10.0) == (None, None, ())
    assert find_bottleneck([], 10.0) == (None, None, ())


def test_assumed_and_unknown_layers_are_not_counted_unless_asked_for():
    constraints = [
        constraint("guess", 1.1, grade="assumed"),
        constraint("known", 3),
        constraint("lost", 1, needs="x"),
    ]
    assert [one.layer for one in rankable(constraints, count_assumed=False)] == ["known"]
    assert [one.layer for one in rankable(constraints, count_assumed=True)] == ["guess", "known"]
