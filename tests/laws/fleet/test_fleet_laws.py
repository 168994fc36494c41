"""What holds for the fleet itself: forks stand alone, and facts lead to one state."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenfold.compose.policies import placing_decider
from tenfold.engine.loop import Decider, run
from tenfold.fleet.fleet import Fleet
from tenfold.model.decision import Decision
from tenfold.model.events import Event
from tenfold.model.policy.policy import POLICIES, Policy, PolicyName
from tenfold.model.units import Millis
from tests.rigs.ledger import Ledger
from tests.rigs.soak import simulated, state
from tests.rigs.worlds import drawn_world


class Forks:
    """A witness that forks the fleet at some cycles, and notes what it held then."""

    def __init__(self, every: int) -> None:
        self.every = every
        self.cycles = 0
        self.forks: list[tuple[Fleet, dict[str, object]]] = []

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        self.cycles += 1
        if self.cycles % self.every == 0:
            self.forks.append((fleet.fork(), copied(fleet)))


def copied(fleet: Fleet) -> dict[str, object]:
    """All that a fleet holds, in containers of its own; the records in them never change."""
    return {
        name: value if isinstance(value, int) else value.copy()  # pyright: ignore
        for name, value in state(fleet).items()
    }


def replayed(events: list[Event], onto: Fleet) -> Fleet:
    for event in events[onto.version :]:
        onto.apply(event)
    return onto


@given(
    dice=st.randoms(use_true_random=False),
    name=st.sampled_from(POLICIES),
    every=st.integers(1, 9),
)
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
def test_a_fork_stands_alone_and_the_same_facts_lead_it_to_the_same_fleet(
    dice: object, name: PolicyName, every: int
):
    world = drawn_world(dice, jobs=(1, 14), faults=(0, 3))  # pyright: ignore
    fleet, ledger, forks = Fleet(), Ledger(), Forks(every)
    decider = placing_decider(Policy(name=name, slurm=world.slurm))
    run(simulated(world), fleet, [decider], journal=ledger, witnesses=[forks])
    end = copied(fleet)
    for fork, held in forks.forks:
        assert state(fork) == held, "the fleet went on and took its fork with it"
        assert state(replayed(ledger.events, fork)) == end
    assert state(fleet) == end, "a fork went on and took the fleet with it"
    assert state(replayed(ledger.events, Fleet())) == end
