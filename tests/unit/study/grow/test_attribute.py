"""Who is to blame for a break: the layer whose lifting lets the fleet go further."""

import pytest

import growth_builders as made
from tenfold.study.grow.attribute import Attribution, attribute
from tenfold.study.grow.layer import Constraint
from tenfold.study.grow.measured import MeasuredLayer
from tenfold.study.grow.search import ConstraintsOf, find_bottleneck
from tenfold.study.grow.state import State, state_of

MOST = 10.0


def constraint(layer: str, at: float, *, rank: int = 0, spread: float = 0.1) -> Constraint:
    of = MeasuredLayer(layer)
    return Constraint(of, "it", lambda factor: factor / at, spread, "published", rank)


def named(constraints_of: ConstraintsOf) -> Attribution:
    state = state_of(made.given(made.fleet()))
    return attribute(state, constraints_of, find_bottleneck(constraints_of(state), MOST), MOST)


def standing(*constraints: Constraint) -> ConstraintsOf:
    def of(state: State) -> list[Constraint]:
        return [one for one in constraints if one.key not in state.relaxed]

    return of


def layers(found: Attribution) -> list[str]:
    return [one.layer for one in found.constraints]


def test_the_lowest_layer_is_named_and_what_breaks_without_it():
    found = named(
        standing(constraint("power", 2), constraint("ports", 2.1), constraint("floor", 6))
    )
    assert layers(found) == ["power"]
    assert found.k_without == pytest.approx(2.1)


def test_the_only_layer_leaves_nothing_to_break():
    assert named(standing(constraint("power", 2))).k_without is None


def test_two_layers_that_break_at_once_are_named_together():
    found = named(standing(constraint("power", 2), constraint("ports", 2), constraint("floor", 6)))
    assert layers(found) == ["ports", "power"]
    assert found.k_without == pytest.approx(6.0)


def test_all_layers_that_break_at_once_are_named_where_no_pair_is_enough():
    tied = [constraint("power", 2, rank=1), constraint("ports", 2), constraint("floor", 2, rank=2)]
    found = named(standing(*tied, constraint("streams", 2.1)))
    assert layers(found) == ["ports", "power", "floor"]
    assert found.k_without == pytest.approx(2.1)


def test_an_effect_that_breaks_first_is_not_taken_for_its_cause():
    def starved(state: State) -> list[Constraint]:
        """The queue breaks early only because the tier holds jobs up."""
        tier = constraint("tier", 2.1, rank=1)
        if tier.key in state.relaxed:
            return [constraint("queue", 6, rank=9)]
        return [constraint("queue", 2, rank=9), tier] if "queue:it" not in state.relaxed else [tier]

    found = named(starved)
    assert layers(found) == ["tier"]
    assert found.k_without == pytest.approx(6.0)


def test_a_rival_outside_the_interval_is_not_tried():
    tried: list[tuple[str, ...]] = []

    def watched(state: State) -> list[Constraint]:
        tried.append(state.relaxed)
        return standing(constraint("power", 2), constraint("floor", 6))(state)

    named(watched)
    assert tried == [(), ("power:it",)]


def test_only_a_break_has_a_cause():
    with pytest.raises(AssertionError, match="only a break"):
        named(standing(constraint("power", 99)))
