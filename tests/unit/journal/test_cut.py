"""A controller that is killed between its orders and their record: the journal still replays."""

from pathlib import Path

from tenfold.compose.live_journal import LiveJournal
from tenfold.compose.policies import placing_decider
from tenfold.engine.decision_log import Cycle
from tenfold.engine.replay import replay
from tenfold.fleet.fleet import Fleet
from tenfold.journal.append import open_journal
from tenfold.journal.read import lines_between
from tenfold.journal.store import open_store
from tenfold.model.events import ActionOrdered, Event
from tenfold.model.policy.policy import Policy
from tenfold.model.units import Millis
from tests.journal_builders import JOINED, submitted


def killed_after_orders(path: str) -> None:
    """Leave a journal with facts and an order, and without the cycle that ordered it."""
    facts: list[Event] = [*JOINED, submitted(1)]
    fleet = Fleet()
    fleet.apply_all(facts)
    decision = placing_decider(Policy(name="fifo")).decide(fleet, Millis(1), None)
    store = open_store(path)
    writer = open_journal(store, "first", 0)
    writer.append(facts)
    writer.append([ActionOrdered(Millis(1), action) for action in decision.actions])
    store.close()


def test_a_cycle_that_was_cut_is_closed_by_the_next_controller(tmp_path: Path):
    path = str(tmp_path / "journal.db")
    killed_after_orders(path)
    journal = LiveJournal(path, "second", 2)
    journal.restore()
    journal.close()
    store = open_store(path)
    lines = list(lines_between(store))
    store.close()
    [cycle] = [line for line in lines if isinstance(line, Cycle)]
    assert (cycle.is_cut, len(cycle.actions)) == (True, 1)
    replayed = replay(lines, placing_decider(Policy(name="fifo")))
    assert (replayed.cycles, replayed.difference) == (1, None)


def test_a_journal_that_was_closed_properly_is_left_alone(tmp_path: Path):
    path = str(tmp_path / "journal.db")
    for _ in range(2):
        journal = LiveJournal(path, "only", 0)
        journal.restore()
        journal.close()
    store = open_store(path)
    assert list(lines_between(store)) == []
    store.close()
