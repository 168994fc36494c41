"""Wherever a controller is killed and by whatever policy the next one decides, it all replays."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenfold.compose.live_journal import LiveJournal
from tenfold.compose.policies import placing_decider
from tenfold.engine.loop import Decider, World, run
from tenfold.fleet.fleet import Fleet
from tenfold.model.decision import Decision
from tenfold.model.events import Event
from tenfold.model.policy.policy import Policy, PolicyName
from tenfold.model.units import Millis
from tenfold.study.replay.bundle import verify
from tenfold.study.replay.records import open_record
from tests.rigs.soak import simulated
from tests.rigs.worlds import drawn_world

LIVES: tuple[PolicyName, ...] = ("fifo", "las", "edf", "fair", "tenfold", "governed", "slurm")


class Killed(Exception):
    """The controller is gone."""


class Killer:
    """Kills the controller after a cycle, before the record of it is on the disk."""

    def __init__(self, after: int) -> None:
        self._left = after

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        self._left -= 1
        if not self._left:
            raise Killed


class Going:
    """A world that outlives controllers, and says so when it is over."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.is_over = False
        self.carry_out = world.carry_out

    def wait(self, until_ms: Millis | None) -> tuple[Millis, Sequence[Event]] | None:
        turn = self._world.wait(until_ms)
        self.is_over = turn is None
        return turn


@given(
    dice=st.randoms(use_true_random=False),
    lives=st.lists(st.tuples(st.sampled_from(LIVES), st.integers(1, 12)), min_size=1, max_size=5),
)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_journal_replays_over_kills_and_changes_of_policy(
    dice: Random, lives: list[tuple[PolicyName, int]]
):
    world = Going(simulated(drawn_world(dice, jobs=(1, 10), faults=(0, 2), governed=False)))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        for name, cycles in [*lives, (lives[-1][0], 0)]:
            policy = Policy(name=name)
            journal = LiveJournal(str(path), "test", 0, policy)
            fleet, killer = journal.restore().fleet, Killer(cycles)
            witnesses = [*journal.witnesses(), killer]
            with suppress(Killed):
                run(world, fleet, [placing_decider(policy)], journal=journal, witnesses=witnesses)
            # Killed: what waited for the next commit is gone with it.
            journal.close() if world.is_over else journal.store.close()
            if world.is_over:
                break
        bundle, _ = open_record(str(path))
        found = verify(bundle)
    assert found.difference is None, found.difference.sentence
    assert found.same
