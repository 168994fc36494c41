"""What holds for every history: an image is the fleet, and a journal gives back what it took."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from journal_builders import batches_of, decider_for, read_tables, states_told
from tenfold.engine.digest import fleet_digest
from tenfold.engine.loop import Decider, run
from tenfold.fleet.check import check
from tenfold.fleet.fleet import Fleet, FleetView
from tenfold.fleet.image import FleetImage, fleet_from, image_of
from tenfold.journal import read
from tenfold.journal.append import open_journal
from tenfold.journal.integrity.rebuild import rebuild_read_tables
from tenfold.journal.snapshots import restore, save_snapshot
from tenfold.journal.store import open_store
from tenfold.model.decision import Decision
from tenfold.model.events import Event
from tenfold.model.policy.policy import POLICIES, PolicyName
from tenfold.model.units import Millis
from tests.rigs.journal import export_older, fleet_of_parts
from tests.rigs.ledger import Ledger
from tests.rigs.soak import simulated, state
from tests.rigs.worlds import SmallWorld, drawn_world


def stored(fleet: Fleet) -> Fleet:
    """A fleet that went to the disk and came back."""
    body = msgspec.json.encode(image_of(fleet))
    return fleet_from(msgspec.json.decode(body, type=FleetImage))


class Restarted:
    """A decider beside which, now and then, a fresh one decides on a fleet that came back."""

    def __init__(self, world: SmallWorld, name: PolicyName, every: int) -> None:
        self._make = lambda: decider_for(world, name)
        self._warm: Decider = self._make()
        self._every = every
        self.cycles = 0
        self.name = self._warm.name
        self.copies: list[Fleet] = []

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        decision = self._warm.decide(view, now_ms, news)
        self.cycles += 1
        if self.cycles % self._every == 0:
            assert isinstance(view, Fleet)
            copy = stored(view)
            assert fleet_digest(copy) == fleet_digest(view)
            fresh = self._make().decide(copy, now_ms, None)
            assert list(fresh.actions) == list(decision.actions)
            assert fresh.wake_at_ms == decision.wake_at_ms
            self.copies.append(copy)
        return decision


@given(
    dice=st.randoms(use_true_random=False),
    name=st.sampled_from(POLICIES),
    every=st.integers(1, 9),
)
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
def test_a_fleet_that_came_back_decides_and_goes_on_as_the_one_that_stayed(
    dice: Random, name: PolicyName, every: int
):
    world = drawn_world(dice, jobs=(1, 14), faults=(0, 3), governed=name == "governed")
    fleet, ledger, decider = Fleet(), Ledger(), Restarted(world, name, every)
    run(simulated(world), fleet, [decider], journal=ledger)
    for copy in decider.copies:
        copy.apply_all(ledger.events[copy.version :])
        check(copy)
        assert fleet_digest(copy) == fleet_digest(fleet)
        assert state(copy) == state(fleet)
        assert vars(copy._dependents) == vars(fleet._dependents)


@given(
    seed=st.integers(0, 9_999),
    governed=st.booleans(),
    dice=st.randoms(use_true_random=False),
)
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
def test_a_journal_gives_back_the_fleet_and_its_read_tables(
    seed: int, governed: bool, dice: Random
):
    batches = joined(batches_of(seed, governed=governed), dice)
    with TemporaryDirectory() as folder:
        store = open_store(Path(folder) / "journal.db")
        writer, fleet, parts = open_journal(store, "law", 0), Fleet(), list[Path]()
        for batch in batches:
            writer.append(batch)
            fleet.apply_all(batch)
            if dice.random() < 0.3:
                save_snapshot(writer, fleet)
            if dice.random() < 0.2 and (export := export_older(writer, Path(folder))):
                parts.append(export.file)
            if dice.random() < 0.2:
                writer = open_journal(store, "another", 1)
        assert fleet_digest(restore(store).fleet) == fleet_digest(fleet)
        if parts:
            base = fleet_of_parts(parts)
            assert base.version <= fleet.version
        told = {row.id: row.state for row in read.jobs(store, limit=1_000)}
        assert {name: told[name] for name in states_told(fleet)} == states_told(fleet)
        before = read_tables(store)
        rebuild_read_tables(writer)
        assert read_tables(store) == before
        store.close()


def joined(batches: list[list[Event]], dice: Random) -> list[list[Event]]:
    """The same facts in a few larger batches: each commit waits for the disk."""
    events = [event for batch in batches for event in batch]
    cuts = sorted(dice.sample(range(len(events) + 1), min(6, len(events) + 1)))
    edges = [0, *cuts, len(events)]
    return [events[a:b] for a, b in pairwise(edges)]
