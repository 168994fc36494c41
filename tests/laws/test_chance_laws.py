"""What holds for every placing policy where anything may happen at any moment.

Here nodes join late and are cordoned, jobs are taken back, orders are refused or outlast others.
"""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenfold.engine.loop import run
from tenfold.fleet.fleet import Fleet
from tenfold.model.policy.policy import POLICIES, PolicyName
from tests.rigs.chance_world import ChanceWorld
from tests.rigs.laws import Sound
from tests.rigs.ledger import Ledger
from tests.rigs.soak import state, watched_decider
from tests.rigs.worlds import drawn_world


def live_through(dice: Random, name: PolicyName, *, jobs: int, turns: int) -> Ledger:
    drawn = drawn_world(dice, jobs=(1, jobs), faults=(0, 0))
    ledger, fleet = Ledger(), Fleet()
    world = ChanceWorld(dice, drawn.nodes, drawn.jobs, turns=turns)
    decider = watched_decider(drawn, name)
    run(world, fleet, [decider], journal=ledger, witnesses=[Sound(ledger)])
    ledger.close()
    again = Fleet()
    again.apply_all(ledger.events)
    assert state(again) == state(fleet)
    return ledger


@pytest.mark.parametrize("name", POLICIES)
@given(dice=st.randoms(use_true_random=False))
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
def test_every_law_holds_whatever_happens(name: PolicyName, dice: Random):
    live_through(dice, name, jobs=12, turns=40)


@pytest.mark.parametrize("name", POLICIES)
def test_every_law_holds_whatever_happens_for_longer(name: PolicyName):
    for seed in range(3):
        try:
            live_through(Random(seed), name, jobs=40, turns=150)
        except AssertionError as error:
            pytest.fail(f"live_through(Random({seed}), {name!r}, jobs=40, turns=150): {error}")


def test_chance_brings_every_kind_of_fact():
    kinds = {
        type(event).__name__
        for seed in range(4)
        for event in live_through(Random(seed), "las", jobs=40, turns=150).events
    }
    assert {"JobCancelled", "NodeCordoned", "NodeLost", "NodeReturned", "ActionRefused"} <= kinds
