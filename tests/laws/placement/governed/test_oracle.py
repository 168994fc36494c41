"""The governed decider against oracles that try everything, in small worlds."""

from random import Random
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold.model.ids import TeamId
from tenfold.model.job.job import WHOLE
from tenfold.model.policy.governance import ANY, GovernanceRules, TeamRules
from tenfold.model.units import Millis
from tenfold.testing.builders import fleet, job, nodes
from tests.rigs.governed.gaps import stops_cost, walk_gap
from tests.rigs.governed.oracle import kept_in_place, least_lost, most_started
from tests.rigs.governed.quota_state import QuotaState
from tests.rigs.governed.small import NOW_MS, lent_world

WORLDS = 300
seeds = st.integers(0, 1 << 32)


def test_the_oracle_finds_the_most_that_could_start():
    waits = [job(number, gpus) for number, gpus in enumerate((3, 3, 2, 2, 2))]
    assert most_started(GovernanceRules(), fleet(nodes(1, gpus=8), *waits), Millis(0)) == 8
    assert most_started(GovernanceRules(), fleet(nodes(2, gpus=4), *waits), Millis(0)) == 7


def test_the_oracle_keeps_to_quotas():
    limit = TeamRules(id=TeamId("a"), quota={ANY: 2 * WHOLE}, borrow={ANY: WHOLE})
    waits = [job(number, 2, team="a") for number in range(3)]
    found = most_started(GovernanceRules(teams=(limit,)), fleet(nodes(1), *waits), Millis(0))
    assert found == 2


def test_the_oracle_lets_those_in_who_must_be():
    waits = [job(0, 1), job(1, 8)]
    small = [waits[0].id]
    assert most_started(GovernanceRules(), fleet(nodes(1), *waits), Millis(0)) == 8
    assert most_started(GovernanceRules(), fleet(nodes(1), *waits), Millis(0), among=small) == 1


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_a_walk_never_starts_more_than_could(seed: int):
    walk_gap(seed)


def test_a_walk_leaves_little_that_better_places_would_start():
    gaps = [gap for seed in range(WORLDS) if (gap := walk_gap(seed)) is not None]
    assert len(gaps) >= WORLDS * 0.95
    assert mean(gap.of_its_own for gap in gaps) <= 0.02
    assert mean(gap.of_any for gap in gaps) <= 0.15


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_somebody_is_stopped_just_where_that_helps(seed: int):
    stops_cost(seed)


def test_stops_cost_hardly_more_than_the_least_and_no_more_than_starting_over():
    costs = [cost for seed in range(WORLDS) if (cost := stops_cost(seed)) is not None]
    least = sum(cost.least for cost in costs)
    assert len(costs) >= WORLDS / 4
    assert sum(cost.ours for cost in costs) <= 1.02 * least
    dearer = [cost for cost in costs if cost.ours > cost.anew]
    assert len(dearer) <= len(costs) / 100


@pytest.mark.parametrize("seed", range(40))
def test_starting_over_gives_up_whom_the_least_gives_up_or_more(seed: int):
    world, govern, asks = lent_world(Random(seed))
    quota_state = QuotaState(govern, world, NOW_MS)
    best, anew = least_lost(quota_state, asks), kept_in_place(quota_state, asks)
    if best is not None:
        assert quota_state.fits(asks, without=anew)
        assert bool(best) == bool(anew)
