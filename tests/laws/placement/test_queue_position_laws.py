"""Those ahead of a job are counted alike, whether or not the decider hears of every round."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold.compose.policies import placing_decider
from tenfold.engine.loop import Decider, run
from tenfold.engine.queue_position import jobs_ahead
from tenfold.fleet.fleet import Fleet, FleetView
from tenfold.model.decision import Decision
from tenfold.model.events import Event
from tenfold.model.policy.policy import POLICIES, Policy, PolicyName
from tenfold.model.units import Millis
from tests.rigs.soak import simulated
from tests.rigs.worlds import drawn_world

ASKED_EVERY = 7


class Deaf:
    """A decider that is told no news, and so begins afresh every time."""

    def __init__(self, decider: Decider) -> None:
        self._decider = decider
        self.name = decider.name

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        return self._decider.decide(view, now_ms, None)


class Asks:
    """Asks now and then how many are ahead of somebody who waits."""

    def __init__(self, policy: Policy, dice: Random) -> None:
        self._policy = policy
        self._dice = dice
        self._cycles = 0

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        self._cycles += 1
        if self._cycles % ASKED_EVERY or not fleet.pending:
            return
        job_id = self._dice.choice(list(fleet.pending))
        version, waiting = fleet.version, dict(fleet.pending)
        heard = jobs_ahead(fleet, job_id, now_ms, placing_decider(self._policy))
        afresh = jobs_ahead(fleet, job_id, now_ms, Deaf(placing_decider(self._policy)))
        assert heard == afresh
        assert (fleet.version, fleet.pending) == (version, waiting)


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=8)
@given(seed=st.integers(0, 100_000))
def test_a_line_is_counted_alike_with_and_without_news(name: PolicyName, seed: int):
    world = drawn_world(Random(seed), governed=name == "governed")
    policy = Policy(
        name=name,
        placement=world.placement,
        las_limits_gpu_s=world.las_limits_gpu_s,
        slurm=world.slurm,
        govern=world.govern,
    )
    decider = placing_decider(policy)
    run(simulated(world), Fleet(), [decider], witnesses=[Asks(policy, Random(seed))])
