from collections import Counter
from random import Random
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from tenfold.gateway.route.pick import NEAR, pick, pick_revision


class One(NamedTuple):
    tokens: int
    weight: float = 1.0


LOADS = st.lists(
    st.builds(One, st.integers(0, 10_000), st.floats(0.1, 10)), min_size=1, max_size=12
)
CHANCE = st.floats(0, 1, exclude_max=True)


@given(LOADS, CHANCE)
def test_the_most_loaded_replica_is_never_taken_when_there_is_another(
    loads: list[One], chance: float
):
    picked = loads[pick(loads, chance)]
    if len(loads) > 1:
        others = sorted(one.tokens / one.weight for one in loads)
        assert picked.tokens / picked.weight <= others[-1]
        if others[-1] > others[-2]:
            assert picked.tokens / picked.weight < others[-1]


@given(st.integers(2, 9), st.data())
def test_both_draws_are_uniform_and_differ(count: int, data: st.DataObject):
    chosen = Counter(
        pick([One(0 if at == idle else 1) for at in range(count)], (step + 0.5) / 2_000)
        for idle in [data.draw(st.integers(0, count - 1))]
        for step in range(2_000)
    )
    # The idle one is among two of `count` in 2/count of the draws.
    idle_share = max(chosen.values()) / 2_000
    assert abs(idle_share - 2 / count) < 0.02 or count == 2


@given(LOADS, CHANCE, st.integers(0, 5_000), st.data())
def test_a_preferred_replica_is_taken_only_near_the_least_loaded(
    loads: list[One], chance: float, saved: int, data: st.DataObject
):
    preferred = data.draw(st.integers(0, len(loads) - 1))
    picked = pick(loads, chance, preferred, saved)
    least = min(one.tokens / one.weight for one in loads)
    load = loads[preferred].tokens / loads[preferred].weight
    if load <= least + max(saved, NEAR * least):
        assert picked == preferred
    elif picked == preferred:
        assert pick(loads, chance) == preferred


def test_load_is_spread_more_evenly_than_by_one_draw():
    random, two, one = Random(7), [0] * 20, [0] * 20
    for _ in range(4_000):
        two[pick([One(tokens) for tokens in two], random.random())] += 1
        one[int(random.random() * 20)] += 1
    assert max(two) - min(two) < 10 < max(one) - min(one)


@given(st.lists(st.floats(0, 100), max_size=6), CHANCE)
def test_a_revision_without_weight_gets_nothing(weights: list[float], chance: float):
    picked = pick_revision(weights, chance)
    assert (picked is None) == (not any(weights))
    if picked is not None:
        assert weights[picked] > 0


def test_revisions_get_their_share():
    shares = Counter(pick_revision([9, 0, 1], (step + 0.5) / 1_000) for step in range(1_000))
    assert shares == {0: 900, 2: 100}
