"""Who is to blame for a break: the layer whose lifting lets the fleet go further."""

import pytest

import growth_builders as made
from tenfold.study.grow.attribute import Attribution, attribute
from tenfold.study.grow.layer import Law
from tenfold.study.grow.measured import MeasuredLayer
from tenfold.study.grow.search import LawsOf, joint
from tenfold.study.grow.state import State, state_of

MOST = 10.0


def law(layer: str, at: float, *, rank: int = 0, spread: float = 0.1) -> Law:
    of = MeasuredLayer(layer)
    return Law(of, "it", lambda factor: factor / at, spread, "published", rank)


def named(laws_of: LawsOf) -> Attribution:
    state = state_of(made.given(made.fleet()))
    return attribute(state, laws_of, joint(laws_of(state), MOST), MOST)


def standing(*laws: Law) -> LawsOf:
    def of(state: State) -> list[Law]:
        return [one for one in laws if one.key not in state.lifted]

    return of


def layers(found: Attribution) -> list[str]:
    return [one.layer for one in found.laws]


def test_the_lowest_layer_is_named_and_what_breaks_without_it():
    found = named(standing(law("power", 2), law("ports", 2.1), law("floor", 6)))
    assert layers(found) == ["power"]
    assert found.k_without == pytest.approx(2.1)


def test_the_only_layer_leaves_nothing_to_break():
    assert named(standing(law("power", 2))).k_without is None


def test_two_layers_that_break_at_once_are_named_together():
    found = named(standing(law("power", 2), law("ports", 2), law("floor", 6)))
    assert layers(found) == ["ports", "power"]
    assert found.k_without == pytest.approx(6.0)


def test_all_layers_that_break_at_once_are_named_where_no_pair_is_enough():
    tied = [law("power", 2, rank=1), law("ports", 2), law("floor", 2, rank=2)]
    found = named(standing(*tied, law("streams", 2.1)))
    assert layers(found) == ["ports", "power", "floor"]
    assert found.k_without == pytest.approx(2.1)


def test_an_effect_that_breaks_first_is_not_taken_for_its_cause():
    def starved(state: State) -> list[Law]:
        """The queue breaks early only because the tier holds jobs up."""
        tier = law("tier", 2.1, rank=1)
        if tier.key in state.lifted:
            return [law("queue", 6, rank=9)]
        return [law("queue", 2, rank=9), tier] if "queue:it" not in state.lifted else [tier]

    found = named(starved)
    assert layers(found) == ["tier"]
    assert found.k_without == pytest.approx(6.0)


def test_a_rival_outside_the_interval_is_not_tried():
    tried: list[tuple[str, ...]] = []

    def watched(state: State) -> list[Law]:
        tried.append(state.lifted)
        return standing(law("power", 2), law("floor", 6))(state)

    named(watched)
    assert tried == [(), ("power:it",)]


def test_only_a_break_has_a_cause():
    with pytest.raises(AssertionError, match="only a break"):
        named(standing(law("power", 99)))
